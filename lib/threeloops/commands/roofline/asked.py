"""What `threeloops roofline` is asked: its flags, and from flags to a calculation."""

import argparse

from threeloops import dtypes
from threeloops.commands.budget import WEIGHTS_HELP, weights_format
from threeloops.commands.cache_lines import CACHE_HELP
from threeloops.commands.named import HARDWARE_HELP, MODEL_HELP, model_named, part_named
from threeloops.commands.roofline.gemm import Machine, gemm_working
from threeloops.commands.roofline.whole_model import model_working
from threeloops.commands.typed import context, quantity, whole
from threeloops.commands.working import Working
from threeloops.models.forward_step import ForwardStep
from threeloops.product_loop.kv_quantisation import cache_format
from threeloops.product_loop.sizing.stored_weights import mean_weight_bytes


def from_flags(given: argparse.Namespace) -> Working:
    """The product or the forward pass that the flags ask for."""
    if bool(given.gemm) == bool(given.model):
        raise ValueError("say what runs: --gemm M N K, or --model NAME with --phase, --batch and --tokens")
    dtype = dtypes.dtype_named(dtype=given.dtype)
    machine = Machine(
        part=part_named("hardware", given.hardware, given.catalog),
        engine=given.engine,
        power_mode=given.power_mode,
        launch_overhead_s=quantity(given.launch, "s") if given.launch is not None else 0.0,
    )
    if given.gemm:
        if given.weights or given.cache:
            raise ValueError("--weights and --cache belong to --model; of a --gemm all operands are in --dtype")
        m, n, k = given.gemm
        return gemm_working(m=m, n=n, k=k, dtype=dtype, machine=machine)
    model = model_named(given.model, given.catalog)
    stored = weights_format(given.weights) if given.weights else ""
    step = ForwardStep(
        phase=given.phase,
        batch=given.batch,
        sequence=given.tokens,
        causal=given.causal,
        fused_attention=not given.unfused,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(dtype),
        weight_bytes_per_element=mean_weight_bytes(model, stored) if stored else None,
        kv_bytes_per_element=cache_format(model, cache=given.cache).mean_bytes_per_element if given.cache else None,
        latent="absorbed" if given.phase == "decode" else "expanded",
        routing="uniform",
    )
    return model_working(model, step=step, dtype=dtype, machine=machine, stored=stored, cache=given.cache or "")


def add_flags(command: argparse.ArgumentParser) -> None:
    """The flags of `threeloops roofline`."""
    command.add_argument("--hardware", required=True, help=HARDWARE_HELP)
    command.add_argument("--engine", help="of a system on a chip: gpu, dla")
    command.add_argument("--power-mode", help="of a system on a chip: maxn, 30w, …")
    command.add_argument("--dtype", required=True, help="number format: bf16, fp8, …")
    command.add_argument("--launch", help="time to launch one kernel, like 5us (default 0s)")
    command.add_argument("--gemm", type=whole, nargs=3, metavar=("M", "N", "K"))
    command.add_argument("--model", help=MODEL_HELP)
    command.add_argument("--weights", help=f"a narrower format that they are read in: {WEIGHTS_HELP}")
    command.add_argument("--cache", help=f"{CACHE_HELP} (default as --dtype)")
    command.add_argument("--phase", choices=("prefill", "decode"), default="decode")
    command.add_argument("--batch", type=whole, default=1)
    command.add_argument(
        "--tokens", type=context, default=1024, help="prompt of a prefill, context of a decode step (default 1024)"
    )
    command.add_argument(
        "--causal",
        choices=("full", "half", "exact"),
        default="exact",
        help="how masked scores are counted (default exact: not at all)",
    )
    command.add_argument("--unfused", action="store_true", help="attention writes its scores to memory")
