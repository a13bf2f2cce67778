"""The flags of `threeloops memory`."""

import argparse

from threeloops.commands.budget import add_share_flag
from threeloops.commands.named import MEMORY_HELP, MODEL_HELP
from threeloops.commands.typed import context, whole


def add_memory_flags(memory: argparse.ArgumentParser) -> None:
    """The flags of `threeloops memory`."""
    memory.add_argument("--model", required=True, help=MODEL_HELP)
    memory.add_argument(
        "--recipe",
        required=True,
        help="megatron, zero-paper, autocast, fsdp2-mixed, …; with --lora that of the adapters",
    )
    memory.add_argument("--zero", type=int, required=True, choices=(0, 1, 2, 3), help="ZeRO stage")
    memory.add_argument("--micro-batch", type=whole, required=True)
    memory.add_argument("--sequence", type=context, required=True, help="tokens of one sequence, like 8192 or 8k")
    memory.add_argument("--kernels", required=True, help="what is fused: korthikanti, eager, sdpa, fused")
    memory.add_argument("--recompute", required=True, choices=("none", "selective", "full"))
    memory.add_argument(
        "--cross-entropy", default="plain", choices=("plain", "in-place", "sliced"), help="plain (default): torch's own"
    )
    memory.add_argument("--dropout", action="store_true")
    for degree in ("dp", "tp", "pp", "cp", "ep"):
        memory.add_argument(f"--{degree}", type=whole, default=1)
    memory.add_argument(
        "--offload",
        default="nothing",
        choices=("nothing", "optimiser", "gradients", "weights"),
        help="what waits on the host: the optimiser's state, gradients too (ZeRO-Offload), weights too (ZeRO 3)",
    )
    memory.add_argument(
        "--classes",
        type=whole,
        help="fine-tune a classifier with so many classes in place of a language model's head; 0: embeddings, no head",
    )
    memory.add_argument("--expert-tp", type=whole, help="tensor-parallel degree inside experts")
    memory.add_argument("--sp", action="store_true", help="sequence parallelism")
    memory.add_argument("--schedule", default="1f1b", help="gpipe, 1f1b (default), interleaved")
    memory.add_argument("--micro-batches", type=whole, help="per step and pipeline; required with --pp")
    memory.add_argument("--chunks", type=whole, default=1, help="per stage, for --schedule interleaved")
    memory.add_argument("--dtype", default="bf16", help="of activations (default bf16)")
    memory.add_argument(
        "--gathered",
        type=whole,
        default=2,
        help="ZeRO 3: layers gathered at once (default 2: one in use, one prefetched)",
    )
    memory.add_argument(
        "--vocab-multiple", type=whole, help="pad the vocabulary to a multiple of this, as Megatron does to 128 * tp"
    )
    memory.add_argument("--lora", type=whole, metavar="RANK", help="train adapters of this rank beside frozen weights")
    memory.add_argument(
        "--targets", help="with --lora: which matrices carry one: query,value or q_proj,v_proj, attention, mlp, all"
    )
    memory.add_argument(
        "--base", help="with --lora: how frozen weights are stored: bf16, fp16, fp32, nf4 (QLoRA), nf4-single"
    )
    memory.add_argument("--adapter-dropout", action="store_true", help="with --lora: dropout before every adapter")
    memory.add_argument("--dora", action="store_true", help="with --lora: a trained magnitude for every output")
    memory.add_argument("--hardware", help=f"does it fit there, and what would: {MEMORY_HELP}")
    add_share_flag(memory)
