"""Capacity, handover, prices and adapters: formulas against requests, layers and tokens that are walked one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.facts import hardware
from threeloops.models.catalogue import model
from threeloops.product_loop import adapter_batches, capacity, deployments, kv_transfer, prices
from threeloops.simulate.product_loop import decode_clock, serving_policies, serving_pools, serving_steps, traffic
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.training_loop import overlapped_step

H100 = capacity.Replica(
    num_gpus=1,
    weights_bytes=16e9,
    free_bytes=60e9,
    cache_bytes_per_token=131_072,
    flops_per_token=16e9,
    memory_bytes_per_s=3.35e12,
    peak_flops_per_s=989.4e12,
    prefill_utilisation=0.5,
)


def load(rate: float = 40, prompt: int = 1500, output: int = 300) -> capacity.Load:
    return capacity.Load(requests_per_s=rate, prompt_tokens=prompt, output_tokens=output)


def walked_in_flight(load: capacity.Load, *, ttft_s: float, itl_s: float) -> float:
    """Requests come evenly for a long time; add up how long each is inside, token by token."""
    horizon, inside, moment = 2000.0, 0.0, 0.0
    while moment < horizon:
        leaves = moment + ttft_s
        for _token in range(load.output_tokens - 1):
            leaves += itl_s
        inside += leaves - moment
        moment += 1 / load.requests_per_s
    return inside / horizon


@pytest.mark.parametrize(("rate", "output", "itl"), [(2.0, 5, 0.04), (0.5, 30, 0.1)])
def test_in_flight_is_what_a_walk_adds_up(rate: float, output: int, itl: float) -> None:
    asked = load(rate=rate, output=output)
    walked = walked_in_flight(asked, ttft_s=0.5, itl_s=itl)
    assert capacity.in_flight(asked, ttft_s=0.5, itl_s=itl) == pytest.approx(walked, rel=1e-3)


@pytest.mark.parametrize("asked", [(4.0, 500, 8000), (40.0, 1500, 300), (2.0, 300, 2000)])
def test_at_the_bare_rate_bound_every_slot_is_taken(asked: tuple[float, int, int]) -> None:
    """Requests come one by one to a replica whose step has the length that everybody inside gives it."""
    rate, prompt, output = asked
    slots = 0
    while (slots + 1) * (prompt + output) * 131_072 <= 60e9:  # admit while the caches fit
        slots += 1
    whole = load(rate=rate, prompt=prompt, output=output)
    found = capacity.bounds(whole, H100, itl_s=1, headroom=0)
    assert found.binding == "rate"
    each = load(rate=rate / found.rate, prompt=prompt, output=output)
    assert evenly_inside(each) == pytest.approx(slots, rel=0.02)
    assert capacity.inside_each(whole, H100, replicas=found.rate) == pytest.approx(slots)


def evenly_inside(asked: capacity.Load) -> float:
    """Requests arrive evenly at one replica, step by step, until as many leave as come: the late mean number inside."""
    now, next_s = 0.0, 0.0
    inside: list[int] = []
    late: list[int] = []
    weights, prefill = 16e9 / 3.35e12, asked.prompt_tokens * 16e9 / (0.5 * 989.4e12)
    for step in range(16 * asked.output_tokens):
        arrived = 0
        while next_s <= now:
            next_s, arrived = next_s + 1 / asked.requests_per_s, arrived + 1
        contexts = len(inside) * asked.prompt_tokens + sum(inside)
        now += weights + contexts * 131_072 / 3.35e12 + arrived * prefill
        late += [len(inside)] if step > 12 * asked.output_tokens else []
        inside = [made + 1 for made in inside if made + 1 < asked.output_tokens] + [1] * arrived
    return sum(late) / len(late)


def test_the_larger_bound_decides_and_is_rounded_up() -> None:
    found = capacity.Bounds(itl=0.4, rate=3.0)
    assert (found.binding, found.replicas) == ("rate", 3)
    assert capacity.Bounds(itl=3.01, rate=3.0).replicas == 4
    assert capacity.Bounds(itl=0.4, rate=0.3).binding == "itl"


def test_work_of_a_request_is_what_a_full_replica_spends() -> None:
    """Prompts one after the other, then the whole batch together, step by step."""
    asked, batch = load(prompt=700, output=60), 50
    clock = 0.0
    for _request in range(batch):
        clock += 700 * 16e9 / (0.5 * 989.4e12)
    for _step in range(60):
        clock += (16e9 + batch * (700 + 60 / 2) * 131_072) / 3.35e12
    assert capacity.request_work_s(asked, H100, batch=batch) == pytest.approx(clock / batch)


def stepped_gap_s(asked: capacity.Load) -> float:
    """One replica, step by step: everybody inside gets a token, what arrived meanwhile is read. The late mean gap."""
    rng = random.Random(4)
    now, next_s, inside, gaps = 0.0, 0.0, [], []
    while now < 400:
        arrived = 0
        while next_s <= now:
            next_s += rng.expovariate(asked.requests_per_s)
            arrived += 1
        begin, contexts = now, sum(asked.prompt_tokens + made for made in inside)
        now += (16e9 + contexts * 131_072) / 3.35e12 + arrived * asked.prompt_tokens * 16e9 / (0.5 * 989.4e12)
        gaps += [now - begin] * len(inside) if now > 50 else []
        inside = [made + 1 for made in inside if made + 1 < asked.output_tokens] + [1] * arrived
    return sum(gaps) / len(gaps)


@pytest.mark.parametrize("rate", [6.0, 10.0])
def test_the_mean_gap_is_what_steps_take(rate: float) -> None:
    asked = load(rate=rate)
    assert capacity.mean_gap_s(asked, H100, replicas=1) == pytest.approx(stepped_gap_s(asked), rel=0.1)


@given(rate=st.floats(0.5, 200), factor=st.integers(2, 5))
def test_bounds_grow_with_the_rate_and_only_the_rate_knows_headroom(rate: float, factor: int) -> None:
    one, many = (capacity.bounds(load(rate=r), H100, itl_s=0.03, headroom=0.3) for r in (rate, rate * factor))
    assert many.itl == pytest.approx(factor * one.itl)
    assert many.rate == pytest.approx(factor * one.rate)
    bare = capacity.bounds(load(rate=rate), H100, itl_s=0.03, headroom=0)
    assert bare.itl == one.itl
    assert bare.rate == pytest.approx(one.rate * 0.7)


@given(rate=st.floats(0.5, 200), itl=st.floats(0.006, 0.1))
def test_with_the_replicas_of_the_itl_bound_the_gap_is_the_itl(rate: float, itl: float) -> None:
    asked = load(rate=rate)
    found = capacity.bounds(asked, H100, itl_s=itl, headroom=0)
    assert capacity.mean_gap_s(asked, H100, replicas=found.itl) == pytest.approx(itl)


def test_two_pools_help_a_tight_itl_and_nothing_else() -> None:
    """Chat with an easy ITL gains nothing; a voice agent with one close to the weights' own time does."""
    chat, voice = load(), load(rate=30, prompt=400, output=200)
    easy = capacity.bounds(chat, H100, itl_s=0.03, headroom=0.3)
    tight = capacity.bounds(voice, H100, itl_s=0.006, headroom=0.3)
    assert (easy.binding, tight.binding) == ("rate", "itl")
    assert capacity.pools(chat, H100, itl_s=0.03, headroom=0.3).replicas >= easy.replicas
    assert capacity.pools(voice, H100, itl_s=0.006, headroom=0.3).replicas < tight.replicas


