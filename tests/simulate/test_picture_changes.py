"""Changed patches: counted one by one, and as far as a network's layers really carry a change."""

import numpy as np
import pytest

from threeloops.simulate.driving import picture_changes

# Kernel and stride of the driving chapter's backbone, layer by layer.
LAYERS = ((3, 2), (3, 2), (3, 1), (3, 1), (3, 2), (3, 1), (3, 1), (3, 1), (1, 1))


def carried(first: int, last: int, size: int) -> tuple[int, int]:
    """The first and last output, along one axis, that a changed input between first and last reaches."""
    for kernel, stride in LAYERS:
        half = kernel // 2
        reached = [
            out for out in range(-(-size // stride)) if first <= out * stride + half and out * stride - half <= last
        ]
        first, last, size = reached[0], reached[-1], -(-size // stride)
    return first, last


def test_a_changed_patch_reaches_features_five_patches_away_and_no_further() -> None:
    first, last = carried(8 * 11, 8 * 11 + 7, 176)
    assert (11 - first, last - 11) == (4, 5)


def test_neighbours_are_those_of_a_walk_over_all_patches() -> None:
    drawn = np.random.default_rng(4)
    changed = drawn.random((2, 7, 11)) < 0.08
    for around in (0, 1, 3):
        told = picture_changes.with_neighbours(changed, around=around)
        for camera, row, column in np.ndindex(changed.shape):
            near = changed[
                camera,
                max(0, row - around) : row + around + 1,
                max(0, column - around) : column + around + 1,
            ]
            assert told[camera, row, column] == near.any()


def test_only_the_patch_that_differs_enough_has_changed() -> None:
    before = np.full((1, 16, 24, 3), 100, dtype=np.uint8)
    now = before.copy()
    now[0, 8:, 16:] = 80
    now[0, :8, :8] = 105
    changed = picture_changes.changed_patches(before, now, patch=8, above=10)
    assert np.argwhere(changed).tolist() == [[0, 1, 2]]


def test_a_patch_that_does_not_divide_the_picture_is_refused() -> None:
    picture = np.zeros((1, 16, 24, 3))
    with pytest.raises(ValueError, match="must divide"):
        picture_changes.changed_patches(picture, picture, patch=5, above=10)
