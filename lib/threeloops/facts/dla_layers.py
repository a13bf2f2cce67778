"""DLA layers: what NVIDIA's table says that a deep-learning accelerator of Orin runs, and how much of it at once.

Read in November 2026: NVIDIA TensorRT documentation 11.4, "DLA Supported Layers and Restrictions" (its general part
there; the table's rows as three public repositories of 2026 copy them, which agree). NVIDIA's older list of ONNX
operators (Deep-Learning-Accelerator-SW, operators/README.md at commit 07df2338, for TensorRT 8.5) also has Gemm, and
MatMul with a constant second operand, as fully connected layers. The newer table has no row for either, so both count
as lacking, and `REWRITES` names the convolution of 1 x 1 that computes the same.

>>> LAYER_OF["Conv"], LIMITS["convolution"]["stride"]
('convolution', (1, 8))
>>> "HardSwish" in LAYER_OF, CONCURRENT_LOADABLES
(False, 16)
"""

CONCURRENT_LOADABLES = 16  # of one core

# ONNX operator -> the table's row. Quantisers are no layers: they set the types of those around them.
LAYER_OF = {
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Clip", "LeakyRelu"), "activation"),
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow"), "elementwise"),
    **dict.fromkeys(("MaxPool", "AveragePool"), "pooling"),
    **dict.fromkeys(("Reshape", "Transpose", "Flatten"), "shuffle"),
    **dict.fromkeys(("Abs", "Sin", "Cos", "Atan"), "unary"),
    "BatchNormalization": "scale",
    "Concat": "concatenation",
    "Conv": "convolution",
    "ConvTranspose": "deconvolution",
    "LRN": "local response normalisation",
    "PRelu": "parametric ReLU",
    "ReduceMax": "reduction",
    "Resize": "resize",
    "Slice": "slice",
    "Softmax": "softmax",
}
QUANTISERS = ("QuantizeLinear", "DequantizeLinear")

# row -> setting -> (least, most)
LIMITS = {
    "convolution": {"kernel": (1, 32), "stride": (1, 8), "dilation": (1, 32), "padding": (0, 31)},
    "deconvolution": {"kernel": (1, 32), "groups": (1, 1), "dilation": (1, 1), "padding": (0, 0)},
    "pooling": {"kernel": (1, 8), "stride": (1, 16), "padding": (0, 7)},
}

REWRITES = {
    "HardSwish": "ReLU, or x * Clip(x + 3, 0, 6) / 6: Add, Clip, Mul",
    "Gelu": "ReLU, and train on",
    "Erf": "ReLU instead of GELU, and train on",
    "Exp": "Sigmoid, where the exponential is part of one",
    "Sqrt": "Pow with 0.5",
    "GlobalAveragePool": "AveragePool of at most 8 x 8, or several",
    "MatMul": "Conv of 1 x 1, if the second operand is constant",
    "Gemm": "Conv of 1 x 1",
}
