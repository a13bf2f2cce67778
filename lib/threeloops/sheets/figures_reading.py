"""The interview sheet's figures of what others' pages teach: what `reading` asks for by name."""

from threeloops import units
from threeloops.facts.hardware import part
from threeloops.inner_loop import occupancy

# Byte-Pair Encoding tokenization, Hugging Face LLM Course, chapter 6: the corpus of its example.
WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
# Austin et al., How to Scale Your Model, 2025, on TPUs: rows and columns of a matrix unit; a row of inputs a cycle.
ARRAY = 128


def values() -> dict[str, str]:
    """Name -> figure as it is printed."""
    h100, sms = part("h100-sxm5"), int(part("a100-sxm4-80gb")["sms"])
    sm_flops = 2 * h100["matrix_units_per_sm"] * h100["matrix_fmas_per_cycle_fp16"]
    array_flops = 2 * ARRAY**2
    late = occupancy.waves(grid_blocks=sms + 1, num_sms=sms, blocks_per_sm=1)
    return {
        "sms": f"{h100['sms']:.0f}",
        "sm_flops": f"{sm_flops:,.0f}",
        "tensor_clock": units.fmt_si(h100.peak_flops_per_s("bf16") / (h100["sms"] * sm_flops), "Hz"),
        "tiles": f"{late.grid_blocks}",
        "tile_places": f"{late.places}",
        "tile_waves": f"{late.count}",
        "tiles_full": units.fmt_percent(late.efficiency),
        "pair_ug": f"{_pair('ug')}",
        "pair_un": f"{_pair('un')}",
        "array": f"{ARRAY} × {ARRAY}",
        "array_flops": f"{array_flops:,}",
        "array_sms": f"{array_flops / sm_flops:g}",
    }


def _pair(letters: str) -> int:
    return sum(count * word.count(letters) for word, count in WORDS.items())
