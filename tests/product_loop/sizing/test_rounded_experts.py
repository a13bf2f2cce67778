"""What an engine holds that rounds its experts' widths up, against a published log; and that the command says so."""

import pytest

from threeloops.cli import main
from threeloops.models.catalogue import model
from threeloops.product_loop.sizing.stored_weights import weights_bytes_in, weights_bytes_rounded


def test_vllm_holds_more_of_gpt_oss_than_its_checkpoint_has():
    # vllm-project/vllm, 0.10 with Marlin on one H100, 2025: "Model loading took 65.9651 GiB"
    gpt_oss = model("gpt-oss-120b")
    assert weights_bytes_rounded(gpt_oss) / 2**30 == pytest.approx(65.9651, rel=0.002)
    assert weights_bytes_in(gpt_oss, "mxfp4") / 2**30 == pytest.approx(60.77, rel=0.001)


def test_widths_that_need_no_rounding_add_nothing():
    qwen = model("qwen3-30b-a3b")
    assert weights_bytes_rounded(qwen) == weights_bytes_in(qwen, "mxfp4")


@pytest.mark.parametrize(("key", "said"), [("gpt-oss-120b", True), ("qwen3-30b-a3b", False)])
def test_fit_says_why_an_engine_holds_more(key, said, capsys):
    assert main(["fit", "--model", key, "--weights", "mxfp4", "--hardware", "h200", "--tokens", "1k"]) == 0
    answer = capsys.readouterr().out
    assert ("for its Marlin kernels and then holds 65.9 GiB" in answer) == said
    assert "experts' matrices in the format, everything else in 16 bits" in answer
