"""Count: run transformer blocks forward on every tensor-parallel rank and keep what each operation's backward pass
will ask for.

Nothing here knows how many bytes a block keeps. Each operation names the tensors that its own derivative needs; a
tensor that several operations need is kept once; an operation that will be run again keeps nothing. The blocks are
real ones, so a rank that loses a slice gives wrong outputs.

>>> blocks = Blocks(layers=1, heads=2, hidden=6, dtype=np.float16)
>>> x = blocks.inputs(batch=1, sequence=3)
>>> blocks.peak_bytes(x, tp=1, sequence_parallel=False, recompute="full") == blocks.peak_bytes(
...     x, tp=1, sequence_parallel=False, recompute="none"
... )
True

Source: Korthikanti et al., 2022, arXiv:2205.05198, figures 2 to 6 (what is computed where)
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Tape:
    """The tensors that one rank keeps."""

    def __init__(self) -> None:
        self._kept: dict[int, Array] = {}

    def keep(self, *tensors: Array) -> None:
        """Keep tensors; another view of what is already kept costs nothing."""
        for tensor in tensors:
            while isinstance(tensor.base, np.ndarray):
                tensor = tensor.base
            self._kept[id(tensor)] = tensor

    def together_with(self, other: "Tape") -> int:
        """Bytes of both tapes, what they share counted once."""
        return sum(tensor.nbytes for tensor in (self._kept | other._kept).values())


class Blocks:
    """A stack of GPT blocks with explicit attention, GELU, an MLP four times as wide, and dropout behind softmax and
    both halves.
    """

    def __init__(self, *, layers: int, heads: int, hidden: int, dtype: Any) -> None:
        rng = np.random.default_rng(7)
        shapes = {
            "q": (hidden, hidden),
            "k": (hidden, hidden),
            "v": (hidden, hidden),
            "o": (hidden, hidden),
            "in": (hidden, 4 * hidden),
            "out": (4 * hidden, hidden),
        }
        self.heads, self.hidden, self.dtype = heads, hidden, dtype
        self.weights = [
            {name: (rng.standard_normal(shape) / 4).astype(dtype) for name, shape in shapes.items()}
            for _ in range(layers)
        ]

    def inputs(self, *, batch: int, sequence: int) -> Array:
        """What the first block reads."""
        return np.random.default_rng(8).standard_normal((batch, sequence, self.hidden)).astype(self.dtype)

    def outputs(self, x: Array, *, tp: int, sequence_parallel: bool) -> Array:
        """What the last block writes, put together from all ranks."""
        streams = self._scattered(x, tp, sequence_parallel)
        for weights in self.weights:
            streams = self._block(streams, weights, [Tape() for _ in range(tp)], sequence_parallel, selective=False)
        return np.concatenate(streams, axis=1) if sequence_parallel else streams[0]

    def peak_bytes(self, x: Array, *, tp: int, sequence_parallel: bool, recompute: str) -> int:
        """The most that the first rank keeps at any moment between the end of the forward and the end of the backward
        pass.

        recompute: "none"; "selective", softmax and what surrounds it are run again in the backward pass; "full", a
        block keeps its input alone and is run again, as a whole, when its turn in the backward pass comes.
        """
        streams, stored, read = self._scattered(x, tp, sequence_parallel), [Tape() for _ in range(tp)], []
        for weights in self.weights:
            read.append(streams)
            if recompute == "full":
                for tape, stream in zip(stored, streams, strict=True):
                    tape.keep(stream)
            tapes = [Tape() for _ in range(tp)] if recompute == "full" else stored
            streams = self._block(streams, weights, tapes, sequence_parallel, selective=recompute == "selective")
        if recompute != "full":
            return stored[0].together_with(Tape())
        again = [Tape() for _ in range(tp)]
        # the first to be run again, while all inputs are still there
        self._block(read[-1], self.weights[-1], again, sequence_parallel, selective=False)
        return stored[0].together_with(again[0])

    def _block(
        self,
        streams: list[Array],
        weights: dict[str, Array],
        tapes: list[Tape],
        sequence_parallel: bool,
        *,
        selective: bool,
    ) -> list[Array]:
        attended = self._half(
            streams,
            tapes,
            sequence_parallel,
            lambda whole, tape, rank: self._attention(whole, weights, tape, rank, len(tapes), selective),
        )
        return self._half(
            attended,
            tapes,
            sequence_parallel,
            lambda whole, tape, rank: self._mlp(whole, weights, tape, rank, len(tapes)),
        )

    def _half(self, streams: list[Array], tapes: list[Tape], sequence_parallel: bool, body: Any) -> list[Array]:
        """Norm, body, dropout, residual: on the stream, which sequence parallelism cuts; the body always sees whole
        sequences.
        """
        normed = []
        for stream, tape in zip(streams, tapes, strict=True):
            tape.keep(stream)
            normed.append(
                (
                    (stream - stream.mean(axis=-1, keepdims=True))
                    / (stream.std(axis=-1, keepdims=True) + self.dtype(1e-3))
                ).astype(self.dtype)
            )
            tape.keep(normed[-1])  # the projections read it; a rank keeps its own part and gathers the others' again
        wholes = [np.concatenate(normed, axis=1)] * len(tapes) if sequence_parallel else normed
        total = sum(body(whole, tape, rank) for rank, (whole, tape) in enumerate(zip(wholes, tapes, strict=True)))
        summed = self._scattered(total, len(tapes), sequence_parallel)
        return [stream + self._dropout(part, tape) for stream, part, tape in zip(streams, summed, tapes, strict=True)]

    def _attention(
        self, whole: Array, weights: dict[str, Array], tape: Tape, rank: int, tp: int, selective: bool
    ) -> Array:
        mine = slice(rank * self.hidden // tp, (rank + 1) * self.hidden // tp)
        batch, sequence = whole.shape[:2]
        q, k, v = (
            (whole @ weights[name][:, mine]).reshape(batch, sequence, self.heads // tp, -1).swapaxes(1, 2)
            for name in "qkv"
        )
        tape.keep(q, k, v)
        inside = Tape() if selective else tape
        scores = np.exp((q @ k.swapaxes(2, 3)) / math.sqrt(q.shape[-1]))
        softmax = scores / scores.sum(axis=-1, keepdims=True)
        inside.keep(softmax)  # softmax's derivative needs its output
        dropped = self._dropout(softmax, inside)
        inside.keep(dropped)
        context = (dropped @ v).swapaxes(1, 2).reshape(batch, sequence, -1)
        tape.keep(context)
        return np.asarray(context @ weights["o"][mine])

    def _mlp(self, whole: Array, weights: dict[str, Array], tape: Tape, rank: int, tp: int) -> Array:
        mine = slice(rank * 4 * self.hidden // tp, (rank + 1) * 4 * self.hidden // tp)
        wide = whole @ weights["in"][:, mine]
        tape.keep(wide)  # GELU's derivative needs its input
        gelu = wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))) / 2
        tape.keep(gelu)
        return np.asarray(gelu @ weights["out"][mine])

    def _dropout(self, x: Array, tape: Tape) -> Array:
        """Dropout that happens to drop nothing: its mask, one byte per value, is kept all the same."""
        mask = np.ones(x.shape, dtype=np.bool_)
        tape.keep(mask)
        return np.asarray(x * mask)

    def _scattered(self, x: Array, tp: int, sequence_parallel: bool) -> list[Array]:
        """A stream for each rank: its part of the sequence, or a whole copy."""
        return [part.copy() for part in np.split(x, tp, axis=1)] if sequence_parallel else [x.copy() for _ in range(tp)]
