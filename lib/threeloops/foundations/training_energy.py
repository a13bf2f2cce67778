"""Training energy: seconds of GPUs, watts and a building's overhead make joules, and the grid's kg per kWh make CO2.

Power is a rate (W), energy its sum over time (J, kWh); a GPU hour is an hour of one GPU, however many of them run at
once.

Source: Touvron et al., LLaMA, 2023, arXiv:2302.13971, section 6 (the formula, its PUE of 1.1 and 0.385 kg per kWh);
        Llama 2, 2023, arXiv:2307.09288, table 2
"""

from threeloops import checks
from threeloops.units import kWh


def energy_j(*, gpu_s: float, power_w: float, facility_overhead: float) -> float:
    """Joules that the GPUs of a run draw, and what their building adds.

    Formula:  gpu_s * power_w * facility_overhead
    Units:    gpu_s in seconds of one GPU (GPUs times seconds), power_w in W per GPU; facility_overhead is the PUE, 1
              for the GPUs alone
    Assumes:  the GPUs draw that power all the time (a nameplate power is an upper bound); hosts and network are in
              the overhead or left out
    Counted:  tests.foundations.test_foundations_formulas.test_a_meter_read_every_hour_shows_the_same_energy

    >>> round(energy_j(gpu_s=184_320 * 3600, power_w=400, facility_overhead=1) / 3.6e9, 1)  # MWh
    73.7
    """
    checks.positive(gpu_s=gpu_s, power_w=power_w)
    if not facility_overhead >= 1:
        raise ValueError(
            f"facility_overhead={facility_overhead!r} must be at least 1: a building draws what its machines draw, and"
            " more"
        )
    return gpu_s * power_w * facility_overhead


def emitted_kg(*, energy_j: float, kg_per_kwh: float) -> float:
    """Kilograms of CO2 equivalent emitted to make this energy.

    Formula:  energy in kWh * kg_per_kwh
    Assumes:  the mix of the grid (location-based); certificates bought elsewhere change no joule
    Counted:  drills.foundations.networks.CARBON

    >>> round(emitted_kg(energy_j=3.6e6, kg_per_kwh=0.385), 3)
    0.385
    """
    checks.positive(energy_j=energy_j)
    checks.non_negative(kg_per_kwh=kg_per_kwh)
    return energy_j / kWh * kg_per_kwh
