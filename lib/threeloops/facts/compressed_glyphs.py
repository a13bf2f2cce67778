"""Compressed glyphs: how many of 4,096 small noisy glyphs a network of this book reads correctly after pruning and
rounding. Measured once, on one machine; run it again to have it from yours.

Pruned: the smallest weights of every layer taken out, the rest trained on for as many steps as four epochs have, each
network with what it had learnt from. Rounded: all weights symmetric, in groups of 16 inputs, to nearest; 16 bits means
not rounded.
"""

BITS = (16, 8, 6, 5, 4, 3, 2)
SPARSITIES = (0.0, 0.3, 0.5, 0.7, 0.8)
LABELS = 512
# name -> widths of the layers' outputs: 64 inputs, two hidden layers, 16 glyphs
NETWORKS = {
    "teacher": (64, 64, 64, 16),
    "student, 512 labels": (64, 32, 32, 16),
    "student, distilled": (64, 32, 32, 16),
}

# --- measured by threeloops.measure.product_loop.compression_grid ---

STAMP = "AMD EPYC, torch 2.13.0+cpu, Python 3.11.7, Linux 6.18.44-fc-v669, 2026-11-22"
ACCURACIES: dict[str, dict[float, tuple[float, ...]]] = {
    "teacher": {
        0.0: (0.9717, 0.9714, 0.9707, 0.9709, 0.967, 0.9446, 0.55),
        0.3: (0.9727, 0.9727, 0.9727, 0.9722, 0.9695, 0.9543, 0.5869),
        0.5: (0.9692, 0.9695, 0.97, 0.9683, 0.9644, 0.9441, 0.5713),
        0.7: (0.9526, 0.9521, 0.9526, 0.9521, 0.9485, 0.9373, 0.5076),
        0.8: (0.8975, 0.897, 0.8977, 0.8994, 0.895, 0.865, 0.6492),
    },
    "student, 512 labels": {
        0.0: (0.7007, 0.7004, 0.6973, 0.698, 0.6931, 0.6477, 0.3357),
        0.3: (0.7046, 0.7034, 0.7029, 0.697, 0.6907, 0.6667, 0.3462),
        0.5: (0.6877, 0.6882, 0.6892, 0.6855, 0.6797, 0.6372, 0.3335),
        0.7: (0.6111, 0.6099, 0.6111, 0.615, 0.6091, 0.5781, 0.3992),
        0.8: (0.4849, 0.4836, 0.4822, 0.4841, 0.48, 0.4697, 0.3127),
    },
    "student, distilled": {
        0.0: (0.8779, 0.8767, 0.8782, 0.8748, 0.863, 0.7791, 0.3516),
        0.3: (0.8992, 0.9001, 0.9023, 0.9014, 0.8831, 0.8169, 0.3506),
        0.5: (0.8875, 0.887, 0.8862, 0.8816, 0.8811, 0.8237, 0.4038),
        0.7: (0.8123, 0.8115, 0.8105, 0.8081, 0.8022, 0.7776, 0.5308),
        0.8: (0.6477, 0.6477, 0.6443, 0.6389, 0.6414, 0.5994, 0.4534),
    },
}
