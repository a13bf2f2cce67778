"""Frame window: a model that reads the last few pictures of every camera, and what it computes again at every
decision.

>>> round(repeated_share(window=4, new=1), 2)
0.75
"""

from threeloops import checks


def repeated_share(*, window: int, new: int) -> float:
    """The share of a window's pictures that the decision before had encoded already.

    Formula:  (window - new) / window, and 0 if all are new
    Units:    window, new: pictures of one camera; new: how many came since the last decision
    Source:   by definition
    Counted:  drills.joint_models.windows.AGAIN
    """
    checks.count(window=window, new=new)
    return max(0, window - new) / window


def repeated_flops_share(*, cameras: int, window: int, new: int, flops_per_image: float, other_flops: float) -> float:
    """The share of a decision's FLOPs that goes into pictures encoded before: what keeping their features would save.

    Formula:  cameras * (window - new) * image / (cameras * window * image + other)
    Assumes:  a picture is encoded by itself, so that its features do not change when others join it
    Source:   by definition
    Counted:  tests.driving.test_joint_formulas.test_repeated_work_is_what_a_memory_of_pictures_finds
    """
    checks.count(cameras=cameras)
    checks.positive(flops_per_image=flops_per_image)
    checks.non_negative(other_flops=other_flops)
    encoding = cameras * window * flops_per_image
    return repeated_share(window=window, new=new) * encoding / (encoding + other_flops)
