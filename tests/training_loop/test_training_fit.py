"""A whole rank: a real small model in torch, Korthikanti's four models, the inverse query, refusals."""

import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop.optimiser_state import state_tensors
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.simulate.training_loop.in_flight import peak_alive
from threeloops.training_loop.memory.activation_kernels import KERNELS
from threeloops.training_loop.memory.fit import (
    Training,
    largest_micro_batch,
    largest_rank_memory,
    largest_sequence,
    rank_memory,
    rank_moments,
)
from threeloops.training_loop.memory.gathered_parameters import gathered_bytes, stage_copies_bytes
from threeloops.training_loop.memory.setup import SPREAD_EVENLY
from threeloops.training_loop.memory.step_memory import host_traffic_bytes
from threeloops.training_loop.parallelism.layout_step import pass_times
from threeloops.training_loop.parallelism.layouts import Cluster, Job


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks this small only lose time to threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gpt(*, heads, hidden, layers, vocab, positions=0, tied=True):
    layer = Layer(
        attention=Attention(
            num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, qkv_bias=True, output_bias=True
        ),
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu", bias=True),
        norm="layernorm",
        num_norms=2,
    )
    return Model(
        name="gpt",
        hidden=hidden,
        vocab=vocab,
        groups=((layer, layers),),
        tied_head=tied,
        max_context=2048,
        learned_positions=positions,
    )


SMALL = gpt(heads=6, hidden=48, layers=6, vocab=100, tied=False)
FROM_TORCH = Training(
    model=SMALL,
    recipe="fp32",
    zero_stage=0,
    dp=1,
    tp=1,
    pp=1,
    sequence_parallel=False,
    schedule="1f1b",
    micro_batches=5,
    bytes_per_element=4,
    kernels="eager",
    dropout=True,
    recompute="none",
)


class SmallModel(nn.Module):
    """The model that FROM_TORCH describes, loss included."""

    def __init__(self, recompute="none"):
        super().__init__()
        self.table = nn.Embedding(SMALL.vocab, SMALL.hidden)
        layer, count = SMALL.groups[0]
        self.blocks = nn.ModuleList(
            TransformerBlock(
                layer, hidden=SMALL.hidden, kernels="eager", dropout=0.1, dtype=torch.float32, recompute=recompute
            )
            for _ in range(count)
        )
        self.norm, self.head = nn.LayerNorm(SMALL.hidden), nn.Linear(SMALL.hidden, SMALL.vocab, bias=False)

    def forward(self, ids):
        x = torch.native_dropout(self.table(ids), 0.1, True)[0]
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(
            self.head(self.norm(x)).flatten(0, 1), torch.zeros(ids.numel(), dtype=torch.int64)
        )


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_activations_of_a_real_model(recompute):
    ids = torch.zeros(3, 14, dtype=torch.int64)
    measured = saved_bytes(SmallModel(recompute), ids)
    predicted, _, _ = rank_moments(replace(FROM_TORCH, recompute=recompute), stage=0, micro_batch=3, sequence=14)
    # The loss keeps one more fp32 value.
    assert measured == predicted.activations_bytes + 4


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_real_model_under_autocast_saves_copies_of_its_matrices(recompute):
    model, ids = SmallModel(recompute), torch.zeros(3, 14, dtype=torch.int64)
    with torch.autocast("cpu", torch.bfloat16):
        measured = saved_bytes(model, ids)
    predicted, _, _ = rank_moments(
        replace(FROM_TORCH, recipe="autocast", bytes_per_element=2, recompute=recompute),
        stage=0,
        micro_batch=3,
        sequence=14,
    )
    matrices = sum(p.numel() for p in model.blocks.parameters() if p.dim() == 2)
    head = SMALL.vocab * SMALL.hidden
    assert predicted.weight_copies_bytes == 2 * (matrices + head)
    # Under full recompute the blocks' copies are in autocast's cache (measured below), and not among the saved
    # tensors.
    saved_copies = 2 * (head if recompute == "full" else matrices + head)
    assert measured == predicted.activations_bytes + saved_copies + 4


