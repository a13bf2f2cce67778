"""Launch waits: how long small kernels waited from launch to start while another stream kept the GPU full, as NVIDIA's
benchmark of green contexts for Holoscan prints it.

Each of two streams launches, waits for its kernel and launches the next: a load that fills the GPU, and four blocks
that are on the clock. First both may use every SM, then each has a half for itself.

Source: nvidia-holoscan/holohub, benchmarks/green_context_benchmarking/README.md at commit 2d5018b8 ("Sample Output",
and the tables of the two chips); read on 28 November 2026. Times are CUPTI's, its overhead included; the load's are the
host's, launch and synchronisation included.

>>> SAMPLE["all SMs"]["mean"], SAMPLE["own SMs"]["mean"], ORIN_MEANS_S[5, 2, 512]
(0.00024909, 4.64e-06, (0.00025033, 3.2e-05))
"""

from threeloops.units import us

SMS = {"RTX 6000 Ada": 142, "Orin": 16}

# RTX 6000 Ada, intensity 20, 8 MB, 512 threads a block: seconds from launch to start, and of one kernel of the load
SAMPLE = {
    "all SMs": {"mean": 249.09 * us, 0.5: 271.73 * us, 0.95: 460.79 * us, 0.99: 478.52 * us, "load": 513.20 * us},
    "own SMs": {"mean": 4.64 * us, 0.5: 3.88 * us, 0.95: 10.04 * us, 0.99: 14.01 * us, "load": 532.74 * us},
}

# Orin: (the load's intensity, its MB, its threads a block) -> mean seconds with all SMs for both and with own SMs
ORIN_MEANS_S = {
    (5, 1, 64): (106.54 * us, 26.13 * us), (5, 1, 128): (99.74 * us, 27.45 * us),
    (5, 1, 256): (108.09 * us, 29.08 * us), (5, 1, 512): (91.63 * us, 27.36 * us),
    (5, 2, 64): (251.08 * us, 31.07 * us), (5, 2, 128): (253.93 * us, 27.82 * us),
    (5, 2, 256): (244.75 * us, 30.73 * us), (5, 2, 512): (250.33 * us, 32.00 * us),
    (5, 4, 64): (543.96 * us, 35.73 * us), (5, 4, 128): (531.56 * us, 23.86 * us),
    (5, 4, 256): (539.75 * us, 29.92 * us), (5, 4, 512): (546.71 * us, 28.39 * us),
}  # fmt: skip
