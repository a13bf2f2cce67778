"""Tokens of a picture in a prompt, for models that take it at its own resolution.

>>> image_tokens(height=1080, width=1920, patch=14, merged=2)
2691
"""

from threeloops import checks


def image_tokens(*, height: int, width: int, patch: int, merged: int) -> int:
    """Tokens that a language model sees of a picture that is cut into patches, squares of which become one token.

    Formula:  round(height / (patch * merged)) * round(width / (patch * merged))
    Units:    pixels; merged is how many patches a side of such a square has
    Assumes:  a picture within the processor's limits of size; marks before and behind it left out
    Raises:   ValueError for a picture smaller than one token
    Source:   Hugging Face, transformers, models/qwen2_vl/image_processing_qwen2_vl.py, 2024 (sides are rounded to
              multiples of 28, patches of 14, two by two merged)
    Counted:  drills.kv_cache.pictures.PICTURE
    """
    checks.count(height=height, width=width, patch=patch, merged=merged)
    side = patch * merged
    if height < side or width < side:
        raise ValueError(f"height={height} and width={width} must be at least {side}, the side of one token")
    return round(height / side) * round(width / side)
