"""A mistake is known by its name and by its sentence: within one question no two share either."""

from collections import Counter
from collections.abc import Iterable

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS
from threeloops.room.kinds import spots
from threeloops.room.kinds.chains import CHAINS
from threeloops.room.kinds.chains.chain import numbers
from threeloops.room.kinds.chains.change import slips_apart
from threeloops.room.kinds.flash_numbers import FLASHES

Named = tuple[str, str]  # a mistake's name and its sentence


def mistakes() -> Iterable[tuple[str, list[Named]]]:
    """(where, its mistakes) for everything that names any."""
    yield from ((drill.key, [(slip.key, slip.story) for slip in drill.slips]) for drill in DRILLS.values())
    yield from ((key, [(slip.key, slip.story) for slip in task.changes]) for key, task in TASKS.items())
    yield from ((worked.key, [(slip.key, slip.story) for slip in worked.missteps]) for worked in spots.WORKED)
    yield from ((flash.key, [(name, told) for name, _, told in flash.number().near]) for flash in FLASHES)


def shared(named: list[Named]) -> list[str]:
    """The names and sentences that more than one mistake has."""
    plain = [word.strip().lower() for one in named for word in one]
    return [word for word, times in Counter(plain).items() if times > 1]


def test_no_two_mistakes_of_a_question_share_a_name_or_a_sentence() -> None:
    assert {where: both for where, named in mistakes() if (both := shared(named))} == {}


def test_a_shared_sentence_would_be_found() -> None:
    assert shared([("one", "You counted twice."), ("two", "you counted twice. ")]) == ["you counted twice."]


def test_in_the_chain_on_experts_every_mistake_leads_to_an_answer_of_its_own() -> None:
    chain = CHAINS["experts"]
    assert all(slips_apart(chain.steps, numbers(chain, str(seed))) for seed in range(40))