@pytest.mark.parametrize(("recompute", "after"), [("none", 6 * 6), ("full", 0)])
def test_autocast_caches_its_copies_and_only_saved_ones_outlive_it(recompute, after):
    """Six matrices in each of six blocks: all copies are there while autocast is on; afterwards those that a product
    has saved.
    """
    blocks, live = SmallModel(recompute).blocks, Live()
    with live, torch.autocast("cpu", torch.bfloat16):
        x = torch.ones(3, 14, SMALL.hidden, requires_grad=True)
        for block in blocks:
            x = block(x)
        inside = live.copies(blocks)
    assert (inside, live.copies(blocks)) == (36, after)


class Live(TorchDispatchMode):
    """Every storage that an operation made and that is still alive."""

    def __init__(self):
        super().__init__()
        self.storages = {}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.storages:
                storage = tensor.untyped_storage()
                self.storages[storage._cdata] = (tensor.dtype, storage.nbytes())
                weakref.finalize(storage, self.storages.pop, storage._cdata, None)
        return result

    def copies(self, module):
        sizes = {2 * p.numel() for p in module.parameters() if p.dim() == 2}
        return sum(dtype == torch.bfloat16 and num_bytes in sizes for dtype, num_bytes in self.storages.values())


def test_the_head_is_gone_before_the_last_layer_comes_back():
    """What head and loss saved, counted when full recompute runs the last block forward again during the backward
    pass.
    """
    model, alive, seen = SmallModel("full"), weakref.WeakSet(), []

    class Kept:
        def __init__(self, tensor):
            self.tensor = tensor
            alive.add(self)

    x = model.table(torch.zeros(3, 14, dtype=torch.int64))
    for block in model.blocks:
        x = block(x)
    model.blocks[-1].mlp.register_forward_hook(lambda *_: seen.append(sum(kept.tensor.nbytes for kept in alive)))
    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        loss = nn.functional.cross_entropy(model.head(model.norm(x)).flatten(0, 1), torch.zeros(42, dtype=torch.int64))
    assert sum(kept.tensor.nbytes for kept in alive) > 42 * SMALL.vocab * 4
    loss.backward()
    assert seen == [0]


def test_states_of_a_real_model():
    model, predicted = SmallModel(), rank_memory(FROM_TORCH, stage=0, micro_batch=3, sequence=14).states
    model(torch.zeros(3, 14, dtype=torch.int64)).backward()
    assert sum(p.nbytes for p in model.parameters()) == predicted.weights_bytes
    assert sum(p.grad.nbytes for p in model.parameters()) == predicted.gradients_bytes
    kept = state_tensors(torch.optim.AdamW(model.parameters()))
    assert sum(tensor.bytes for tensor in kept if tensor.name != "step") == predicted.optimiser_bytes


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
def test_every_stage_holds_the_micro_batches_of_a_run(schedule, chunks):
    """Micro-batches alive from the tick-by-tick run, times the bytes that a real block saves, times the layers of a
    chunk.
    """
    layer, count = SMALL.groups[0]
    block = TransformerBlock(layer, hidden=SMALL.hidden, kernels="eager", dropout=0.1, dtype=torch.float32)
    block_bytes = saved_bytes(block, torch.randn(2, 14, SMALL.hidden, requires_grad=True))
    training = replace(FROM_TORCH, pp=3, schedule=schedule, chunks=chunks, micro_batches=9)
    for stage, alive in enumerate(peak_alive(schedule=schedule, pp=3, micro_batches=9, chunks=chunks)):
        predicted = rank_memory(training, stage=stage, micro_batch=2, sequence=14)
        assert predicted.layer_activations_bytes == pytest.approx(alive * block_bytes * count / (3 * chunks))


def test_a_pipeline_does_not_shrink_the_first_stage_under_1f1b():
    alone = rank_memory(FROM_TORCH, stage=0, micro_batch=2, sequence=14)
    first, second, last = (
        rank_memory(replace(FROM_TORCH, pp=3), stage=stage, micro_batch=2, sequence=14) for stage in range(3)
    )
    assert first.layer_activations_bytes == alone.layer_activations_bytes
    assert (second.layer_activations_bytes, last.layer_activations_bytes) == (
        first.layer_activations_bytes * 2 / 3,
        first.layer_activations_bytes / 3,
    )
    assert (first.head_bytes, second.head_bytes, second.embedding_bytes, last.embedding_bytes) == (0, 0, 0, 0)
    assert last.head_bytes == alone.head_bytes


