"""Task heads: what stands on a decoder in place of a language model's head while a classifier or a model of embeddings
is trained, and what it keeps.

>>> kept = task_head_activations(
...     norm="rmsnorm", classes=3, hidden=4096, sequence=512, micro_batch=8, bytes_per_element=2, kernels="fused"
... )
>>> kept.rows[-3:]
(('log-probabilities', 48), ('targets', 64), ('places of the last tokens', 128))

Source: Hugging Face transformers 5.23.0, modeling_layers.py (GenericForSequenceClassification)
"""

from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.parameter_buckets import ParameterBuckets, buckets_sum, stage_buckets
from threeloops.training_loop.memory.activation_kernels import FP32_BYTES, INDEX_BYTES, Kernels, SavedTensor
from threeloops.training_loop.memory.activations import LOG_PROBABILITIES, Activations, head_activations


def task_head_buckets(model: Model, *, classes: int) -> ParameterBuckets:
    """Parameters of a decoder whose head is a matrix from hidden to classes, or nothing.

    Formula:  decoder and table + hidden * classes; 0 classes: an embedding of the text is what comes out
    Assumes:  every tensor rank holds the matrix whole; it has no bias
    Source:   as the module
    Counted:  tests.training_loop.test_task_heads.classifier

    >>> from threeloops.models.catalogue import model
    >>> task_head_buckets(model("llama-3-8b"), classes=2).total
    7504932864.0
    """
    checks.count(at_least=0, classes=classes)
    body = stage_buckets(replace(model, tied_head=True, head_bias=False), stage=0, pp=1)
    return buckets_sum(body, ParameterBuckets(whole_others=model.hidden * classes))


def task_head_activations(
    *,
    norm: str,
    classes: int,
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    tp: int = 1,
    sequence_parallel: bool = False,
    autocast: bool = False,
) -> Activations:
    """What final norm, task head and loss keep.

    Formula:  what the final norm keeps + s*b*h * bytes_per_element (the head's input, with classes) + log-probabilities
              b * classes, targets and the places of b last tokens
    Assumes:  as in transformers the head runs over all tokens and the last one's logits are picked; without classes
              the last token's output is the embedding, and what a loss over pairs of them keeps is not counted
    Raises:   ValueError for fewer than 0 classes
    Source:   as the module
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    checks.count(at_least=0, classes=classes)
    whole = head_activations(
        norm=norm,
        vocab=tp * max(classes, 1),
        hidden=hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=bytes_per_element,
        kernels=kernels,
        tp=tp,
        sequence_parallel=sequence_parallel,
        autocast=autocast,
    )
    dropped = () if classes else ("head input", LOG_PROBABILITIES, "targets")
    shapes = {LOG_PROBABILITIES: (micro_batch, classes), "targets": (micro_batch,)}
    items = [replace(item, shape=shapes.get(item.name, item.shape)) for item in whole.items if item.name not in dropped]
    places = SavedTensor(
        name="places of the last tokens", part="head", shape=(2, micro_batch), bytes_per_element=INDEX_BYTES
    )
    logits_bytes = FP32_BYTES if autocast else bytes_per_element  # autocast widens them for cross-entropy
    narrow = [
        replace(item, bytes_per_element=logits_bytes) if item.name == LOG_PROBABILITIES else item for item in items
    ]
    return replace(whole, items=(*narrow, *((places,) if classes else ())))
