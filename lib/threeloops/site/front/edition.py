"""Which edition of the book this is, whose, and where it stands: what CITATION.cff says, and nothing typed again.

`url` there is the address of the pages, `repository-code` that of their source. Where one of them is not set, nothing
on the pages speaks of it.

Source:   Citation File Format 1.2.0, https://github.com/citation-file-format/citation-file-format
"""

import re
from dataclasses import dataclass
from pathlib import Path

FIELD = re.compile(r'^(?:  - |  )?(?P<name>[a-z-]+): +"?(?P<value>[^"\n]+?)"?\s*$', re.MULTILINE)
ADDRESS = re.compile(r"https?://[^\s/]+(?:/\S*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """An edition, as it is cited."""

    title: str
    authors: str
    version: str
    date: str  # 2026-11-21
    licence: str  # of the code
    address: str  # of the first page, with a / at its end; empty where none is set
    repository: str  # empty where none is set

    @property
    def cited(self) -> str:
        """How to name it in a list of sources."""
        where = self.address or self.repository
        return f"{self.authors}: {self.title}. Version {self.version}, {self.date}." + (f" {where}" if where else "")

    @property
    def bibtex(self) -> str:
        """The same for BibTeX."""
        where = self.address or self.repository
        lines = {
            "author": f"{{{self.authors}}}",
            "title": self.title,
            "version": self.version,
            "year": self.date[:4],
            **({"url": where} if where else {}),
        }
        return "\n".join(["@misc{threeloops,", *(f"  {name} = {{{value}}}," for name, value in lines.items()), "}"])


def edition(root: Path) -> Edition:
    """The edition of the book in a folder.

    Raises:   ValueError for a CITATION.cff without a field that is needed, and for an address that is none
    """
    return read((root / "CITATION.cff").read_text(encoding="utf-8"))


def read(source: str) -> Edition:
    """The edition that a CITATION.cff tells of.

    >>> source = (
    ...     'title: "A book"\\nauthors:\\n  - name: Somebody\\nversion: 1.0\\ndate-released: 2026-01-02\\nlicense: MIT'
    ... )
    >>> read(source).cited
    'Somebody: A book. Version 1.0, 2026-01-02.'
    >>> read(source + "\\nurl: https://example.org/book").address
    'https://example.org/book/'
    """
    fields = {match["name"]: match["value"] for match in FIELD.finditer(source)}
    lost = [name for name in ("title", "name", "version", "date-released", "license") if name not in fields]
    if lost:
        raise ValueError(f"CITATION.cff has no {' and no '.join(lost)}; the first page says what it says")
    for name in ("url", "repository-code"):
        if name in fields and not ADDRESS.match(fields[name]):
            raise ValueError(
                f"CITATION.cff has {name}: {fields[name]}; expected an address like https://example.org/book"
            )
    address = fields.get("url", "")
    return Edition(
        title=fields["title"],
        authors=fields["name"],
        version=fields["version"],
        date=fields["date-released"],
        licence=fields["license"],
        address=address.rstrip("/") + "/" if address else "",
        repository=fields.get("repository-code", ""),
    )