# Korthikanti et al., arXiv:2205.05198, table 3: heads, hidden, layers, pipeline stages, micro-batch, micro-batches; t
# = 8, s = 2048, v = 51200.
KORTHIKANTI = {
    "22B": (64, 6144, 48, 1, 4, 1),
    "175B": (96, 12288, 96, 8, 1, 64),
    "530B": (128, 20480, 105, 35, 1, 280),
    "1T": (160, 25600, 128, 64, 1, 512),
}


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikanti_figure_1(name):
    """All four models are over 80 GB with tensor parallelism alone, and under it with sequence parallelism and
    selective recompute.
    """
    heads, hidden, layers, pp, micro_batch, micro_batches = KORTHIKANTI[name]
    training = Training(
        model=gpt(heads=heads, hidden=hidden, layers=layers, vocab=51200, positions=2048),
        recipe="megatron",
        zero_stage=0,
        dp=1,
        tp=8,
        pp=pp,
        sequence_parallel=False,
        schedule="1f1b",
        micro_batches=micro_batches,
        bytes_per_element=2,
        kernels="korthikanti",
        dropout=True,
        recompute="none",
    )
    baseline = largest_rank_memory(training, micro_batch=micro_batch, sequence=2048)
    present = largest_rank_memory(
        replace(training, sequence_parallel=True, recompute="selective"), micro_batch=micro_batch, sequence=2048
    )
    assert present.total_bytes < 80e9 < baseline.total_bytes
    # Table 2 on the first stage: L * sbh * (10 + 24/t + 5as/(ht)), and sbhp dropout mask of the embedding (section
    # 4.3).
    first = rank_memory(training, stage=0, micro_batch=micro_batch, sequence=2048)
    per_layer = 2048 * micro_batch * hidden * (10 + 24 / 8) + 5 * heads * 2048**2 * micro_batch / 8
    assert first.layer_activations_bytes == pytest.approx(layers * per_layer)
    assert first.embedding_bytes == 2048 * micro_batch * hidden * pp


LLAMA = Training(
    model=Model(
        name="llama",
        hidden=4096,
        vocab=128256,
        groups=(
            (
                Layer(
                    attention=Attention(num_heads=32, num_kv_heads=8, head_dim=128),
                    mlp=DenseMlp(intermediate=14336, gated=True, activation="silu"),
                    norm="rmsnorm",
                    num_norms=2,
                ),
                32,
            ),
        ),
        tied_head=False,
        max_context=8192,
    ),
    recipe="megatron",
    zero_stage=1,
    dp=10,
    tp=4,
    pp=2,
    sequence_parallel=True,
    schedule="1f1b",
    micro_batches=20,
    bytes_per_element=2,
    kernels="fused",
    dropout=False,
    recompute="none",
)


@pytest.mark.parametrize(
    "training",
    [
        LLAMA,
        replace(LLAMA, recompute="full"),
        replace(LLAMA, schedule="gpipe"),
        replace(LLAMA, kernels="korthikanti"),
        replace(LLAMA, pp=1),
    ],
    ids=["1f1b", "full recompute", "gpipe", "explicit attention", "no pipeline"],
)
@pytest.mark.parametrize("usable_bytes", [40e9, 80e9, 141e9])
def test_the_largest_fits_and_the_next_does_not(training, usable_bytes):
    largest = largest_micro_batch(training, sequence=2048, usable_bytes=usable_bytes)
    assert largest >= 1 or training.schedule == "gpipe" or training.kernels == "korthikanti"
    if largest:
        assert largest_rank_memory(training, micro_batch=largest, sequence=2048).total_bytes <= usable_bytes
    assert largest_rank_memory(training, micro_batch=largest + 1, sequence=2048).total_bytes > usable_bytes

    tokens = largest_sequence(training, micro_batch=1, usable_bytes=usable_bytes)
    assert tokens % 4 == 0
    assert largest_rank_memory(training, micro_batch=1, sequence=tokens).total_bytes <= usable_bytes
    assert largest_rank_memory(training, micro_batch=1, sequence=tokens + 4).total_bytes > usable_bytes


