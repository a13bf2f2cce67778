"""Training set-up: everything that decides a rank's memory except micro-batch and sequence, and the sentences that
its bytes rest on.
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.parameter_buckets import check_vocab_split, padded_vocab
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.activation_kernels import KERNELS, Kernels
from threeloops.training_loop.memory.activations import CROSS_ENTROPIES
from threeloops.training_loop.memory.recipes import Recipe, recipe_named

# What waits in the host's memory: each word means what stands before it, too.
OFFLOADS = ("nothing", "optimiser", "gradients", "weights")
NOT_COUNTED = (
    "gradients of activations (those of the logits are), communication buffers, workspace, the allocator's"
    " fragmentation, the CUDA context"
)
SPREAD_EVENLY = "every stage holds the kinds of layers in the model's proportion"
CROSS_ENTROPIES_IN_WORDS = {
    "plain": "plain: two more fp32 tensors of logits stand beside the one that waits, while its backward pass begins",
    "in-place": "in place: what it keeps becomes the logits' gradient",
    "sliced": "sliced: logits exist a slice at a time, and their gradients are made at once",
}
AUTOCAST_COPIES = (
    "autocast is entered once per micro-batch; the residual stream is fp32; queries, keys, values, gate and up are"
    " separate linear layers"
)


ON_THE_LAST_TOKEN = "the head runs over all tokens, and the last one's logits are picked, as in transformers"
WITHOUT_A_HEAD = "the last token's output is the embedding; what a loss over pairs of them keeps is not counted"
RING = (
    "context ranks share what ZeRO shards with the replicas; of the keys and values that pass by none is kept for the"
    " backward pass, and the pieces in use and on their way are not counted"
)
ON_THE_HOST = {
    "optimiser": "master weights and moments wait in the host's memory, and are updated there",
    "gradients": "gradients, master weights and moments wait in the host's memory (ZeRO-Offload); what is on its way"
    " is not counted",
    "weights": "the GPU has only what it gathers: shards of weights, gradients and moments wait in the host's memory"
    " (FSDP2's CPUOffloadPolicy, ZeRO-Infinity); what is on its way is not counted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained: everything that decides memory except micro-batch and sequence."""

    model: Model
    recipe: str | Recipe
    zero_stage: int
    dp: int
    tp: int
    pp: int
    sequence_parallel: bool
    schedule: str
    micro_batches: int  # per step and pipeline
    bytes_per_element: int  # of activations
    kernels: str | Kernels
    dropout: bool
    recompute: str
    chunks: int = 1  # per stage, when interleaved
    ep: int = 1
    expert_tp: int | None = None
    # zero_stage 3: layers whose whole weights are there at once; 1, or 2 with prefetch
    gathered_layers: int | None = None
    # embedding and head take the place of a layer each when stages are dealt out: see
    # parameter_buckets.layers_on_stage
    tables_as_layers: bool = False
    # the vocabulary is padded up to a multiple of this; Megatron-LM: 128 * tp; None: it stays as it is
    vocab_multiple: int | None = None
    # see activations.CROSS_ENTROPIES; torch's own unless told, which needs most
    cross_entropy: str = "plain"
    cp: int = 1  # context-parallel ranks: each has its part of every sequence, and of what ZeRO shards
    offload: str = "nothing"  # see OFFLOADS
    classes: int | None = None  # None: a language model; else see task_heads: a head for so many classes, 0: no head

    def __post_init__(self) -> None:
        check_vocab_split(vocab=self.vocab, tp=self.tp)
        checks.one_of(CROSS_ENTROPIES, cross_entropy=self.cross_entropy)
        checks.one_of(OFFLOADS, offload=self.offload)
        checks.count(cp=self.cp)
        if self.classes is not None:
            self._check_task()
        if self.cp > 1 and any(isinstance(layer.attention, DeltaState | StateSpace) for layer, _ in self.model.groups):
            raise ValueError(
                f"cp={self.cp}: how the ranks of a context group pass on a recurrent state is not counted; try cp=1"
            )
        if self.cp > 1 and self.used_kernels.attention == "explicit":
            raise ValueError(
                f"cp={self.cp} needs an attention that keeps no scores, which kernels={self.used_kernels.name!r} keep;"
                " try kernels='sdpa' or 'fused'"
            )

    def _check_task(self) -> None:
        checks.count(at_least=0, classes=self.classes)
        for name in ("pp", "cp"):
            if getattr(self, name) > 1:
                raise ValueError(
                    f"classes={self.classes} is counted for {name}=1, not for {name}={getattr(self, name)}"
                )
        if self.cross_entropy != "plain":
            raise ValueError(
                f"cross_entropy={self.cross_entropy!r} has no logits of a vocabulary where"
                f" classes={self.classes}: leave it out"
            )

    def tokens_here(self, sequence: int) -> int:
        """Tokens of one sequence on one of cp ranks, an early and a late run of them.

        Formula:  sequence / cp
        Raises:   ValueError where the 2 * cp runs would be uneven
        Source:   Llama team, 2024, arXiv:2407.21783, section 3.3.2
        Counted:  simulate.training_loop.context_ring.pieces
        """
        if self.cp > 1:
            checks.divides(part="cp", part_value=self.cp, whole="sequence", whole_value=sequence, times=2)
        return sequence // self.cp

    @property
    def used_kernels(self) -> Kernels:
        if isinstance(self.kernels, Kernels):
            return self.kernels
        checks.one_of(KERNELS, kernels=self.kernels)
        return KERNELS[self.kernels]

    @property
    def vocab(self) -> int:
        """Rows of the embedding table and columns of the head, padding included."""
        return padded_vocab(vocab=self.model.vocab, multiple=1 if self.vocab_multiple is None else self.vocab_multiple)

    @property
    def used_recipe(self) -> Recipe:
        return self.recipe if isinstance(self.recipe, Recipe) else recipe_named(self.recipe)

    @property
    def assumes(self) -> tuple[str, ...]:
        """The sentences that hold for this set-up, to be printed with its bytes."""
        mixed = (SPREAD_EVENLY,) if len(self.model.groups) > 1 and self.pp > 1 else ()
        loss = (f"the cross-entropy is {CROSS_ENTROPIES_IN_WORDS[self.cross_entropy]}",)
        if self.classes is not None:
            loss = (ON_THE_LAST_TOKEN if self.classes else WITHOUT_A_HEAD,)
        return (
            *mixed,
            *loss,
            *((RING,) if self.cp > 1 else ()),
            *((ON_THE_HOST[self.offload],) if self.offload != "nothing" else ()),
            *((AUTOCAST_COPIES,) if self.used_recipe.autocast else ()),
            f"not counted: {NOT_COUNTED}",
        )
