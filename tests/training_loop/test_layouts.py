"""Layouts: numbering against nested loops, legality sentence by sentence, and rates of groups that leave their
domain.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from threeloops.models.catalogue import model
from threeloops.models.parameter_buckets import layers_on_stage
from threeloops.models.parameters import model_parameters
from threeloops.simulate.training_loop.traffic import zero_step
from threeloops.training_loop.parallelism import layouts, placement
from threeloops.training_loop.parallelism.group_traffic import (
    blocks_share,
    domains_met,
    group_bytes_per_s,
    group_traffic,
)
from threeloops.training_loop.parallelism.layout_rules import Rules, refusal
from threeloops.training_loop.parallelism.layout_step import hiding_s
from threeloops.training_loop.parallelism.layouts import (
    Cluster,
    Job,
    Layout,
    members_in_domain,
    micro_batches,
    rank_group,
    stage_layers,
)

RULES = Rules(tensor_leaves_domain=False, uneven_stages=True)
EVEN = Rules(tensor_leaves_domain=False, uneven_stages=False)
CLUSTER = Cluster(
    num_gpus=512,
    domain_gpus=8,
    peak_flops_per_s=989.4e12,
    gemm_flops_per_s=800e12,
    attention_flops_per_s=800e12,
    memory_bytes_per_s=3.35e12,
    usable_bytes=80e9,
    fast_bytes_per_s_one_way=450e9,
    slow_bytes_per_s_one_way=50e9,
    link_efficiency=1.0,
    alpha_s=5e-6,
)
LLAMA = Job(
    model=model("llama-3-70b"),
    sequence=8192,
    global_batch=256,
    recipe="megatron",
    kernels="fused",
    causal="half",
    sequence_parallel=True,
    dropout=False,
    tables_as_layers=False,
    expert_tp=1,
    dispatch_bytes=2,
)
MIXTRAL = dataclasses.replace(LLAMA, model=model("mixtral-8x7b"))
LEGAL = Layout(dp=16, tp=8, pp=4, cp=1, ep=1, micro_batch=1, zero_stage=1, recompute="none", schedule="1f1b", chunks=1)


def changed(**fields: object) -> Layout:
    return dataclasses.replace(LEGAL, **fields)


def test_ranks_are_numbered_as_nested_loops_would() -> None:
    layout = changed(dp=3, tp=2, pp=2, cp=5)
    # the last one turns fastest
    places = itertools.product(range(layout.pp), range(layout.dp), range(layout.cp), range(layout.tp))
    for rank, (pp, dp, cp, tp) in enumerate(places):
        assert placement.coordinates(rank, order=layouts.order(layout)) == {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    with pytest.raises(ValueError, match="=60 must be less than 60"):
        rank_group("dp", rank=60, layout=layout)


@pytest.mark.parametrize("axis", ["tp", "cp", "dp", "pp"])
def test_the_groups_of_an_axis_part_the_ranks(axis: str) -> None:
    layout = changed(dp=3, tp=2, pp=2, cp=5)
    groups = {rank_group(axis, rank=rank, layout=layout) for rank in range(layout.num_gpus)}
    assert sorted(itertools.chain(*groups)) == list(range(layout.num_gpus))
    for ranks in groups:
        places = [placement.coordinates(rank, order=layouts.order(layout)) for rank in ranks]
        others = {tuple(place[name] for name in ("tp", "cp", "dp", "pp") if name != axis) for place in places}
        assert len(others) == 1, "its ranks differ along the axis alone"


def test_tensor_groups_fill_nodes_first() -> None:
    """TP8 x PP8 x DP8 on nodes of eight: 512 GPUs, each tensor group a node, a replica is 64 GPUs (8 nodes)."""
    layout = changed(dp=8, tp=8, pp=8)
    assert layout.num_gpus == 512
    assert rank_group("tp", rank=77, layout=layout) == tuple(range(72, 80))
    assert [rank // 8 for rank in rank_group("dp", rank=77, layout=layout)] == list(range(8, 16))
    assert rank_group("pp", rank=77, layout=layout)[:2] == (13, 77)


@pytest.mark.parametrize(("size", "stride"), [(4, 1), (16, 1), (16, 2), (16, 4), (16, 8), (3, 16), (8, 4)])
def test_members_of_a_domain_are_counted(size: int, stride: int) -> None:
    ranks = [position * stride for position in range(size)]
    assert members_in_domain(size=size, stride=stride, domain_gpus=8) == max(
        sum(rank // 8 == node for rank in ranks) for node in range(size * stride)
    )


@pytest.mark.parametrize("stride", [1, 2, 4, 8])
def test_a_ring_that_leaves_its_node_uses_every_card_of_its_members(stride: int) -> None:
    """Walk one ring per member of a node, each turned so that another member is the last: count what every card
    carries of an all-gather.
    """
    nodes, per_node = 4, 8
    members = per_node // stride
    size, carried = nodes * members, dict.fromkeys(range(nodes * members), 0.0)
    for turn in range(members):
        order = [node * members + (turn + 1 + step) % members for node in range(nodes) for step in range(members)]
        for one, two in zip(order, order[1:] + order[:1], strict=True):
            if one // members != two // members:
                carried[one] += (size - 1) / size / members  # each ring carries an equal part of the buffer
    assert len(set(carried.values())) == 1
    slow = group_bytes_per_s(CLUSTER, size=size, stride=stride)
    assert (size - 1) / size / slow == pytest.approx(max(carried.values()) / 50e9)


def test_a_group_inside_a_domain_has_its_fast_links() -> None:
    assert group_bytes_per_s(CLUSTER, size=8, stride=1) == 450e9
    assert group_bytes_per_s(CLUSTER, size=4, stride=2) == 450e9
    assert group_bytes_per_s(CLUSTER, size=2, stride=8) == 50e9
    # eight cards outrun NVLink
    assert group_bytes_per_s(dataclasses.replace(CLUSTER, slow_bytes_per_s_one_way=100e9), size=16, stride=1) == 450e9


@pytest.mark.parametrize(
    ("layout", "job", "rules", "rule", "sentence"),
    [
        (changed(tp=16, dp=8), LLAMA, RULES, "tensor", "tp=16 must not exceed domain_gpus=8"),
        (changed(tp=3), LLAMA, RULES, "tensor", "tp=3 must divide num_heads=64"),
        (changed(pp=128, dp=1, tp=4), LLAMA, RULES, "pipeline", r"pp\*chunks=128 must not exceed num_layers=80"),
        (changed(pp=32, dp=2), LLAMA, EVEN, "pipeline", r"pp\*chunks=32 must divide num_layers=80"),
        (changed(pp=1, dp=64, schedule="zb-h1"), LLAMA, RULES, "pipeline", "needs pp of 2 or more"),
        (changed(cp=3), LLAMA, RULES, "context", r"2\*cp=6 must divide sequence=8192"),
        (changed(ep=2), LLAMA, RULES, "expert", "ep=2 needs experts"),
        (changed(ep=16), MIXTRAL, RULES, "expert", "ep=16 must divide num_experts=8"),
        (changed(dp=1, tp=2, ep=4), MIXTRAL, RULES, "expert", r"ep\*expert_tp=4 must divide dp\*tp=2"),
        (changed(micro_batch=32), LLAMA, RULES, "batch", r"dp\*micro_batch=512 must divide global_batch=256"),
        (changed(pp=5, schedule="interleaved", chunks=2), LLAMA, RULES, "batch", "pp=5 must divide micro_batches=16"),
        (changed(schedule="dualpipe", micro_batch=4), LLAMA, RULES, "batch", "micro_batches=4 must be at least 8"),
        (changed(dp=8), LLAMA, RULES, "ranks", r"8\*8\*4\*1 = 256 must be the cluster's 512 GPUs"),
    ],
)
def test_every_rule_has_its_sentence(layout: Layout, job: Job, rules: Rules, rule: str, sentence: str) -> None:
    assert refusal(LEGAL, job=LLAMA, cluster=CLUSTER, rules=RULES) is None
    broken = refusal(layout, job=job, cluster=CLUSTER, rules=rules)
    assert broken is not None
    assert broken.rule == rule
    with pytest.raises(ValueError, match=sentence):
        raise ValueError(broken.sentence)


def test_kv_heads_may_stand_on_several_ranks_but_not_unevenly() -> None:
    attention = dataclasses.replace(model("llama-3-70b").groups[0][0].attention, num_heads=48, num_kv_heads=6)
    layer = dataclasses.replace(model("llama-3-70b").groups[0][0], attention=attention)
    job = dataclasses.replace(LLAMA, model=dataclasses.replace(LLAMA.model, groups=((layer, 80),)))
    broken = refusal(LEGAL, job=job, cluster=CLUSTER, rules=RULES)
    assert broken is not None
    assert broken.sentence.startswith("tp=8 must divide num_kv_heads=6 or be a multiple of it")
    wide = dataclasses.replace(CLUSTER, domain_gpus=16)
    # 8 KV heads, each on two of 16 ranks
    assert refusal(changed(tp=16, dp=8), job=LLAMA, cluster=wide, rules=RULES) is None


def test_tables_may_count_as_layers() -> None:
    """Llama 3 405B: 126 layers and two tables on 16 stages of 8 chunks, one piece each."""
    job = dataclasses.replace(LLAMA, model=model("llama-3-405b"), tables_as_layers=True)
    layout = changed(pp=16, dp=4, schedule="interleaved", chunks=8)
    assert refusal(layout, job=job, cluster=CLUSTER, rules=EVEN) is None
    broken = refusal(layout, job=dataclasses.replace(job, tables_as_layers=False), cluster=CLUSTER, rules=EVEN)
    assert broken is not None
    assert "num_layers=126" in broken.sentence


@pytest.mark.parametrize(("num_layers", "pp"), [(126, 16), (126, 128), (61, 16), (80, 1), (80, 2), (31, 7)])
def test_dealing_tables_as_layers_loses_no_layer(num_layers: int, pp: int) -> None:
    """Deal the embedding, the layers and the head out in order, and count the layers of each stage."""
    pieces = ["table", *["layer"] * num_layers, "table"]
    cuts = list(
        itertools.accumulate((len(pieces) // pp + (stage < len(pieces) % pp) for stage in range(pp)), initial=0)
    )
    dealt = [pieces[first:end].count("layer") for first, end in itertools.pairwise(cuts)]
    if pp <= num_layers:
        assert [
            layers_on_stage(num_layers=num_layers, stage=stage, pp=pp, tables_as_layers=True) for stage in range(pp)
        ] == dealt
    else:
        with pytest.raises(ValueError, match="must not exceed num_layers"):
            layers_on_stage(num_layers=num_layers, stage=0, pp=pp, tables_as_layers=True)


@pytest.mark.parametrize(("dp", "micro_batch", "batch"), [(3, 2, 48), (16, 1, 256), (1, 4, 4)])
def test_sequences_are_dealt_to_replicas_until_the_batch_is_gone(dp: int, micro_batch: int, batch: int) -> None:
    left, rounds = batch, 0
    while left:
        left, rounds = left - sum(micro_batch for _replica in range(dp)), rounds + 1
    job = dataclasses.replace(LLAMA, global_batch=batch)
    assert micro_batches(changed(dp=dp, micro_batch=micro_batch), job=job) == rounds


@pytest.mark.parametrize(("pp", "chunks"), [(1, 1), (4, 1), (16, 1), (16, 2), (5, 4)])
def test_layers_are_dealt_chunk_by_chunk(pp: int, chunks: int) -> None:
    """61 layers to pp * chunks pieces in turn; the pieces of a stage lie pp apart."""
    pieces = [0] * (pp * chunks)
    for layer in range(61):
        pieces[layer % len(pieces)] += 1
    job = dataclasses.replace(LLAMA, model=model("deepseek-v3"))
    layout = changed(pp=pp, chunks=chunks, schedule="interleaved" if chunks > 1 else "1f1b")
    # every chunk as long as the longest, as the planner assumes
    assert stage_layers(layout, job=job) == max(chunks * pieces[stage] for stage in range(pp))


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_exchanges_hide_behind_the_passes_in_which_they_run(zero_stage: int) -> None:
    """Four micro-batches, pass by pass: which of them have gradients or weights on the links."""
    gradients = weights = 0.0
    for number in range(4):
        for seconds, backward in ((2.0, False), (5.0, True)):
            accumulated = zero_stage < 2 and number < 3  # gradients are only added up, and not yet sent
            gradients += seconds if backward and not accumulated else 0.0
            first_forward = number == 0 and not backward  # updated shards become whole weights again
            weights += seconds if zero_stage == 3 or first_forward else 0.0
    layout = changed(zero_stage=zero_stage)
    assert hiding_s(layout, micro_batches=4, forward_s=2.0, backward_s=5.0) == (gradients, weights)


@pytest.mark.parametrize("zero_stage", [0, 1])
def test_replicas_send_what_ranks_that_train_send(zero_stage: int) -> None:
    """Four ranks with 12 parameters each, 8 bytes a number, against the whole model in the recipe's bytes."""
    layout = changed(dp=4, tp=1, pp=1, zero_stage=zero_stage)
    job = dataclasses.replace(LLAMA, recipe="fp32", sequence_parallel=False, global_batch=4)
    sent = zero_step(np.ones(48), [[1.0]] * 4, stage=zero_stage, learning_rate=0.1).sent_bytes[0] / 8
    found = group_traffic(layout, job=job, cluster=CLUSTER, num_layers=80)
    whole = sent / 48 * model_parameters(job.model).total
    assert found.gradients_s + found.weights_s == pytest.approx(4 * whole / CLUSTER.fast_bytes_per_s_one_way)


