"""Steps taken apart by torch's profiler: every kernel has a cause, and all together fill nearly the recorded step."""

from pathlib import Path

import pytest

from threeloops.cli import main
from threeloops.facts import kernel_counts, traced_steps
from threeloops.facts.recorded import find
from threeloops.facts.stamped_files import stamped
from threeloops.facts.traced_steps import ORDER, cause_of, traced_step
from threeloops.measure import traced_kernels

PART = "h100-sxm5"
CASES = {case.kind: case for case in traced_kernels.cases()}
NAMES = [case.name for case in CASES.values()]


@pytest.mark.parametrize("kind", ["train_eager", "train_compiled"])
def test_kernels_fill_nearly_all_of_a_recorded_training_step(kind):
    name = CASES[kind].name
    busy_s = sum(one.seconds for one in traced_step(name, PART).values())
    assert 0.93 < busy_s / find(name, PART).median < 1


def test_an_eager_decode_step_waits_for_its_launches_most_of_the_time():
    name = CASES["decode_eager"].name
    busy_s = sum(one.seconds for one in traced_step(name, PART).values())
    graph_s = find(name.replace("decode_eager", "decode_graph"), PART).median
    assert busy_s == pytest.approx(graph_s, rel=0.15)  # out of a graph it takes what its kernels take
    assert busy_s < 0.6 * find(name, PART).median


def test_compiling_leaves_the_products_and_halves_what_lies_between_them():
    eager, compiled = (traced_step(CASES[kind].name, PART) for kind in ("train_eager", "train_compiled"))
    assert eager["matmuls"].kernels == compiled["matmuls"].kernels
    assert eager["matmuls"].seconds == pytest.approx(compiled["matmuls"].seconds, rel=0.02)
    between = [
        sum(step[cause].seconds for cause in ("norms", "casts and copies", "other vector work"))
        for step in (eager, compiled)
    ]
    assert 0.5 < between[1] / between[0] < 0.7


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", "attention"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>", "matmuls"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float>", "loss"),
        (
            "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda>",
            "casts and copies",
        ),
        ("void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata>", "optimiser"),
        ("triton_per_fused__to_copy_native_layer_norm_backward_view_4", "norms"),
        ("void at::native::GeluCUDAKernelImpl", "other vector work"),
        ("fc-dtype_Float", "matmuls"),
        # FBGEMM's, whose name alone is no product: forms of pytorch/FBGEMM, fbgemm_gpu/codegen and fbgemm_gpu/src
        ("void split_embedding_backward_rowwise_kernel<float>(fbgemm_gpu::FixedDivisor)", "embeddings"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int, int const*)", "other vector work"),
        ("void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu>", "other vector work"),
        ("void cutlass::device_kernel<fbgemm_gpu::GemmUniversal<bf16>>", "matmuls"),
        # as traces of AMD-AGI/TraceLens at 171dd747 have them (MI210, MI300X, B200), beside the operator that asked
        ("attn_fwd.kd", "attention"),
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmhaBatchPref", "attention"),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8_ws1x2", "convolutions"),
        ("_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_", "convolutions"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1", "matmuls"),
        ("void moe::dev::routing::routingIndicesHistogramKernel<moe::dev::routing>", "experts"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10", "other vector work"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S", "norms"),
    ],
)
def test_a_kernel_s_name_says_what_it_is_for(kernel, cause):
    assert cause_of(kernel) == cause
    assert cause in ORDER


def test_the_shipped_files_are_what_would_be_written():
    traced, counted = stamped("traced", "steps")[PART][0], stamped("counted", "kernels")[PART][0]
    for folder, text in (
        ("traced", traced_steps.traces_as_text(traced, {name: traced_step(name, PART) for name in NAMES})),
        ("counted", kernel_counts.counts_as_text(counted, kernel_counts.kernel_counts(PART))),
    ):
        (path,) = (Path(traced_steps.__file__).parent / folder).glob("*.json")
        assert path.read_text(encoding="utf-8") == text


def test_the_stamp_says_where_and_when():
    assert stamped("traced", "steps")[PART][0].hardware == "NVIDIA H100 80GB HBM3"


def test_traces_need_a_gpu_and_what_was_not_traced_is_refused(capsys, tmp_path):
    if not traced_kernels.torch.cuda.is_available():
        assert main(["record", "--traces", "--into", str(tmp_path)]) == 2
        assert "there is no GPU here whose kernels could be traced" in capsys.readouterr().err
    with pytest.raises(ValueError, match="part='h200-sxm' is not known"):
        traced_step("train_eager", "h200-sxm")
    with pytest.raises(ValueError, match="case='train_eager' is not known"):
        traced_step("train_eager", PART)