def test_nothing_fits_beside_states_that_do_not():
    assert largest_micro_batch(LLAMA, sequence=2048, usable_bytes=5e9) == 0
    assert largest_sequence(LLAMA, micro_batch=1, usable_bytes=5e9) == 0


def test_parts_sum_to_the_total():
    moments = rank_moments(
        replace(LLAMA, zero_stage=3, gathered_layers=2, recompute="full"), stage=1, micro_batch=3, sequence=2048
    )
    for memory in moments:
        parts = (
            memory.layer_activations_bytes,
            memory.embedding_bytes,
            memory.head_bytes,
            memory.recomputed_bytes,
            memory.gathered_bytes,
        )
        assert memory.total_bytes == memory.states.total_bytes + sum(parts)
        assert isinstance(memory.total_bytes, int)
    forward, loss, backward = moments
    assert loss.total_bytes - forward.total_bytes == 2 * 4 * 3 * 2048 * 128256 / 4  # of the same logits, twice more
    assert forward.recomputed_bytes == backward.head_bytes == 0 < min(forward.head_bytes, backward.recomputed_bytes)
    # Whole layers in bf16, a quarter of each on this tensor rank: 2 * 218,103,808 / 4 plus the norms. The head is
    # the root's and stays.
    layer = 2 * (218_103_808 / 4 + 2 * 4096)
    assert backward.gathered_bytes == forward.gathered_bytes == 2 * layer + 2 * 128256 * 4096 / 4


def test_the_worst_moment_is_the_larger_one():
    """With full recompute, a wide vocabulary makes the loss the worst moment, a narrow one with explicit attention
    the last layer's return.
    """
    full = replace(LLAMA, recompute="full", pp=1)
    deep_training = replace(full, kernels="korthikanti", model=replace(full.model, vocab=1024))
    wide, deep = (rank_memory(training, stage=0, micro_batch=1, sequence=2048) for training in (full, deep_training))
    assert (wide.moment, deep.moment) == ("loss", "backward")
    for training in (full, deep_training):
        moments = rank_moments(training, stage=0, micro_batch=1, sequence=2048)
        assert rank_memory(training, stage=0, micro_batch=1, sequence=2048).total_bytes == max(
            moment.total_bytes for moment in moments
        )
    # Without recompute nothing comes back, and the loss is never the smaller moment.
    assert rank_memory(replace(LLAMA, pp=1), stage=0, micro_batch=1, sequence=2048).moment == "loss"


def test_recompute_brings_back_the_largest_kind_of_layer():
    layer, _ = LLAMA.model.groups[0]
    wide = replace(layer, mlp=replace(layer.mlp, intermediate=2 * 14336))
    mixed = replace(LLAMA, recompute="full", model=replace(LLAMA.model, groups=((layer, 31), (wide, 1))))
    only_wide = replace(LLAMA, recompute="full", model=replace(LLAMA.model, groups=((wide, 32),)))
    *_, one = rank_moments(mixed, stage=0, micro_batch=1, sequence=2048)
    *_, all_wide = rank_moments(only_wide, stage=0, micro_batch=1, sequence=2048)
    assert one.recomputed_bytes == all_wide.recomputed_bytes
    # Gate, up and the down projection's input are 14336 / 4 columns wider.
    *_, narrow = rank_moments(replace(LLAMA, recompute="full"), stage=0, micro_batch=1, sequence=2048)
    assert one.recomputed_bytes - narrow.recomputed_bytes == 3 * 2048 * 14336 / 4 * 2
    assert SPREAD_EVENLY in one.assumes
    assert SPREAD_EVENLY not in narrow.assumes