def test_mixed_precision_of_fsdp2_gathers_16_bits_and_adds_up_32() -> None:
    """One micro-batch over four ranks: weights twice in 16 bits, gradients once in 32, three quarters of each sent."""
    layout = changed(dp=4, tp=1, pp=1, zero_stage=3, recompute="none")
    job = dataclasses.replace(LLAMA, recipe="fsdp2-mixed", sequence_parallel=False, global_batch=4)
    found = group_traffic(layout, job=job, cluster=CLUSTER, num_layers=80)
    sent = 3 / 4 * model_parameters(job.model).total / CLUSTER.fast_bytes_per_s_one_way
    assert (found.weights_s, found.gradients_s) == pytest.approx((2 * 2 * sent, 4 * sent))


@pytest.mark.parametrize(("experts", "top_k", "domains"), [(8, 3, 4), (9, 2, 3), (12, 4, 2), (6, 6, 3), (10, 1, 5)])
def test_domains_of_a_token_are_counted_over_every_choice(experts, top_k, domains):
    each = experts // domains
    met = [len({expert // each for expert in chosen}) for chosen in itertools.combinations(range(experts), top_k)]
    assert domains_met(num_experts=experts, top_k=top_k, domains=domains) == pytest.approx(np.mean(met))


def test_a_dispatcher_that_sends_once_to_a_domain_crosses_less_and_changes_nothing_inside_one():
    wanted = dataclasses.replace(LLAMA, model=model("nemotron-3-super-120b-a12b"), expert_tp=1, nodes_per_token=None)
    once = dataclasses.replace(wanted, dispatches_once=True)
    for ep, less in ((64, domains_met(num_experts=512, top_k=22, domains=8) / 22), (8, 1.0)):
        split = dataclasses.replace(LEGAL, dp=64, tp=1, pp=1, cp=1, ep=ep)
        plain, sent = (group_traffic(split, job=one, cluster=CLUSTER, num_layers=88).expert_s for one in (wanted, once))
        assert sent / plain == pytest.approx(less)


def test_a_layer_of_one_block_has_one_exchange_of_a_tensor_group():
    """Eighty-eight layers of one block exchange as forty-four of two do."""
    hybrid, dense = model("nemotron-3-super-120b-a12b"), model("llama-3-70b")
    ((layer, _),) = dense.groups
    one_block = dataclasses.replace(layer, mlp=None, num_norms=1)
    other = dataclasses.replace(layer, attention=None, num_norms=1)
    split = dataclasses.replace(dense, groups=((one_block, 80), (other, 80)))
    layout = dataclasses.replace(LEGAL, tp=8, dp=1, pp=1, cp=1, ep=1)
    sent = [
        group_traffic(layout, job=dataclasses.replace(LLAMA, model=shape), cluster=CLUSTER, num_layers=count).tensor_s
        for shape, count in ((dense, 80), (split, 160))
    ]
    assert sent[0] == pytest.approx(sent[1])
    assert blocks_share(hybrid) == 0.5
