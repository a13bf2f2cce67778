"""Headers of GGUF files, written by gguf itself: read as the config that they were made from."""

from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config

HIDDEN, HEADS, KV_HEADS, WIDTH, LAYERS, VOCAB, HEAD = 48, 6, 3, 70, 5, 131, 20


def tensors(*, head: int, experts: int = 0, tied: bool = False, qk_norm: bool = False) -> dict[str, tuple[int, ...]]:
    """Shapes as numpy has them, rows first."""
    found: dict[str, tuple[int, ...]] = {"token_embd": (VOCAB, HIDDEN), "output_norm": (HIDDEN,)}
    found |= {} if tied else {"output": (VOCAB, HIDDEN)}
    for layer in range(LAYERS):
        own = {"attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,), "attn_q": (HEADS * head, HIDDEN)}
        own |= {"attn_k": (KV_HEADS * head, HIDDEN), "attn_v": (KV_HEADS * head, HIDDEN)}
        own |= {"attn_output": (HIDDEN, HEADS * head)}
        own |= {"attn_q_norm": (head,), "attn_k_norm": (head,)} if qk_norm else {}
        stack, ending = ((experts,), "_exps") if experts else ((), "")
        own |= {f"ffn_{one}{ending}": (*stack, WIDTH, HIDDEN) for one in ("gate", "up")}
        own |= {f"ffn_down{ending}": (*stack, HIDDEN, WIDTH)}
        own |= {"ffn_gate_inp": (experts, HIDDEN)} if experts else {}
        found |= {f"blk.{layer}.{name}": shape for name, shape in own.items()}
    return {f"{name}.weight": shape for name, shape in found.items()}


def written(path: Path, architecture: str, shapes: dict[str, tuple[int, ...]], *, experts: int = 0, head: int = 8):
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(HIDDEN)
    writer.add_context_length(96)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(head)
    writer.add_value_length(head)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(WIDTH)
    writer.add_token_list(["a", "b"] * 3)
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_header_is_the_config_it_was_made_from(tmp_path: Path) -> None:
    llama = from_hf_config(written(tmp_path / "one.gguf", "llama", tensors(head=8)), name="x")
    assert llama == from_hf_config(small("llama"), name="x")
    qwen = written(tmp_path / "two.gguf", "qwen3", tensors(head=HEAD, tied=True, qk_norm=True), head=HEAD)
    assert from_hf_config(qwen, name="x") == from_hf_config(small("qwen3", tie_word_embeddings=True), name="x")
    shapes = tensors(head=HEAD, experts=7, qk_norm=True)
    moe = written(tmp_path / "three.gguf", "qwen3moe", shapes, experts=7, head=HEAD)
    assert from_hf_config(moe, name="x") == from_hf_config(small("qwen3_moe", moe_intermediate_size=WIDTH), name="x")
    mixtral = written(tmp_path / "four.gguf", "llama", tensors(head=8, experts=7), experts=7)
    assert from_hf_config(mixtral, name="x") == from_hf_config(small("mixtral"), name="x")


def test_the_command_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "mine-Q4_K_M.gguf", "llama", tensors(head=8))
    assert main(["kv", "--model", str(file), "--tokens", "1000", "--cache", "bf16"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("KV cache of mine-Q4_K_M\n")
    assert f"{2 * LAYERS * KV_HEADS * 8 * 2 * 1000:,} B" in said


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a GGUF file of the architecture 'rwkv7', whose header is not read"):
        from_hf_config(written(tmp_path / "other.gguf", "rwkv7", {}))
    shapes = tensors(head=8) | {"blk.0.extra.weight": (3, 5)}
    with pytest.raises(ValueError, match=r"its tensors have [\d,]+ elements, but its header, as it is read, means"):
        from_hf_config(written(tmp_path / "more.gguf", "llama", shapes))
    whole = (tmp_path / "more.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:200])
    with pytest.raises(ValueError, match="is a GGUF file whose header is cut off or damaged"):
        from_hf_config(tmp_path / "cut.gguf")
    (tmp_path / "old.gguf").write_bytes(b"GGUF\x01\0\0\0" + bytes(16))
    with pytest.raises(ValueError, match="a GGUF file of version 1 is not read; versions 2 and 3 are"):
        from_hf_config(tmp_path / "old.gguf")
    bare = gguf.GGUFWriter(tmp_path / "bare.gguf", "llama")
    bare.add_block_count(LAYERS)
    bare.add_key_length(8)
    bare.add_value_length(8)
    for step in (bare.write_header_to_file, bare.write_kv_data_to_file, bare.close):
        step()
    with pytest.raises(ValueError, match=r"without llama\.embedding_length and llama\.attention\.head_count; give the"):
        from_hf_config(tmp_path / "bare.gguf")
