"""A serving run: requests arrive, one server takes steps, and every request's moments are told.

>>> from threeloops.simulate.product_loop.serving_policies import continuous_batching, static_batching
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> requests = [Request(0.0, 100, 5), Request(0.0, 100, 2), Request(0.0, 100, 2)]
>>> step_s = AffineStep(base_s=1.0)  # a step takes a second, whatever is in it
>>> for policy in (static_batching(slots=2), continuous_batching(slots=2, order="decode first")):
...     done = run(requests, step_s=step_s, policy=policy)
...     print(policy.name, [moments.finished_s for moments in done.moments])
static [5.0, 2.0, 7.0]
continuous, decode first [5.0, 2.0, 4.0]

Source: Yu et al., Orca, OSDI 2022 (continuous batching); Kwon et al., 2023, arXiv:2309.06180 (blocks, preemption);
        Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310 (chunked prefill)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from threeloops.simulate.product_loop.serving_play import played
from threeloops.simulate.product_loop.serving_policies import KVBlocks, Policy
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_server import Server
from threeloops.simulate.product_loop.serving_steps import Step, StepModel, Stretch

if TYPE_CHECKING:  # a run needs no numpy; columns of what came of it do
    import numpy as np
    from numpy.typing import NDArray

Seconds: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a run."""

    moments: list[Moments]  # of every request, in the order in which they were given
    steps: int
    busy_s: float  # in steps
    end_s: float
    kept: tuple[Step, ...] = ()  # every step, where they were asked for
    stretches: tuple[Stretch, ...] = ()  # of decode steps, where they were asked for

    @property
    def served(self) -> list[Moments]:
        """The requests that were not turned away."""
        return [moments for moments in self.moments if not moments.shed]

    def each(self, what: Callable[[Moments], float]) -> Seconds:
        """One number of every served request."""
        import numpy as np

        return np.array([what(moments) for moments in self.served], dtype=float)

    @property
    def waited_s(self) -> Seconds:
        """Arrival to slot, of every served request."""
        return self.each(lambda moments: moments.waited_s)

    @property
    def ttft_s(self) -> Seconds:
        """Arrival to first token, of every served request."""
        return self.each(lambda moments: moments.ttft_s)

    @property
    def tpot_s(self) -> Seconds:
        """The mean gap of every served request with at least two tokens."""
        return self.each(lambda moments: moments.tpot_s)[self.each(lambda moments: moments.request.output_tokens) > 1]

    @property
    def gaps_s(self) -> Seconds:
        """Every ITL of every request, where the run kept each token."""
        import numpy as np

        return np.array([gap for moments in self.served for gap in moments.gaps_s], dtype=float)

    @property
    def output_tokens(self) -> int:
        """Tokens that were made for served requests."""
        return sum(moments.request.output_tokens for moments in self.served)

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens over the whole run, from 0 to its end."""
        return self.output_tokens / self.end_s

    @property
    def useful_share(self) -> float:
        """The share of all slots' time, from 0 to the end of the run, that belongs to a request that has not ended."""
        slots = 1 + max(moments.slot for moments in self.served)
        return float(self.each(lambda moments: moments.finished_s - moments.admitted_s).sum()) / (slots * self.end_s)

    def goodput_per_s(self, *, ttft_s: float, tpot_s: float) -> float:
        """Requests per second that had their first token and their later ones in time; single tokens have no gap.
        The seconds are those of the whole run, from 0 to its end, so a run in which nothing is late stays a little
        under its rate of arrivals.
        """
        kept = sum(
            moments.ttft_s <= ttft_s and (math.isnan(moments.tpot_s) or moments.tpot_s <= tpot_s)
            for moments in self.served
        )
        return kept / self.end_s


def run(
    requests: Sequence[Request],
    *,
    step_s: StepModel,
    policy: Policy,
    blocks: KVBlocks | None = None,
    keep_steps: bool = False,
    each_token: bool = False,
    keep_stretches: bool = False,
) -> Run:
    """Serve all the requests on one server, to the last token.

    Assumes:  the scheduler takes no time; a prompt's blocks are taken whole when it is admitted; the first token comes
              at the end of the step that reads the last of the prompt, every later one with a decode step
    Raises:   ValueError for a request that the whole pool of blocks could not hold
    """
    keeps = {"keep_steps": keep_steps, "each_token": each_token, "keep_stretches": keep_stretches}
    server = Server(step_s=step_s, policy=policy, blocks=blocks, **keeps)
    return Run(
        moments=played(requests, server=server),
        steps=server.steps,
        busy_s=server.busy_s,
        end_s=server.now,
        kept=tuple(server.kept or ()),
        stretches=tuple(server.stretches or ()),
    )
