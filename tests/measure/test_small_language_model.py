"""A decoder of our own: its cache against no cache, its sizes against the book's formula, and that it learns."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from threeloops.measure.product_loop import character_text, small_language_model
from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes, KvCache
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.kv_cache import bytes_per_token

SIZES = DecoderSizes(hidden=24, layers=2, heads=6, kv_heads=2, head_dim=6, intermediate=40)
TOLERANCE = 1e-4


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        made = Decoder(SIZES).eval().requires_grad_(False)
        made.embedding.weight.normal_(std=1.0)  # scores far enough apart to see a wrong position
    return made


def text(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(96, (length,), generator=torch.Generator().manual_seed(seed))


def test_requests_of_different_lengths_in_one_batch_get_what_each_gets_alone(decoder: Decoder) -> None:
    rows = [text(11, 1), text(4, 2), text(7, 3)]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    counts = torch.tensor([len(row) for row in rows])
    cache = KvCache(SIZES, batch=3, capacity=32)
    together = decoder(padded, cache=cache, counts=counts)
    then = decoder(text(3, 4)[:, None], cache=cache)
    assert cache.lengths.tolist() == [12, 5, 8]
    for place, row in enumerate(rows):
        alone = decoder(torch.cat([row, text(3, 4)[place : place + 1]])[None])[0]
        torch.testing.assert_close(together[place, : len(row)], alone[:-1], atol=TOLERANCE, rtol=TOLERANCE)
        torch.testing.assert_close(then[place, 0], alone[-1], atol=TOLERANCE, rtol=TOLERANCE)


def test_taking_tokens_back_leaves_no_trace(decoder: Decoder) -> None:
    begun, guessed, right = text(5, 1), text(3, 2), text(3, 5)
    cache = KvCache(SIZES, batch=1, capacity=16)
    decoder(begun[None], cache=cache)
    decoder(guessed[None], cache=cache)
    cache.lengths -= 3
    found = decoder(right[None], cache=cache)
    expected = decoder(torch.cat([begun, right])[None])[:, -3:]
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_a_later_character_changes_no_earlier_score(decoder: Decoder) -> None:
    before, after = text(9), text(9)
    after[6] = (after[6] + 1) % 96
    one, other = decoder(before[None])[0], decoder(after[None])[0]
    torch.testing.assert_close(one[:6], other[:6])
    assert (one[6:] - other[6:]).abs().max() > 0.01


def test_position_matters(decoder: Decoder) -> None:
    here = decoder(torch.tensor([[3, 4, 5]]))[0, -1]
    swapped = decoder(torch.tensor([[4, 3, 5]]))[0, -1]
    assert (here - swapped).abs().max() > 0.01


def test_the_cache_weighs_what_the_formula_says() -> None:
    layer = Layer(
        attention=Attention(num_heads=6, num_kv_heads=2, head_dim=6),
        mlp=DenseMlp(intermediate=40, gated=True, activation="silu"),
        norm="rmsnorm",
        num_norms=2,
    )
    model = Model(name="ours", hidden=24, vocab=96, groups=((layer, 2),), tied_head=True, max_context=256)
    cache = KvCache(SIZES, batch=1, capacity=13)
    weighed = cache.keys.nbytes + cache.values.nbytes
    assert weighed == 13 * SIZES.cache_bytes_per_token == 13 * bytes_per_token(model, bytes_per_element=4)
    with_norms = Decoder(SIZES)
    assert sum(p.numel() for p in with_norms.parameters()) == model_parameters(model).total


def test_a_full_cache_says_what_would_fit() -> None:
    cache = KvCache(SIZES, batch=1, capacity=8)
    with pytest.raises(ValueError, match="9 tokens do not fit into a cache of capacity=8"):
        Decoder(SIZES)(text(9)[None], cache=cache)
    Decoder(SIZES)(text(8)[None], cache=cache)


@pytest.mark.parametrize(("wrong", "message"), [({"kv_heads": 4}, "multiple of kv_heads=4"), ({"head_dim": 5}, "even")])
def test_sizes_that_make_no_decoder_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SIZES, **wrong)


SHORT = small_language_model.Recipe(
    sizes=DecoderSizes(hidden=48, layers=1, heads=4, kv_heads=2, head_dim=12, intermediate=96),
    steps=120,
    batch=4,
    learning_rate=8e-3,
)


@pytest.fixture(scope="module")
def taught() -> small_language_model.TrainedModel:
    return small_language_model.made(SHORT)


def pairs_loss(learnt: torch.Tensor, held_out: torch.Tensor) -> float:
    """Nats per character of a model that knows how often each character follows each other one, every pair counted
    once more than seen: what a network has to beat to be worth its matmuls.
    """
    size = len(character_text.SYMBOLS)
    seen = torch.bincount(learnt[:-1] * size + learnt[1:], minlength=size * size).reshape(size, size) + 1.0
    log_shares = (seen / seen.sum(dim=1, keepdim=True)).log()
    return -float(log_shares[held_out[:-1], held_out[1:]].mean())


def test_a_second_of_training_beats_knowing_how_often_each_symbol_comes(
    taught: small_language_model.TrainedModel,
) -> None:
    learnt, held_out = character_text.split()
    shares = (torch.bincount(learnt, minlength=96) + 1.0) / (len(learnt) + 96)
    one_symbol = -float(shares.log()[held_out].mean())
    assert taught.held_out_nats < one_symbol - 0.2
    assert pairs_loss(learnt, held_out) < one_symbol < math.log(96)


def test_training_leaves_the_callers_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    small_language_model.made(dataclasses.replace(SHORT, steps=4))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_pupil_comes_closer_to_its_teacher(taught: small_language_model.TrainedModel) -> None:
    """Distilled from a teacher, a fresh model agrees with it better than one that saw as much text without it."""
    pupil = dataclasses.replace(SHORT, steps=50, taught_by="target")
    with_teacher = small_language_model.made(pupil, teacher=taught.decoder, first=taught.decoder).decoder
    alone = small_language_model.made(dataclasses.replace(SHORT, steps=50)).decoder
    pieces = character_text.split()[1][: 32 * 128].view(32, 128)
    of_teacher = taught.decoder(pieces).log_softmax(-1)

    def distance(model: Decoder) -> float:
        return float((of_teacher.exp() * (of_teacher - model(pieces).log_softmax(-1))).sum(-1).mean())

    assert distance(with_teacher) < 0.5 * distance(alone)


def test_a_kept_copy_is_trained_once_by_whoever_asks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(small_language_model, "KEPT", tmp_path)
    monkeypatch.setitem(small_language_model.RECIPES, "draft", dataclasses.replace(SHORT, steps=3))
    times = []
    make = small_language_model.made
    monkeypatch.setattr(small_language_model, "made", lambda *given, **named: times.append(1) or make(*given, **named))
    with ThreadPoolExecutor(2) as two:
        first, second = two.map(small_language_model.trained, ["draft", "draft"])
    third = small_language_model.trained("draft")
    assert len(times) == 1
    said = capsys.readouterr().out
    assert said.count("trained now") == 1
    for other in (second, third):
        assert other.held_out_nats == first.held_out_nats
        assert all(
            torch.equal(a, b) for a, b in zip(first.decoder.parameters(), other.decoder.parameters(), strict=True)
        )
    assert [path.name for path in tmp_path.rglob("*.pt")] == [small_language_model.kept_path("draft").name]


def test_a_pupil_says_one_line_whether_or_not_its_teacher_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(small_language_model, "KEPT", tmp_path)
    pupil = dataclasses.replace(SHORT, steps=2, taught_by="target", begins_as="draft")
    for name, recipe in {"target": SHORT, "draft": SHORT, "distilled": pupil}.items():
        monkeypatch.setitem(small_language_model.RECIPES, name, dataclasses.replace(recipe, steps=2))
    small_language_model.trained("distilled")
    on_an_empty_machine = capsys.readouterr().out
    small_language_model.trained("distilled")
    for said in (on_an_empty_machine, capsys.readouterr().out):
        assert said.startswith("distilled: measured ")
        assert said.count("\n") == 1
    assert on_an_empty_machine.count("trained now") == 3


def test_an_old_copy_is_not_taken_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draft, distilled = (small_language_model.kept_path(name).name for name in ("draft", "distilled"))
    monkeypatch.setitem(small_language_model.RECIPES, "draft", SHORT)
    assert small_language_model.kept_path("draft").name != draft
    assert small_language_model.kept_path("distilled").name != distilled  # it begins as the draft


def test_an_unknown_model_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there are target, draft, distilled"):
        small_language_model.trained("teacher")


def test_greedy_text_is_the_likeliest_symbol_each_time(decoder: Decoder) -> None:
    answer = small_language_model.greedy(decoder, "for x", tokens=4)
    whole = torch.tensor([character_text.numbered("for x" + answer)])
    assert decoder(whole)[0, 4:-1].argmax(-1).tolist() == character_text.numbered(answer)
