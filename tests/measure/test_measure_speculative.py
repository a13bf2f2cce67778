"""Speculative decoding on small real models: the output is the target's, and what was refused leaves no trace."""

import pytest
import torch

from threeloops.measure.product_loop import speculative_decoding as speculation
from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes

SIZES = DecoderSizes(hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=48)
SMALL = DecoderSizes(hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate=24)


def decoder(sizes: DecoderSizes, seed: int, *, sure: float = 1.0) -> Decoder:
    """Random weights; a sure one gives nearly all of the share to one symbol."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    made = Decoder(sizes).eval().requires_grad_(False)
    torch.random.set_rng_state(state)
    made.norm.weight.data *= sure
    return made


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(96, (batch, 9), generator=torch.Generator().manual_seed(5))


def greedy(target: Decoder, prompt: torch.Tensor, tokens: int) -> list[int]:
    """Token by token, without any cache."""
    text = prompt.tolist()
    for _ in range(tokens):
        text.append(int(target(torch.tensor([text]))[0, -1].argmax()))
    return text[len(prompt) :]


@pytest.mark.parametrize("drafted", [1, 3, 4])
@pytest.mark.parametrize("draft", ["other model", "the same model", "pairs"])
def test_a_sure_target_writes_what_it_writes_alone(draft: str, drafted: int) -> None:
    target = decoder(SIZES, 1, sure=1e4)
    drafts: dict[str, speculation.Drafts] = {
        "other model": speculation.ModelDraft(decoder(SMALL, 2, sure=20.0)),
        "the same model": speculation.ModelDraft(target),
        "pairs": speculation.PairTable(prompts(200).flatten(), symbols=96),
    }
    made = speculation.speculate(target, drafts[draft], prompts(3), tokens=12, drafted=drafted)
    for request, prompt in zip(made.tokens, prompts(3), strict=True):
        assert request[:12] == greedy(target, prompt, 12)
    if draft == "the same model":
        assert made.accepted_share == 1.0
        assert made.tokens_per_check == drafted + 1


def test_what_is_judged_comes_out_as_the_target_wants_it() -> None:
    wanted, offered = torch.tensor([0.6, 0.3, 0.1]), torch.tensor([0.2, 0.3, 0.5])
    draw, rows = torch.Generator().manual_seed(2), 200_000
    tokens = torch.multinomial(offered, rows, replacement=True, generator=draw)[:, None]
    taken, follow = speculation.judged(
        tokens, offered.expand(rows, 1, 3), torch.stack([wanted, wanted]).expand(rows, 2, 3), draw
    )
    first = torch.where(taken > 0, tokens[:, 0], follow)
    found = torch.bincount(first, minlength=3) / rows
    assert torch.allclose(found, wanted, atol=0.005)  # four standard deviations
    assert float(taken.float().mean()) == pytest.approx(0.6, abs=0.005)  # 0.2 + 0.3 + 0.1


def test_counts_add_up_and_places_are_reached_one_after_the_other() -> None:
    target, draft = decoder(SIZES, 1, sure=3.0), speculation.ModelDraft(decoder(SMALL, 2, sure=3.0))
    made = speculation.speculate(target, draft, prompts(4), tokens=30, drafted=3)
    assert made.tried[0] == made.checks
    assert made.tried[1:] == made.accepted[:-1]
    assert sum(map(len, made.tokens)) == made.checks + sum(made.accepted)
    assert made.tokens_per_check == pytest.approx(sum(map(len, made.tokens)) / made.checks)
    assert 0 < made.accepted_share < 1
    assert made.seconds_per_token > 0
    assert speculation.plain_seconds_per_token(target, prompts(4), tokens=5) > 0
    assert 0 < speculation.step_seconds(target, prompts(4), tokens=1) < 10


def test_a_comparison_has_all_that_explains_it() -> None:
    target, draft = decoder(SIZES, 1, sure=3.0), speculation.ModelDraft(decoder(SMALL, 2, sure=3.0))
    seen = speculation.compared(target, draft, prompts(2), tokens=8, drafted=3, repeats=2)
    assert 1 < seen.tokens_per_check < 4
    assert min(seen.draft_cost, seen.check_cost, seen.faster) > 0
    assert seen.slowest <= seen.faster <= seen.fastest
    spent = 3 * seen.draft_cost + seen.check_cost
    assert seen.explained * spent == pytest.approx(seen.tokens_per_check)
