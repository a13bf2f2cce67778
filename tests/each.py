"""Many small cases in one test: thousands of items would spend longer on being called than on what they check."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

Test = Callable[..., None]


def each(
    name: str, cases: Mapping[str, Any], *, by: Callable[[Any], str] = lambda case: "all"
) -> Callable[[Test], Test]:
    """Call a test with every case of a group, the groups being items of their own; every case that fails is named,
    and shown with its own traceback.
    """
    groups: dict[str, dict[str, Any]] = {}
    for key, case in cases.items():
        groups.setdefault(by(case), {})[key] = case

    def folded(test: Test) -> Test:
        def all_of(group: str) -> None:
            failed = []
            for key, case in groups[group].items():
                try:
                    test(case)
                except Exception as error:
                    error.add_note(f"{name}: {key}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(groups[group])}", failed)

        assert list(inspect.signature(test).parameters) == [name], "the test takes its case and nothing else"
        all_of.__name__, all_of.__doc__, all_of.__module__ = test.__name__, test.__doc__, test.__module__
        return pytest.mark.parametrize("group", groups)(all_of)

    return folded