def test_saved_rows_say_where_a_layers_bytes_come_from():
    memory = rank_memory(LLAMA, stage=0, micro_batch=3, sequence=2048)
    assert dict(memory.saved_rows)["gate"] == 3 * 2048 * 14336 // 4 * 2
    assert memory.layer_activations_bytes == memory.in_flight * memory.num_layers * sum(
        num_bytes for _, num_bytes in memory.saved_rows
    )
    assert memory.num_layers == 16


def test_autocast_copies_wait_with_every_micro_batch_and_zero_does_not_shard_them():
    plain = replace(LLAMA, recipe="fp32", schedule="1f1b")
    first = rank_memory(replace(plain, recipe="autocast"), stage=0, micro_batch=1, sequence=2048)
    # Two micro-batches in flight, 16 layers, a quarter of 218,103,808 matrix parameters each, two bytes.
    assert first.weight_copies_bytes == 2 * 16 * 218_103_808 / 4 * 2
    assert rank_memory(plain, stage=0, micro_batch=1, sequence=2048).weight_copies_bytes == 0
    sharded = rank_memory(
        replace(plain, recipe="autocast", zero_stage=3, gathered_layers=1), stage=0, micro_batch=1, sequence=2048
    )
    assert sharded.weight_copies_bytes == first.weight_copies_bytes
    forward, _, backward = rank_moments(
        replace(plain, recipe="autocast", recompute="full"), stage=1, micro_batch=1, sequence=2048
    )
    assert backward.weight_copies_bytes == 218_103_808 / 4 * 2
    assert forward.weight_copies_bytes == 16 * backward.weight_copies_bytes + 2 * 128256 * 4096 / 4


def test_padding_makes_room_for_every_tensor_rank():
    gpt3 = gpt(heads=96, hidden=12288, layers=96, vocab=50257, positions=2048)
    padded = replace(LLAMA, model=gpt3, tp=8, pp=8, kernels="korthikanti", dropout=True, vocab_multiple=128 * 8)
    assert padded.vocab == 51200
    last = rank_memory(padded, stage=7, micro_batch=1, sequence=2048)
    assert last == rank_memory(
        replace(padded, model=replace(gpt3, vocab=51200), vocab_multiple=None), stage=7, micro_batch=1, sequence=2048
    )
    assert last.vocab == 51200
    with pytest.raises(ValueError, match="tp=8 must divide vocab=50257; pad the vocabulary: to a multiple of 1024"):
        replace(padded, vocab_multiple=None)
    with pytest.raises(ValueError, match="tp=8 must divide vocab=50260; pad"):
        replace(padded, vocab_multiple=20)


def test_zero_shards_states_and_never_activations():
    one, three = (
        rank_memory(replace(LLAMA, zero_stage=stage, gathered_layers=1), stage=0, micro_batch=2, sequence=2048)
        for stage in (1, 3)
    )
    assert three.states.total_bytes < one.states.total_bytes
    assert three.activations_bytes == one.activations_bytes


def test_twice_the_micro_batch_is_twice_the_activations_and_the_same_states():
    once, twice = (rank_memory(LLAMA, stage=0, micro_batch=micro_batch, sequence=2048) for micro_batch in (3, 6))
    assert twice.activations_bytes == 2 * once.activations_bytes
    assert twice.states == once.states


def test_experts_fill_memory_by_their_total():
    dense, _ = LLAMA.model.groups[0]
    sparse = replace(dense, mlp=MoeMlp(num_experts=10, top_k=1, expert=dense.mlp))
    experts = replace(LLAMA, model=replace(LLAMA.model, groups=((sparse, 32),)), ep=5, expert_tp=4)
    one, ten = (rank_memory(training, stage=0, micro_batch=1, sequence=2048) for training in (LLAMA, experts))
    # Ten MLPs over five expert ranks: two of them where the dense model has one; each is shared by 2 replicas instead
    # of 10.
    mlp_parameters = 3 * 4096 * 14336 * 16 / 4
    more = 2 * 6 + 2 * 12 / 2 - (6 + 12 / 10)
    router = 10 * 4096 * 16 * (6 + 12 / 10)
    assert ten.states.total_bytes - one.states.total_bytes == pytest.approx(mlp_parameters * more + router)


