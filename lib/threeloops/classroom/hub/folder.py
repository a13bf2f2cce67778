"""The hub's folder, written once: configuration that works as it stands and is the teacher's to change."""

import compileall
import json
import os
import pwd
import secrets
import shutil
import string
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from threeloops import checks
from threeloops.classroom.course import write_whole
from threeloops.classroom.hub import people, proxy, reach
from threeloops.drills.engine.student_draws import plain_id
from threeloops.units import counted, fmt_bytes

TEMPLATES = Path(__file__).parents[1] / "templates" / "hub"
AUTHENTICATORS = ("pam", "trial")
HERE = "127.0.0.1"  # this machine alone
PROGRAMS = {"prlimit": "util-linux", "nice": "coreutils", "useradd": "passwd", "bwrap": "bubblewrap"}
# What everybody may do with a folder of the exchange. nbgrader's own modes, and the sticky bit where anybody may
# write: what somebody has put there, nobody else may rename or remove.
EXCHANGE_MODES = {"": 0o755, "outbound": 0o755, "inbound": 0o3733, "feedback": 0o711}


@dataclass(frozen=True, kw_only=True)
class Hub:
    """What hub.json says."""

    course: str  # the public course code, as it is compared; nbgrader's course id too
    teacher: str  # the account that the course folder belongs to
    authenticator: str
    ip: str
    port: int  # and the two after it, which only this machine needs
    certificate: str  # files for TLS; both empty without
    key: str
    memory_bytes: int  # that one process of a student may hold
    processes: int  # processes and threads of one student
    cores: int  # threads that numerical libraries of one student start
    python: str
    book: str
    proxy: list[str] = field(default_factory=list)  # the command that starts it

    def __post_init__(self) -> None:
        checks.one_of(AUTHENTICATORS, authenticator=self.authenticator)
        checks.count(memory_bytes=self.memory_bytes, processes=self.processes, cores=self.cores, port=self.port)
        if not self.course:
            raise ValueError("the course code holds no letter and no digit; expected one like spring-27")
        if self.authenticator == "trial" and self.ip != HERE:
            raise ValueError(
                f"authenticator='trial' gives every student one password, so it is for this machine alone ({HERE}), not"
                f" for {self.ip}; pam asks for each account's own"
            )
        if bool(self.certificate) != bool(self.key):
            raise ValueError("TLS takes a certificate and its key; give --certificate and --key, or neither")
        if self.ip != HERE and not self.certificate:
            raise ValueError(
                f"ip={self.ip!r} would let passwords cross the network for everybody to read; give --certificate and"
                f" --key, or leave the hub at {HERE} behind a server of yours that speaks TLS"
            )


def read(folder: Path) -> Hub:
    """The hub of a folder, or of the folder that it lies in.

    Raises:   ValueError where there is none
    """
    for place in (folder, folder.parent):
        if (place / "hub.json").is_file():
            return Hub(**json.loads((place / "hub.json").read_text(encoding="utf-8")))
    raise ValueError(f"{folder} is no hub's folder; expected one that `threeloops classroom init` has written")


def write(folder: Path, hub: Hub, students: list[str]) -> None:
    """Write everything. Only root can: a hub starts servers for others, and gives folders to their owners.

    Raises:   ValueError, before anything is written, when the hub could not work
    """
    students = people.checked(students, teacher=hub.teacher)
    owner = _teacher(hub.teacher)
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise ValueError(f"{program} is not installed here (on Debian and Ubuntu: apt install {package})")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; give a new folder, or change the files that are there")
    reach.refuse_unless_open(Path(hub.book), folder)
    for file in filter(None, (hub.certificate, hub.key)):
        if not Path(file).is_file():
            raise ValueError(f"{file} does not exist; expected a file for TLS, as PEM")
    hub = replace(hub, proxy=proxy.command())
    compileall.compile_dir(Path(hub.book) / "lib", quiet=2)  # students cannot write there: each would do it anew
    _folder(folder, 0o755)
    _folder(folder / "state", 0o700)
    words = _words(folder, hub, students)
    for template in sorted(path for path in TEMPLATES.rglob("*.txt") if path.parent.name != "course"):
        _place(template, folder, words)
    (folder / "accounts.sh").chmod(0o755)
    write_whole(folder / "hub.json", json.dumps(asdict(hub), indent=1) + "\n")
    (folder / "hub.json").chmod(0o644)
    (folder / "class.csv").write_text("".join(f"{name}\n" for name in students), encoding="utf-8")
    (folder / "class.csv").chmod(0o644)
    if hub.authenticator == "trial":
        passwords = {"students": secrets.token_urlsafe(12), "teacher": secrets.token_urlsafe(32)}
        write_whole(folder / "state" / "trial.json", json.dumps(passwords, indent=1) + "\n")
    _exchange(folder / "exchange", hub, owner)
    _course(folder / "course", hub, owner)


def _words(folder: Path, hub: Hub, students: list[str]) -> dict[str, str]:
    """What README.md says of this hub."""
    return asdict(hub) | {
        "folder": str(folder),
        "students": counted(len(students), "student"),
        "memory": fmt_bytes(hub.memory_bytes, base=2),
        "scripts": str(Path(sys.executable).parent),
    }


def _teacher(name: str) -> "pwd.struct_passwd":
    if os.geteuid() != 0:
        raise ValueError(
            "a hub starts servers for others, which only root may; run this as root (sudo), on the machine of the hub"
        )
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise ValueError(f"{name} has no account on this machine; `useradd --create-home {name}` makes one") from None


def _folder(path: Path, mode: int, owner: "pwd.struct_passwd | None" = None) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)  # mkdir would take the umask off it
    if owner:
        os.chown(path, owner.pw_uid, owner.pw_gid)


def _place(template: Path, folder: Path, words: dict[str, str]) -> None:
    path = folder / template.relative_to(TEMPLATES).with_suffix("")
    for above in reversed(path.relative_to(folder).parents[:-1]):
        _folder(folder / above, 0o755)
    text = template.read_text(encoding="utf-8")
    path.write_text(string.Template(text).substitute(words) if path.suffix == ".md" else text, encoding="utf-8")
    path.chmod(0o644)


def _exchange(exchange: Path, hub: Hub, owner: "pwd.struct_passwd") -> None:
    """nbgrader's exchange: everybody must be able to write at its root, or nbgrader refuses to work."""
    _folder(exchange, 0o1777)
    for name, mode in EXCHANGE_MODES.items():
        _folder(exchange / hub.course / name, mode, owner)


def _course(course: Path, hub: Hub, owner: "pwd.struct_passwd") -> None:
    """The teacher's own folder: sources with solutions, what was collected, gradebook, key. No other user looks in."""
    _folder(course, 0o700)
    for source in sorted(Path(hub.book).glob("solutions/*/*.ipynb")):
        if source.stem == source.parent.name:
            (course / "solutions" / source.stem).mkdir(parents=True)
            shutil.copyfile(source, course / "solutions" / source.stem / source.name)
    for name in ("release", "collected", "graded", "feedback"):
        (course / name).mkdir()
    shutil.copyfile(TEMPLATES / "course" / "nbgrader_config.py.txt", course / "nbgrader_config.py")
    for path in (course, *course.rglob("*")):
        os.chown(path, owner.pw_uid, owner.pw_gid)


def plain_course(code: str) -> str:
    """A course code as it is compared, and as a folder of the exchange is called."""
    return plain_id(code)
