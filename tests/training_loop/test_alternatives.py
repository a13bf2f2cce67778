"""The neighbours of a best layout: each sentence against a search, a refusal and a count of bytes made afresh."""

import dataclasses

import pytest
from test_layouts import CLUSTER, LLAMA, MIXTRAL, RULES

from threeloops.models.catalogue import model
from threeloops.training_loop.parallelism.alternatives import alternatives, misses
from threeloops.training_loop.parallelism.layout_rules import refusal
from threeloops.training_loop.parallelism.layouts import Job
from threeloops.training_loop.parallelism.planner import Choices, Search, fullest_rank, planned, search
from threeloops.units import fmt_bytes, fmt_percent

CHOICES = Choices(
    micro_batches=(1, 2),
    zero_stages=(0, 1, 3),
    recomputes=("none", "selective", "full"),
    schedules=(("1f1b", 1), ("interleaved", 2)),
    context=(1, 2),
)
JOBS = {
    "dense": dataclasses.replace(LLAMA, model=model("llama-3-70b"), global_batch=64),
    "experts": dataclasses.replace(MIXTRAL, global_batch=64),
}
SMALL = dataclasses.replace(CLUSTER, num_gpus=64)


def found_for(job: Job) -> Search:
    return search(job=job, cluster=SMALL, rules=RULES, choices=CHOICES)


@pytest.mark.parametrize("kind", JOBS)
def test_every_verdict_is_what_asking_again_gives(kind: str) -> None:
    job = JOBS[kind]
    found = found_for(job)
    judged = alternatives(found, job=job, cluster=SMALL, rules=RULES, choices=CHOICES)
    fitting = {plan.layout: plan for plan in found.fitting}
    splits = {plan.layout.split for plan in found.fitting}
    told = {other.verdict for other in judged.values()}
    assert told == {"does not fit", "slower"} | ({"not legal"} if kind == "experts" else set())
    for what, other in judged.items():
        broken = refusal(other.layout, job=job, cluster=SMALL, rules=RULES)
        assert (broken is not None) == (other.verdict == "not legal"), what
        if broken:
            assert other.sentence.startswith(f"not legal: {broken.sentence.split(';')[0]}")
            continue
        plan = planned(other.layout, job=job, cluster=SMALL)
        if other.verdict == "slower":
            share = plan.step.total_s / found.best.step.total_s - 1
            assert plan == fitting[other.layout]
            assert share >= 0
            assert fmt_percent(share) in other.sentence or share == 0 or share >= 1
        else:
            missing = fullest_rank(other.layout, job=job).total_bytes - SMALL.usable_bytes
            assert missing > 0
            assert f"does not fit by {fmt_bytes(missing, base=2)}" in other.sentence
            assert what not in splits, "of a split that does not fit, the search found nothing either"


def test_a_split_is_judged_by_the_fastest_of_its_layouts() -> None:
    job = JOBS["dense"]
    found = found_for(job)
    judged = alternatives(found, job=job, cluster=SMALL, rules=RULES, choices=CHOICES)
    for split, other in judged.items():
        of_the_split = [plan for plan in found.fitting if plan.layout.split == split]
        if of_the_split:
            assert other.layout == min(of_the_split, key=lambda plan: plan.step.total_s).layout


def test_every_gpu_a_replica_is_always_asked_about() -> None:
    job = JOBS["dense"]
    assert "dp64" in alternatives(found_for(job), job=job, cluster=SMALL, rules=RULES, choices=CHOICES)


def test_a_bubble_and_exposed_communication_are_named() -> None:
    job = dataclasses.replace(JOBS["dense"], global_batch=16)
    sentences = [
        other.sentence
        for other in alternatives(found_for(job), job=job, cluster=SMALL, rules=RULES, choices=CHOICES).values()
    ]
    assert any("its bubble is" in sentence for sentence in sentences)
    assert any("of communication is exposed" in sentence for sentence in sentences)


def test_where_nothing_fits_the_plainest_splits_say_by_how_much() -> None:
    job = JOBS["dense"]
    tiny = dataclasses.replace(SMALL, num_gpus=8, usable_bytes=20e9)
    asked = {"job": job, "cluster": tiny, "rules": RULES, "choices": CHOICES}
    assert not search(**asked).fitting
    with pytest.raises(ValueError, match="none of"):
        alternatives(search(**asked), **asked)
    missed = misses(**asked)
    assert list(missed) == ["dp8", "tp8", "pp8"]
    for other in missed.values():
        missing = fullest_rank(other.layout, job=job).total_bytes - tiny.usable_bytes
        assert other.sentence.startswith(f"does not fit by {fmt_bytes(missing, base=2)}, even with micro-batch 1")
