"""Classifiers and embeddings: the class of transformers on meta tensors, and what autograd keeps of a step."""

import pytest

from threeloops.models.hf_config import from_hf_config
from threeloops.training_loop.memory.fit import Training, rank_memory, rank_moments
from threeloops.training_loop.memory.task_heads import task_head_activations, task_head_buckets

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from threeloops.measure.models.transformer_block import TransformerBlock  # noqa: E402
from threeloops.measure.training_loop.saved_tensors import saved_bytes  # noqa: E402
from threeloops.measure.training_loop.watched_step import PlainModel  # noqa: E402

SIZES = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES |= {"intermediate_size": 160, "vocab_size": 300}


def config(kind: str):
    return transformers.AutoConfig.for_model(kind, **SIZES)


def read(kind: str):
    return from_hf_config({**config(kind).to_dict(), "architectures": None})


def classifier(kind: str, classes: int) -> int:
    """Parameters of the class that fine-tunes this type; of the bare decoder, without classes."""
    own = config(kind)
    own.num_labels = classes
    which = transformers.AutoModelForSequenceClassification if classes else transformers.AutoModel
    with torch.device("meta"):
        return sum(weight.numel() for weight in which.from_config(own).parameters())


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral", "gemma"])
@pytest.mark.parametrize("classes", [0, 1, 7])
def test_parameters_are_those_of_the_class(kind, classes):
    assert task_head_buckets(read(kind), classes=classes).total == classifier(kind, classes)


class Task(torch.nn.Module):
    """A decoder whose head runs over all tokens and whose last one is picked."""

    def __init__(self, model, classes: int, recompute: str) -> None:
        super().__init__()
        ((layer, count),) = model.groups
        plain = PlainModel(model, kernels="sdpa", dtype=torch.float32, every=0)
        kind = {"hidden": model.hidden, "kernels": "sdpa", "dropout": 0.0, "dtype": torch.float32}
        self.table, self.norm = plain.table, plain.norm
        self.blocks = torch.nn.ModuleList(TransformerBlock(layer, **kind, recompute=recompute) for _ in range(count))
        self.score = torch.nn.Linear(model.hidden, classes, bias=False) if classes else None

    def forward(self, ids):
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.score is None:
            return x[:, -1].sum()
        rows, last = torch.arange(len(ids)), torch.full((len(ids),), ids.shape[1] - 1)
        return torch.nn.functional.cross_entropy(self.score(x)[rows, last], torch.zeros(len(ids), dtype=torch.int64))


def setup(**other) -> Training:
    asked = {"recipe": "fp32", "zero_stage": 0, "dp": 1, "tp": 1, "pp": 1, "sequence_parallel": False}
    asked |= {"schedule": "1f1b", "micro_batches": 1, "bytes_per_element": 4, "kernels": "sdpa", "dropout": False}
    return Training(model=read("llama"), **asked | {"recompute": "none"} | other)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("classes", [0, 5])
def test_activations_are_what_autograd_keeps(recompute, classes):
    training = setup(classes=classes, recompute=recompute)
    measured = saved_bytes(Task(training.model, classes, recompute), torch.zeros(3, 14, dtype=torch.int64))
    forward, *_ = rank_moments(training, stage=0, micro_batch=3, sequence=14)
    head = task_head_activations(
        norm="rmsnorm", classes=classes, hidden=96, sequence=14, micro_batch=3, bytes_per_element=4, kernels="sdpa"
    )
    rest = forward.activations_bytes - forward.head_bytes
    assert measured == rest + head.total_bytes + 4 * bool(classes)  # cross-entropy keeps one more fp32 value
    assert forward.head_bytes == head.total_bytes


@pytest.mark.parametrize("autocast", [False, True])
def test_log_probabilities_are_as_wide_as_autograd_keeps_them(autocast):
    kept: set[tuple[tuple[int, ...], int]] = set()

    def keep(tensor):
        kept.add((tuple(tensor.shape), tensor.element_size()))
        return tensor

    wide = torch.float32 if autocast else torch.bfloat16
    states, score = torch.randn(3, 14, 96, dtype=wide), torch.nn.Linear(96, 5, dtype=wide)
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast),
    ):
        torch.nn.functional.cross_entropy(score(states)[:, -1], torch.zeros(3, dtype=torch.int64))
    head = task_head_activations(
        norm="rmsnorm",
        classes=5,
        hidden=96,
        sequence=14,
        micro_batch=3,
        bytes_per_element=2,
        kernels="sdpa",
        autocast=autocast,
    )
    (one,) = (item for item in head.items if item.name == "log-probabilities")
    assert (one.shape, one.bytes_per_element) in kept
    assert one.bytes_per_element == (4 if autocast else 2)


def test_states_and_gathered_tables_have_one_table():
    whole = rank_memory(setup(classes=5), stage=0, micro_batch=1, sequence=8)
    assert whole.states.weights_bytes == 4 * classifier("llama", 5)
    language = setup(recipe="fsdp2-mixed", zero_stage=3, dp=4, gathered_layers=1, bytes_per_element=2)
    task = setup(recipe="fsdp2-mixed", zero_stage=3, dp=4, gathered_layers=1, bytes_per_element=2, classes=5)
    both = [rank_moments(one, stage=0, micro_batch=1, sequence=8)[0].gathered_bytes for one in (language, task)]
    assert both[0] - both[1] == 2 * 300 * 96


def test_what_cannot_be_is_refused():
    for name in ("pp", "cp"):
        with pytest.raises(ValueError, match=f"classes=5 is counted for {name}=1, not for {name}=2"):
            setup(classes=5, **{name: 2})
    with pytest.raises(ValueError, match="classes=-1 must be a whole number of at least 0"):
        setup(classes=-1)
    with pytest.raises(
        ValueError, match="cross_entropy=.sliced. has no logits of a vocabulary where classes=5: leave it out"
    ):
        setup(classes=5, cross_entropy="sliced")
