"""The flags of the commands about a training cluster: plan and step."""

import argparse

from threeloops.commands.budget import add_share_flag
from threeloops.commands.named import HARDWARE_HELP, MODEL_HELP
from threeloops.commands.typed import amount, context, price, whole

DEGREES = {"dp": "replicas", "tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert"}


def add_plan_flags(plan: argparse.ArgumentParser) -> None:
    """The flags of `threeloops plan`."""
    _cluster_flags(plan)
    plan.add_argument("--gpus", type=whole, required=True, help="how many")
    plan.add_argument("--top", type=whole, default=5, help="how many layouts to show (default 5)")
    for degree, what in DEGREES.items():
        plan.add_argument(f"--{degree}", type=whole, help=f"degree of parallelism: {what} (default: all are tried)")
    plan.add_argument("--micro-batch", type=whole, help="sequences (default: 1, 2, 4 and 8 are tried)")
    plan.add_argument("--zero", type=int, choices=(0, 1, 2, 3), help="ZeRO stage (default: all of the recipe)")
    plan.add_argument("--recompute", choices=("none", "selective", "full"), help="default: all are tried")


def add_step_flags(step: argparse.ArgumentParser) -> None:
    """The flags of `threeloops step`."""
    _cluster_flags(step)
    for degree, what in DEGREES.items():
        step.add_argument(f"--{degree}", type=whole, default=1, help=f"degree of parallelism: {what} (default 1)")
    step.add_argument("--micro-batch", type=whole, default=1, help="sequences (default 1)")
    step.add_argument("--zero", type=int, required=True, choices=(0, 1, 2, 3), help="ZeRO stage")
    step.add_argument("--recompute", required=True, choices=("none", "selective", "full"))
    step.add_argument("--schedule", default="1f1b", help="gpipe, 1f1b (default), interleaved, zb-h1, …")
    step.add_argument("--chunks", type=whole, default=1, help="per stage, for an interleaved schedule")


def _no_format(text: str) -> str:
    """Refuses: the word means one thing in all calculations."""
    raise argparse.ArgumentTypeError(
        f"means how weights are stored, in `fit`; the numbers of matmuls are --dtype {text} here"
    )


def _cluster_flags(command: argparse.ArgumentParser) -> None:
    """Model, machines and job."""
    command.add_argument("--model", required=True, help=MODEL_HELP)
    command.add_argument("--hardware", required=True, help=HARDWARE_HELP)
    command.add_argument("--sequence", type=context, required=True, help="tokens of one sequence, like 8192 or 8k")
    command.add_argument(
        "--batch", type=whole, required=True, help="sequences per optimiser step, of all GPUs together"
    )
    command.add_argument(
        "--node", default="8", help="how many GPUs fast links join (default 8), or by name: dgx-h100, gb200-nvl72"
    )
    command.add_argument(
        "--link", help="the links inside a node, by name (nvlink-4) or one-way rate (450GB/s); default: the card's own"
    )
    command.add_argument(
        "--network",
        help="each GPU's link out of its node, by name (infiniband-ndr) or rate (50GB/s); needed beyond one node",
    )
    command.add_argument("--dtype", default="bf16", help="of matmuls: bf16 (default), fp16, fp8, nvfp4")
    command.add_argument("--format", type=_no_format, help=argparse.SUPPRESS)
    command.add_argument(
        "--reach",
        type=float,
        help="share of the dense peak that the best matmuls reach; needed where nobody measured it for the catalogue",
    )
    command.add_argument(
        "--attention",
        help="the kernel behind the expected time: cudnn, flash-2, triton-2023 (default: the card's fastest known)",
    )
    command.add_argument("--recipe", default="megatron", help="what is kept of each parameter (default megatron)")
    command.add_argument("--kernels", default="fused", help="what is fused: fused (default), sdpa, eager, korthikanti")
    add_share_flag(command)
    command.add_argument("--tokens", type=amount, help="to train on, like 15T or 300B: gives days")
    command.add_argument("--price", type=price, help="dollars for an hour of one GPU, like 2.50: gives dollars")
