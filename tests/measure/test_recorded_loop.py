"""The simulator of chapter 3 against an engine that ran on two GPUs, with nothing fitted to it."""

from statistics import median

import pytest

from threeloops.measure.product_loop.recorded_loop import LOOPS, recorded_loop, simulated_loop

PARTS = ("h100-sxm5", "h200-sxm")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("users", LOOPS)
def test_a_decode_step_and_a_prompt_are_enough_to_tell_the_time_between_tokens(users, part):
    simulated = simulated_loop(users, part=part, by="recorded")
    assert median(simulated.tpot_s) == pytest.approx(recorded_loop(users, part=part, what="gap").median, rel=0.08)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("users", LOOPS)
def test_kernels_that_others_timed_are_a_fifth_too_fast_for_a_plain_engine(users, part):
    """It launches apart what an engine fuses."""
    simulated = simulated_loop(users, part=part, by="expected")
    assert 0.75 < median(simulated.tpot_s) / recorded_loop(users, part=part, what="gap").median < 1


@pytest.mark.parametrize("part", PARTS)
def test_the_prompts_of_others_are_a_quarter_of_the_time_with_64_users(part):
    alone, crowd = (recorded_loop(users, part=part, what="gap").median for users in (1, 64))
    simulated = [median(simulated_loop(users, part=part, by="recorded").tpot_s) for users in (1, 64)]
    assert simulated[1] / simulated[0] == pytest.approx(crowd / alone, rel=0.1)


def test_every_user_is_served_as_often():
    run = simulated_loop(4, part="h100-sxm5", by="recorded")
    assert len(run.served) == LOOPS[4].sizes["requests"] == 12
    assert run.output_tokens == sum(moments.request.output_tokens for moments in run.served)


def test_what_was_not_recorded_is_refused():
    with pytest.raises(ValueError, match="users='8' is not known"):
        recorded_loop(8, part="h100-sxm5", what="gap")
    with pytest.raises(ValueError, match="no loop was recorded on it"):
        simulated_loop(4, part="b200-hgx", by="recorded")
    with pytest.raises(ValueError, match="by='fitted' is not known"):
        simulated_loop(4, part="h100-sxm5", by="fitted")
