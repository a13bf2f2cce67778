"""The flags of `threeloops serve`."""

import argparse

from threeloops.commands.budget import WEIGHTS_HELP, add_share_flag
from threeloops.commands.named import HARDWARE_HELP, MODEL_HELP
from threeloops.commands.typed import context, price, rate, share, whole

DCP_HELP = "GPUs of a group that share a cache's tokens where they would keep copies (default 1)"

UTILISATION, OTHER = 0.92, "3GB"


def add_serve_flags(serve: argparse.ArgumentParser) -> None:
    """The flags of `threeloops serve`."""
    serve.add_argument("--model", required=True, help=MODEL_HELP)
    serve.add_argument("--hardware", required=True, help=HARDWARE_HELP)
    serve.add_argument("--weights", default="bf16", help=f"{WEIGHTS_HELP} (default bf16)")
    serve.add_argument("--cache", default="bf16", help="how keys and values are stored: bf16 (default), fp8, …")
    serve.add_argument("--prompt", type=context, help="mean tokens of a prompt, like 900 or 2k")
    serve.add_argument("--answer", type=context, help="mean tokens of an answer")
    serve.add_argument(
        "--lengths", help="instead of both, those of real requests: azure-conversation, azure-code, mooncake"
    )
    serve.add_argument("--hit", type=share, default=0.0, help="share of a prompt that a prefix cache has (default 0)")
    serve.add_argument("--rate", type=rate, help="requests as they come, like 50/s or 600/min: how many GPUs?")
    serve.add_argument("--users", type=whole, help="at a time, each asking again at once: what do they see of --gpus?")
    serve.add_argument("--gpus", type=whole, help="how many there are")
    serve.add_argument(
        "--tp", type=whole, help="GPUs of a copy, or of a group of it (default: 1, 2, 4 and 8 are tried)"
    )
    serve.add_argument("--pp", type=whole, default=1, help="stages of a copy, each of tp GPUs on a node of its own")
    serve.add_argument(
        "--network", help="with --pp each GPU's link out of its node, by name (infiniband-ndr) or rate (50GB/s)"
    )
    serve.add_argument(
        "--dp", type=whole, default=1, help="groups of tp GPUs with requests of their own, which share the experts"
    )
    serve.add_argument("--dcp", type=whole, default=1, help=DCP_HELP)
    serve.add_argument("--ep", type=whole, help="GPUs of a copy that hold different experts (default: with --dp all)")
    serve.add_argument("--prefill-tp", type=whole, help="read prompts on GPUs of their own, groups of so many")
    serve.add_argument("--prefill-dp", type=whole, default=1, help="of them the groups that share a copy's experts")
    serve.add_argument("--link", help="what a prompt's cache goes over to the GPUs that decode, like infiniband-ndr")
    serve.add_argument("--bandwidth", help="instead of --link, the one-way rate of each GPU, like 50GB/s")
    serve.add_argument("--draft-tokens", type=whole, help="tokens that a small model or head drafts before each check")
    serve.add_argument("--acceptance", type=share, help="of drafted tokens accepted, as the engine reports it")
    serve.add_argument("--draft-cost", type=share, help="a step of what drafts, over a step of the model")
    serve.add_argument("--adapters", type=whole, help="LoRA adapters in memory, of which every request wants one")
    serve.add_argument("--adapter-rank", type=whole, help="their rank, like 16")
    serve.add_argument("--ttft", help="promise: 99 %% of first tokens within this, like 500ms")
    serve.add_argument("--itl", help="promise: 99 %% of the gaps between tokens within this")
    serve.add_argument("--tpot", help="promise: the mean gap of 99 %% of requests within this")
    serve.add_argument("--engine", default="vLLM", help="vLLM (default), SGLang, TensorRT-LLM")
    add_share_flag(serve, default=UTILISATION)
    serve.add_argument(
        "--other", default=OTHER, help=f"of each GPU, for activations, graphs and buffers (default {OTHER})"
    )
    serve.add_argument(
        "--watermark",
        type=share,
        default=0.0,
        help="share of the blocks that vLLM keeps free when it admits (default 0)",
    )
    serve.add_argument("--price", type=price, help="of one GPU for an hour, in dollars")
