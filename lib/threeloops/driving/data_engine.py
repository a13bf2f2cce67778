"""Data engine: what one retraining, one round of simulation and one second of a learnt world take of GPUs.

>>> from threeloops.units import TFLOP, day, hour, km
>>> week = {"examples": 2e6, "passes": 10, "forward_flops": 0.5 * TFLOP, "seconds": 7 * day}
>>> round(retraining_gpus(**week, peak_flops_per_s=500 * TFLOP, utilisation=0.4), 3)
0.248
>>> driven = {"metres": 1e6 * km, "speed_m_per_s": 50 * km / hour}
>>> round(simulation_gpu_s(**driven, gpu_s_per_s=2.0) / hour)
40000
"""

from threeloops import checks

FORWARD_AND_BACK = 3  # a backward pass is two forward passes' worth of FLOPs


def retraining_gpus(
    *,
    examples: float,
    passes: float,
    forward_flops: float,
    peak_flops_per_s: float,
    utilisation: float,
    seconds: float,
) -> float:
    """GPUs that train a network once in the time given; round up.

    Formula:  3 * forward FLOPs * examples * passes / (utilisation * peak * seconds)
    Units:    forward_flops of one example, 2 a multiply-add; peak of one GPU, dense
    Assumes:  every example is read forward and back in each pass; the time is that in which GPUs compute, failures and
              waiting for a slot taken off; more GPUs keep the utilisation
    Source:   Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (a backward pass is twice the forward one)
    Counted:  drills.sensor_bandwidth.rare.WEEK
    """
    checks.positive(
        examples=examples,
        passes=passes,
        forward_flops=forward_flops,
        peak_flops_per_s=peak_flops_per_s,
        seconds=seconds,
    )
    checks.fraction(utilisation=utilisation)
    checks.positive(utilisation=utilisation)
    return FORWARD_AND_BACK * forward_flops * examples * passes / (utilisation * peak_flops_per_s * seconds)


def simulation_gpu_s(*, metres: float, speed_m_per_s: float, gpu_s_per_s: float) -> float:
    """GPU-seconds that driving so far in a simulator takes.

    Formula:  metres / speed * GPU-seconds of a simulated second
    Units:    gpu_s_per_s: seconds of one GPU for one second of the world, the driving stack's own included
    Assumes:  worlds run next to each other without waiting; nothing of a drive is left out. Teams simulate the moments
              in which something happens instead, which shortens metres, not the formula
    Source:   by definition
    Counted:  drills.sensor_bandwidth.rare.SIMULATED
    """
    checks.positive(metres=metres, speed_m_per_s=speed_m_per_s, gpu_s_per_s=gpu_s_per_s)
    return metres / speed_m_per_s * gpu_s_per_s


def denoised_gpu_s(
    *,
    frames_per_s: float,
    steps: int,
    places: int,
    num_parameters: float,
    peak_flops_per_s: float,
    utilisation: float,
) -> float:
    """GPU-seconds of one second of a world that a diffusion model makes.

    Formula:  frames per second * steps * 2 * parameters * places / (utilisation * peak)
    Units:    places: tokens of one frame, in the space in which it is denoised; peak of one GPU, dense
    Assumes:  each step runs the whole denoiser over all places of one frame; its attention, what turns places into
              pixels, and guidance by a second run are not in it
    Source:   Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (2 FLOPs for each parameter and token)
    Counted:  drills.joint_models.actions.DENOISED

    >>> round(
    ...     denoised_gpu_s(
    ...         frames_per_s=6.25,
    ...         steps=30,
    ...         places=576,
    ...         num_parameters=6.5e9,
    ...         peak_flops_per_s=989.4e12,
    ...         utilisation=0.4,
    ...     ),
    ...     2,
    ... )
    3.55
    """
    checks.count(steps=steps, places=places)
    checks.positive(
        frames_per_s=frames_per_s,
        num_parameters=num_parameters,
        peak_flops_per_s=peak_flops_per_s,
        utilisation=utilisation,
    )
    checks.fraction(utilisation=utilisation)
    return frames_per_s * steps * 2 * num_parameters * places / (utilisation * peak_flops_per_s)
