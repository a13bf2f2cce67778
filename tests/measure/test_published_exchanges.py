"""Published exchanges: which of the timed rows enter the table."""

import pytest

from threeloops.measure.published_exchanges import curves, table

ROWS = [
    {"num_gpus": 2, "message_size": 256, "latency": 0.006, "backend": "vllm_graph"},
    {"num_gpus": 2, "message_size": 128, "latency": 0.0051234567, "backend": "vllm_graph"},
    {"num_gpus": 2, "message_size": 128, "latency": 0.050, "backend": "vllm_eager"},
    {"num_gpus": 4, "message_size": 128, "latency": 0.007},
]


def test_sizes_are_bytes_times_seconds_and_only_graphs_count() -> None:
    assert curves(ROWS) == {2: [(256, 5.123e-6), (512, 6e-6)], 4: [(256, 7e-6)]}


def test_all_curves_share_their_sizes() -> None:
    made = table([("h100-sxm5", "vLLM", "0.24.0", curves(ROWS[:2]))], commit="0123abc")
    assert made["sizes_bytes"] == [256, 512]
    assert made["rows"][0]["ranks"] == 2
    assert "0123abc" in made["source"]
    with pytest.raises(ValueError, match="4 ranks: timed at other sizes"):
        table([("h100-sxm5", "vLLM", "0.24.0", curves(ROWS))], commit="0123abc")
