"""The room plans by the calendar: its tests read one that stands at noon."""

import pytest


@pytest.fixture(autouse=True)
def calendar(noon: object) -> None:
    """Every test of this folder has the fixture `noon`; one that moves the clock asks for it."""