def test_refusals():
    assert (
        rank_memory(replace(LLAMA, zero_stage=3, gathered_layers=1), stage=0, micro_batch=1, sequence=4).gathered_bytes
        > 0
    )
    with pytest.raises(ValueError, match="gathered_layers must be stated at zero_stage=3"):
        rank_memory(replace(LLAMA, zero_stage=3), stage=0, micro_batch=1, sequence=4)
    with pytest.raises(ValueError, match="stage=2 must be less than pp=2"):
        rank_memory(LLAMA, stage=2, micro_batch=1, sequence=4)
    with pytest.raises(ValueError, match="tp=4 must divide sequence=6"):
        rank_memory(LLAMA, stage=0, micro_batch=1, sequence=6)
    with pytest.raises(ValueError, match="usable_bytes=0 must be greater than 0"):
        largest_micro_batch(LLAMA, sequence=4, usable_bytes=0)
    assert KERNELS["fused"].name == LLAMA.kernels


def small_block():
    ((layer, _),) = SMALL.groups
    return TransformerBlock(layer, hidden=SMALL.hidden, kernels="eager", dropout=0.0, dtype=torch.float32)


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(("first", "last"), [(True, True), (True, False), (False, True), (False, False)])
def test_gathered_weights_are_those_of_torchs_blocks_and_tables(ahead, first, last):
    training = replace(FROM_TORCH, zero_stage=3, dp=4, gathered_layers=ahead)
    whole = [small_block() for _ in range(ahead)]
    whole += [nn.Embedding(SMALL.vocab, SMALL.hidden)] * first + [
        nn.Linear(SMALL.hidden, SMALL.vocab, bias=False)
    ] * last
    held = sum(weight.nbytes for module in whole for weight in module.parameters())
    assert gathered_bytes(training, first=first, last=last) == held


@pytest.mark.parametrize(("layers", "waiting"), [(6, 1), (2, 3)])
def test_copies_are_as_large_as_torchs_matrices_cast(layers, waiting):
    training = replace(FROM_TORCH, recipe="autocast", bytes_per_element=2)
    matrices = [weight for _ in range(layers) for weight in small_block().parameters() if weight.dim() == 2]
    copied = sum(weight.to(torch.bfloat16).nbytes for _ in range(waiting) for weight in matrices)
    assert stage_copies_bytes(training, num_layers=layers, in_flight=waiting) == copied


def test_a_host_that_updates_sends_and_gets_every_value_once():
    block = small_block()
    for weight in block.parameters():
        weight.grad = torch.zeros_like(weight)
    crossed = sum(weight.grad.nbytes + weight.nbytes for weight in block.parameters())
    held = sum(weight.numel() for weight in block.parameters())
    assert host_traffic_bytes(FROM_TORCH, sharded_parameters=held) == crossed


def test_a_pass_takes_the_flops_that_torch_counts():
    """On machines that make one FLOP a second and wait for no memory."""
    job = Job(
        model=SMALL,
        sequence=14,
        global_batch=1,
        recipe="fp32",
        kernels="eager",
        causal="full",
        sequence_parallel=False,
        dropout=False,
        tables_as_layers=False,
        expert_tp=1,
        dispatch_bytes=2,
    )
    cluster = Cluster(
        num_gpus=1,
        domain_gpus=1,
        peak_flops_per_s=1.0,
        gemm_flops_per_s=1.0,
        attention_flops_per_s=1.0,
        memory_bytes_per_s=1e30,
        usable_bytes=1e9,
        fast_bytes_per_s_one_way=1.0,
        slow_bytes_per_s_one_way=1.0,
        link_efficiency=1.0,
        alpha_s=0.0,
    )
    x = torch.randn(1, 14, SMALL.hidden)
    times = pass_times(job=job, cluster=cluster, tp=1, cp=1, rates=(1.0, 1.0))
    assert times.layer_s == pytest.approx(counted_flops(small_block(), x).total)
    head = nn.Linear(SMALL.hidden, SMALL.vocab, bias=False)
    assert times.head_s == pytest.approx(counted_flops(head, x).total)
