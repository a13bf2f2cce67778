"""Many small cases in one test: thousands of items would spend longer on being called than on what they check."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

Test = Callable[..., None]


def each(
    name: str | tuple[str, ...],
    cases: Mapping[str, Any] | Iterable[Any],
    *,
    by: Callable[[Any], str] = lambda case: "all",
) -> Callable[[Test], Test]:
    """Call a test with every case of a group, the groups being items of their own; every case that fails is named,
    and shown with its own traceback. Where the test takes several names, a case has as many values.
    """
    names = [name] if isinstance(name, str) else list(name)
    groups: dict[str, dict[str, Any]] = {}
    for key, case in cases.items() if isinstance(cases, Mapping) else ((str(case), case) for case in cases):
        groups.setdefault(by(case), {})[key] = case

    def folded(test: Test) -> Test:
        def all_of(group: str) -> None:
            failed = []
            for key, case in groups[group].items():
                try:
                    test(*[case] if isinstance(name, str) else case)
                except Exception as error:
                    error.add_note(f"{', '.join(names)}: {key}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(groups[group])}", failed)

        assert list(inspect.signature(test).parameters) == names, "the test takes its case and nothing else"
        all_of.__name__, all_of.__doc__, all_of.__module__ = test.__name__, test.__doc__, test.__module__
        return pytest.mark.parametrize("group", groups)(all_of)

    return folded
