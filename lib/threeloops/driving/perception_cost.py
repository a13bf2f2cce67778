"""What a perception chain costs and what a change of it saves: stages of a table, encoders shared or apart, pixels,
heads that are sometimes left out, cameras that are not looked at in every frame.

>>> separate = perception_flops(cameras=6, encoders=3, image_flops=8.5e9, heads_flops=4.5e9)
>>> shared = perception_flops(cameras=6, encoders=1, image_flops=8.5e9, heads_flops=4.5e9)
>>> separate / 1e9, shared / 1e9, round(saved_share(before=[separate], after=[shared]), 3)
(157.5, 55.5, 0.648)
"""

import math
from collections.abc import Sequence

from threeloops import checks


def saved_share(*, before: Sequence[float], after: Sequence[float]) -> float:
    """The share of a whole that a change of its parts saves: seconds of a table's stages, or FLOPs.

    Formula:  1 - sum(after) / sum(before)
    Assumes:  the same parts on both sides; for seconds, that the parts run one after another
    Raises:   ValueError unless both sides have the same number of parts
    Source:   by definition
    Counted:  simulate.driving.vehicle.frames_through

    >>> saved_share(before=[8, 2], after=[3, 2])
    0.5
    """
    if len(before) != len(after):
        raise ValueError(f"before has {len(before)} parts and after {len(after)}; compare the same parts")
    for place, (old, new) in enumerate(zip(before, after, strict=True), 1):
        checks.non_negative(**{f"part {place} before": old, f"part {place} after": new})
    checks.positive(**{"the sum before": sum(before)})
    return 1 - sum(after) / sum(before)


def perception_flops(*, cameras: int, encoders: int, image_flops: float, heads_flops: float) -> float:
    """FLOPs of one frame: every camera's picture through every encoder, and all heads once.

    Formula:  encoders * cameras * FLOPs of an image + FLOPs of all heads
    Assumes:  encoders=1 is one encoder that all tasks share, encoders=tasks one of its own for each; heads read the
              fused features once a frame, not once a camera, so that larger pictures leave heads_flops as they are
              where these work on a bird's-eye grid
    Source:   Caruana, Multitask Learning, 1997, doi:10.1023/A:1007379606734 (one trunk, several heads)
    Counted:  simulate.driving.perception_frames.flops_of_a_frame

    >>> perception_flops(cameras=2, encoders=3, image_flops=10, heads_flops=6)
    66
    """
    checks.count(cameras=cameras, encoders=encoders)
    checks.non_negative(image_flops=image_flops, heads_flops=heads_flops)
    return encoders * cameras * image_flops + heads_flops


def flops_at(*, flops: float, pixels: int, new_pixels: int) -> float:
    """FLOPs of a convolutional network on a picture of another size.

    Formula:  flops * new_pixels / pixels
    Assumes:  every layer slides over the whole picture. Gates and classifiers that run once per picture do not grow,
              and a side that is no multiple of the network's stride is rounded: a few percent, see models.convnets
    Source:   Dumoulin and Visin, 2016, arXiv:1603.07285 (a convolution's work is per output position)
    Counted:  simulate.driving.perception_frames.flops_of_a_convolution

    >>> round(flops_at(flops=8.4e9, pixels=380 * 380, new_pixels=1920 * 1080) / 1e9, 1)
    120.6
    """
    checks.non_negative(flops=flops)
    checks.count(pixels=pixels, new_pixels=new_pixels)
    return flops * new_pixels / pixels


def mean_frame_s(*, always_s: float, sometimes_s: float, share: float) -> float:
    """The mean time of a frame when some work is done in a share of the frames only; the longest frame stays as long
    as both together.

    Formula:  always + share * sometimes
    Source:   by definition of a mean
    Counted:  simulate.driving.perception_frames.seconds_of_frames

    >>> mean_frame_s(always_s=0.02, sometimes_s=0.01, share=0.5)
    0.025
    """
    checks.non_negative(always_s=always_s, sometimes_s=sometimes_s)
    checks.fraction(share=share)
    return always_s + share * sometimes_s


def reused_frame_s(*, cameras: int, reused: int, camera_s: float, align_s: float, others_s: float) -> float:
    """Seconds of a frame in which some cameras are not looked at: their features are those of an earlier frame, moved
    by as much as the car has moved since.

    Formula:  (cameras - reused) * time of a camera + time to align + the others
    Assumes:  cameras are encoded one after another, or in one batch whose time grows with its size
    Raises:   ValueError if all cameras are reused: then nothing new is ever seen
    Source:   by definition: one camera after the other
    Counted:  simulate.driving.perception_frames.seconds_with_turns

    >>> round(reused_frame_s(cameras=6, reused=3, camera_s=0.002, align_s=0.001, others_s=0.01), 3)
    0.017
    """
    checks.count(cameras=cameras)
    checks.count(at_least=0, reused=reused)
    checks.non_negative(camera_s=camera_s, align_s=align_s, others_s=others_s)
    _some_fresh(cameras, reused)
    return (cameras - reused) * camera_s + align_s + others_s


def oldest_view_frames(*, cameras: int, reused: int) -> int:
    """How many frames old the oldest features in use are, when cameras take turns.

    Formula:  ceil(cameras / (cameras - reused)) - 1
    Assumes:  the same number of cameras is looked at in every frame, in a fixed round; the newest features are 0 frames
              old
    Source:   by definition of taking turns
    Counted:  simulate.driving.perception_frames.turns

    >>> oldest_view_frames(cameras=6, reused=3), oldest_view_frames(cameras=6, reused=5)
    (1, 5)
    """
    checks.count(cameras=cameras)
    checks.count(at_least=0, reused=reused)
    _some_fresh(cameras, reused)
    return math.ceil(cameras / (cameras - reused)) - 1


def attention_samples(*, queries: int, layers: int, heads: int, levels: int, points: int) -> int:
    """Places in the cameras' features that deformable attention reads for one bird's-eye map.

    Formula:  queries * layers * heads * levels * points
    Assumes:  every query is seen by one camera (BEVFormer samples every camera that sees it); attention to the last map
              is not counted; each place is between pixels, so that four of them are fetched and mixed
    Source:   Li et al., BEVFormer, 2022, arXiv:2203.17270, section 3.3; Zhu et al., Deformable DETR, 2020,
              arXiv:2010.04159
    Counted:  simulate.driving.perception_frames.places_read

    >>> attention_samples(queries=50 * 50, layers=3, heads=8, levels=1, points=8)
    480000
    """
    checks.count(queries=queries, layers=layers, heads=heads, levels=levels, points=points)
    return queries * layers * heads * levels * points


def _some_fresh(cameras: int, reused: int) -> None:
    if reused >= cameras:
        raise ValueError(f"reused={reused} must be less than cameras={cameras}; somebody has to look")
