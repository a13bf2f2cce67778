"""Distillation: a small network learns from a large one's probabilities in place of labels.

>>> said = torch.tensor([[2.0, 0.0]])
>>> round(float(soft_loss(said, said, temperature=3.0)), 6)
0.0

Source: Hinton et al., 2015, arXiv:1503.02531, section 2
"""

import torch
from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.product_loop import glyphs

TEMPERATURE = 3.0
EPOCHS = 8


def soft_loss(student: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """How far the student's probabilities are from the teacher's, both softened.

    Formula:  T^2 * KL(softmax(teacher / T) || softmax(student / T)): the factor keeps the gradients' size as T grows
    """
    checks.positive(temperature=temperature)
    told = nn.functional.log_softmax(student / temperature, dim=-1)
    wanted = nn.functional.log_softmax(teacher / temperature, dim=-1)
    return temperature**2 * nn.functional.kl_div(told, wanted, reduction="batchmean", log_target=True)


def taught_by_labels(*, labels: int, hidden: int = glyphs.STUDENT) -> nn.Sequential:
    """A student of this width trained on the first `labels` labelled images alone, for as many steps as on all."""
    images, known = glyphs.sets().train
    checks.count(labels=labels)
    made = glyphs.network(hidden=hidden, seed=1)
    glyphs.fit(made, images[:labels], known[:labels], epochs=EPOCHS * len(images) // labels)
    return made


def taught_by_teacher(
    teacher: nn.Module, *, hidden: int = glyphs.STUDENT, temperature: float = TEMPERATURE
) -> nn.Sequential:
    """A student of this width trained on all images with the teacher's answers and without a single label."""
    images, known = glyphs.sets().train
    made = glyphs.network(hidden=hidden, seed=1)
    glyphs.fit(made, images, known, epochs=EPOCHS, loss=answers_of(teacher, temperature=temperature))
    return made


def answers_of(teacher: nn.Module, *, temperature: float = TEMPERATURE) -> glyphs.Loss:
    """The loss for `glyphs.fit` that asks the teacher and looks at no label."""

    def loss(shown: Tensor, said: Tensor, _labels: Tensor) -> Tensor:
        with torch.no_grad():
            answers = teacher(shown)
        return soft_loss(said, answers, temperature=temperature)

    return loss
