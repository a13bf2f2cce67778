"""Joint training: a module that estimates the gap to the car ahead, a planner that chooses a speed from the estimate,
and one number between them. Trained apart, one after the other, and together on the plan's cost.

>>> seen = scenes(4, seed=1)
>>> seen.observed.shape, seen.gap_m.shape
(torch.Size([4, 9]), torch.Size([4, 1]))
"""

import copy
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

RAYS = 8  # measurements of one gap
GAPS_M = (5.0, 60.0)
NOISE_M = (0.5, 8.0)  # standard deviation of a ray: clear weather to fog, another in every scene
BRAKING = 6.0  # m/s², with which the car can stop in the gap
TOO_FAST = 10.0  # what a metre per second above the safe speed costs, where one below costs 1
SCALE_M = 30.0  # networks see numbers of about one
STEPS, BATCH, TESTED = 900, 512, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenes:
    """What is seen of many moments, and what is true of them."""

    observed: Tensor  # [scenes, RAYS + 1]: the rays and how noisy they are
    gap_m: Tensor  # [scenes, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A perception module and a planner; they share one number a scene."""

    perception: nn.Module
    planner: nn.Module


def scenes(number: int, *, seed: int) -> Scenes:
    """Gaps and fog drawn evenly; every ray is the gap with noise of the scene's size."""
    draw = torch.Generator().manual_seed(seed)
    gap = GAPS_M[0] + (GAPS_M[1] - GAPS_M[0]) * torch.rand(number, 1, generator=draw)
    noise = NOISE_M[0] + (NOISE_M[1] - NOISE_M[0]) * torch.rand(number, 1, generator=draw)
    rays = gap + noise * torch.randn(number, RAYS, generator=draw)
    return Scenes(observed=torch.cat([rays / SCALE_M, noise / NOISE_M[1]], dim=1), gap_m=gap)


def plan_cost(speed_m_per_s: Tensor, gap_m: Tensor) -> Tensor:
    """Mean cost of the chosen speeds: below the speed that stops in the gap, 1 per m/s; above it, TOO_FAST."""
    over = speed_m_per_s - (2 * BRAKING * gap_m).sqrt()
    return torch.where(over > 0, TOO_FAST * over, -over).mean()


def cost(perception: nn.Module, planner: nn.Module) -> float:
    """The plan's cost over scenes that no module was trained on."""
    seen = scenes(TESTED, seed=99)
    with torch.no_grad():
        return float(plan_cost(_speed(perception(seen.observed), planner), seen.gap_m))


def error_m(perception: nn.Module) -> float:
    """Root mean square error of the estimate, in metres, over the same scenes: perception's own score."""
    seen = scenes(TESTED, seed=99)
    with torch.no_grad():
        return float((perception(seen.observed) * SCALE_M - seen.gap_m).square().mean().sqrt())


def bias_by_noise(perception: nn.Module, noises_m: Iterable[float]) -> list[tuple[float, float]]:
    """(noise of a ray, mean of estimate minus truth), each over scenes of that noise."""
    found = []
    for noise in noises_m:
        seen = scenes(TESTED, seed=98)
        rays = seen.gap_m + noise * torch.randn(TESTED, RAYS, generator=torch.Generator().manual_seed(97))
        observed = torch.cat([rays / SCALE_M, torch.full_like(seen.gap_m, noise / NOISE_M[1])], dim=1)
        with torch.no_grad():
            found.append((noise, float((perception(observed) * SCALE_M - seen.gap_m).mean())))
    return found


@functools.cache
def trained_apart() -> System:
    """Perception learns the gap; the planner learns from true gaps. Nobody has seen the other's errors."""
    perception, planner = _modules()
    _train(perception.parameters(), lambda seen: (perception(seen.observed) - seen.gap_m / SCALE_M).square().mean())
    _train(planner.parameters(), lambda seen: plan_cost(_speed(seen.gap_m / SCALE_M, planner), seen.gap_m))
    return System(perception=perception.requires_grad_(False), planner=planner.requires_grad_(False))


@functools.cache
def trained_in_turn(times: int = 1) -> System:
    """The same perception, frozen; the planner learns on from what it really says, as often as told: twice is as many
    steps as joint training has had."""
    before = trained_in_turn(times - 1) if times > 1 else trained_apart()
    planner = copy.deepcopy(before.planner).requires_grad_(True)
    _train(planner.parameters(), lambda seen: plan_cost(_speed(before.perception(seen.observed), planner), seen.gap_m))
    return System(perception=before.perception, planner=planner.requires_grad_(False))


@functools.cache
def trained_jointly() -> System:
    """Both learn on from there, from the plan's cost alone."""
    start = trained_in_turn()
    perception, planner = (copy.deepcopy(one).requires_grad_(True) for one in (start.perception, start.planner))
    _train(
        (*perception.parameters(), *planner.parameters()),
        lambda seen: plan_cost(_speed(perception(seen.observed), planner), seen.gap_m),
    )
    return System(perception=perception.requires_grad_(False), planner=planner.requires_grad_(False))


def three_ways() -> tuple[System, System, System]:
    """Trained apart, in turn, and jointly: in seconds, and once."""
    return trained_apart(), trained_in_turn(), trained_jointly()


def _modules() -> tuple[nn.Sequential, nn.Sequential]:
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    perception = nn.Sequential(nn.Linear(RAYS + 1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    planner = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
    torch.random.set_rng_state(state)
    return perception, planner


def _speed(message: Tensor, planner: nn.Module) -> Tensor:
    chosen: Tensor = planner(message) * SCALE_M
    return chosen


def _train(parameters: Iterable[nn.Parameter], loss: Callable[[Scenes], Tensor]) -> None:
    """Adam, its step shrinking to nothing; every step on fresh scenes."""
    optimiser = torch.optim.Adam(parameters, lr=3e-3)
    shrink = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, total_iters=STEPS)
    for step in range(STEPS):
        optimiser.zero_grad()
        loss(scenes(BATCH, seed=step)).backward()
        optimiser.step()
        shrink.step()