def pool(asked: capacity.Load, servers: int) -> serving_pools.Pool:
    """Servers of the simulator with H100's times and as many slots as whole contexts fit."""
    step_s = serving_steps.AffineStep(
        base_s=16e9 / 3.35e12, per_prefill_token_s=16e9 / (0.5 * 989.4e12), per_cached_token_s=131_072 / 3.35e12
    )
    slots = int(60e9 // ((asked.prompt_tokens + asked.output_tokens) * 131_072))
    return serving_pools.Pool(
        step_s=step_s, policy=serving_policies.chunked_prefill(slots=slots, token_budget=2048), servers=servers
    )


def at_random(asked: capacity.Load, requests: int) -> list[Request]:
    arrivals = traffic.poisson(requests_per_s=asked.requests_per_s, requests=requests, seed=3)
    return traffic.together(arrivals, [asked.prompt_tokens] * requests, [asked.output_tokens] * requests)


@pytest.mark.parametrize(
    ("asked", "itl_s", "requests"),
    [
        (load(), 0.03, 4000),  # chat
        (load(rate=4, prompt=500, output=8000), 0.05, 3000),  # reasoning
        (load(rate=90, prompt=400, output=200), 0.006, 4000),  # voice
    ],
)
def test_a_simulator_needs_as_many(asked: capacity.Load, itl_s: float, requests: int) -> None:
    """Poisson arrivals, steps and slots, no formula: with the planned GPUs everybody gets the promised pace, with fewer
    than the bare bounds ask for the pace or the first token is late, and the gap in between is as predicted.
    """
    came = at_random(asked, requests)
    planned = capacity.bounds(asked, H100, itl_s=itl_s, headroom=0.3)
    bare = capacity.bounds(asked, H100, itl_s=itl_s, headroom=0)
    enough = serving_pools.pooled(came, pool=pool(asked, planned.replicas))
    assert enough.tpot_s.mean() <= itl_s
    assert enough.ttft_s.max() <= 0.5
    late = enough.tpot_s[requests // 3 : -requests // 3]
    told = capacity.mean_gap_s(asked, H100, replicas=planned.replicas)
    assert late.mean() == pytest.approx(told, rel=0.05)
    few = serving_pools.pooled(came, pool=pool(asked, bare.replicas - 1))
    assert few.tpot_s.mean() > itl_s or few.ttft_s[-requests // 3 :].mean() > 0.5


def test_a_simulator_needs_as_many_in_two_pools() -> None:
    """The voice agent, split: two GPUs that decode keep the ITL, one does not."""
    asked, itl_s = load(rate=90, prompt=400, output=200), 0.006
    came = at_random(asked, 3000)

    def split(decode: int) -> float:
        run = serving_pools.split(came, prefill=pool(asked, 2), decode=pool(asked, decode), transfer_s=lambda _: 0.001)
        return float(run.tpot_s.mean())

    two = capacity.pools(asked, H100, itl_s=itl_s, headroom=0.3)
    assert (two.replicas, two.replicas - 2) == (4, 2)
    assert split(2) <= itl_s < split(1)


@given(rate=st.floats(0.5, 200), itl=st.floats(0.01, 0.1))
def test_two_pools_do_no_less_work_than_one(rate: float, itl: float) -> None:
    asked = load(rate=rate)
    together = capacity.bounds(asked, H100, itl_s=itl, headroom=0.3)
    apart = capacity.pools(asked, H100, itl_s=itl, headroom=0.3)
    assert apart.prefill + apart.decode >= together.rate * (1 - 1e-9)


def test_a_load_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="itl_s=0.001; use more GPUs"):
        capacity.bounds(load(), H100, itl_s=0.001, headroom=0.3)
    with pytest.raises(ValueError, match="one context of 500,300 tokens"):
        capacity.bounds(load(prompt=500_000), H100, itl_s=0.03, headroom=0.3)
    with pytest.raises(ValueError, match="headroom=1"):
        capacity.bounds(load(), H100, itl_s=0.03, headroom=1)
    with pytest.raises(ValueError, match="add replicas"):
        capacity.mean_gap_s(load(), H100, replicas=2)


@given(layers=st.integers(1, 60), prefill=st.floats(0.01, 2), transfer=st.floats(0.001, 3))
def test_a_cache_that_leaves_layer_by_layer(layers: int, prefill: float, transfer: float) -> None:
    played = overlapped_step.play(
        forward_s=0, slices_s=[prefill / layers] * layers, sends_s=[transfer / layers] * layers, update_s=0
    )
    exposed = kv_transfer.exposed_transfer_s(num_layers=layers, prefill_s=prefill, transfer_s=transfer)
    assert prefill + exposed == pytest.approx(played.finished_s)


def test_hops_follow_each_other() -> None:
    both = kv_transfer.transfer_s(cache_bytes=3e9, hops_bytes_per_s=(50e9, 25e9))
    assert both == pytest.approx(0.06 + 0.12)
    with pytest.raises(ValueError, match="at least one link"):
        kv_transfer.transfer_s(cache_bytes=1, hops_bytes_per_s=())


@given(hits=st.integers(0, 40), misses=st.integers(1, 40))
def test_a_prompt_cache_bills_every_token(hits: int, misses: int) -> None:
    bill = sum([0.1] * hits + [1.25] * misses) / (hits + misses)
    share = hits / (hits + misses)
    assert prices.cached_input_share(hit_share=share, read_price=0.1, write_price=1.25) == pytest.approx(bill)
    assert (bill < 1) == (share > prices.break_even_hit_share(read_price=0.1, write_price=1.25))


@given(cached=st.integers(0, 30), new=st.integers(1, 30), output=st.integers(0, 20))
def test_a_request_is_billed_token_by_token(cached: int, new: int, output: int) -> None:
    bill = sum([0.25 * 3] * cached + [3] * new + [14] * output)
    asked = {"output_tokens": output, "prompt_dollars_per_million": 3, "output_dollars_per_million": 14}
    dollars = prices.request_dollars(prompt_tokens=cached + new, cached_tokens=cached, read_price=0.25, **asked)
    assert dollars * 1e6 == pytest.approx(bill)
    with pytest.raises(ValueError, match="must be at most prompt_tokens"):
        prices.request_dollars(prompt_tokens=new, cached_tokens=new + 1, read_price=0.25, **asked)


def test_a_machine_as_busy_as_that_costs_the_same() -> None:
    busy = prices.break_even_busy_share(dollars_per_hour=3, tokens_per_s=2000, dollars_per_million=0.5)
    made = sum(2000 for second in range(36_000) if second < round(busy * 36_000))  # ten hours, idle at the end
    assert made * 0.5 / 1e6 == pytest.approx(30, rel=1e-3)


def test_different_adapters_are_counted_by_drawing_them() -> None:
    rng = random.Random(5)
    drawn = [len({rng.randrange(40) for _ in range(30)}) for _ in range(4000)]
    predicted = adapter_batches.distinct_adapters(adapters=40, batch=30)
    assert predicted == pytest.approx(sum(drawn) / len(drawn), rel=0.01)
    assert adapter_batches.distinct_adapters(adapters=1, batch=30) == 1


@given(chosen=st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_a_step_reads_what_its_requests_need_copy_after_copy(chosen: list[int]) -> None:
    """Merged: for each adapter in turn a whole copy, and the caches of whoever asked for it."""
    merged = 0
    for adapter in sorted(set(chosen)):
        merged += 1000
        merged += sum(30 for one in chosen if one == adapter)
    base_once = 1000 + sum(30 for _ in chosen) + sum(7 for _ in set(chosen))
    step = {"weights_bytes": 1000, "cache_bytes": 30 * len(chosen), "distinct": len(set(chosen))}
    assert adapter_batches.merged_step_s(**step, memory_bytes_per_s=1) == merged
    assert adapter_batches.mixed_step_s(**step, adapter_bytes=7, memory_bytes_per_s=1) == base_once


def test_one_adapter_for_all_costs_the_same_merged_or_not_but_for_its_own_bytes() -> None:
    step = {"weights_bytes": 16e9, "cache_bytes": 4e9, "distinct": 1, "memory_bytes_per_s": 1e12}
    assert adapter_batches.merged_step_s(**step) == 0.02
    assert adapter_batches.mixed_step_s(**step, adapter_bytes=0) == 0.02
    assert adapter_batches.mixed_step_s(**step | {"distinct": 10}, adapter_bytes=1e9) == pytest.approx(0.03)


def test_a_catalogued_replica_holds_what_its_parts_say() -> None:
    """Llama 3 8B has 8.03 billion parameters (its model card); an H100 reports 81,559 MiB and has 3.35 TB/s."""
    gpu = deployments.replica(
        model("llama-3-8b"), hardware.part("h100-sxm5"), num_gpus=2, other_bytes=3e9, prefill_utilisation=0.5
    )
    assert gpu.weights_bytes == pytest.approx(2 * 8.03e9, rel=1e-3)
    assert gpu.free_bytes + gpu.weights_bytes == pytest.approx(2 * (0.92 * 81_559 * 2**20 - 3e9))
    assert (gpu.cache_bytes_per_token, gpu.memory_bytes_per_s) == (131_072, 6.7e12)
    with pytest.raises(ValueError, match="leaves nothing"):
        deployments.replica(
            model("llama-3-70b"), hardware.part("h100-sxm5"), num_gpus=1, other_bytes=3e9, prefill_utilisation=0.5
        )


def test_the_trade_off_is_a_batch_that_is_walked() -> None:
    points = deployments.trade_off(H100, context=2000)
    assert len(points) == 60e9 // (2000 * 131_072)
    user, per_gpu = points[-10]  # ten requests
    clock = 0.0
    for _step in range(50):
        clock += 16e9 / 3.35e12 + sum([2000 * 131_072 / 3.35e12] * 10)
    assert (50 / clock, 500 / clock) == (pytest.approx(user), pytest.approx(per_gpu))
    short = deployments.trade_off(H100, context=200)
    user, per_gpu = short[-1000]  # a thousand requests: now the matmuls compute for longer than they read
    layer = {"weights": [16e9 / 32] * 32, "cache": 200 * 131_072 / 32, "flops": 16e9 / 32}
    step_s = decode_clock.step_s(requests=1000, **layer, bytes_per_s=3.35e12, flops_per_s=989.4e12)
    assert (1 / step_s, 1000 / step_s) == (pytest.approx(user), pytest.approx(per_gpu))
    assert [a for a, _ in points] == sorted(a for a, _ in points)
    assert [b for _, b in points] == sorted((b for _, b in points), reverse=True)
