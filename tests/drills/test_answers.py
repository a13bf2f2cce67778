"""What a learner may type, and what is said to everything else."""

import contextlib
import math
import subprocess
import sys

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some

from threeloops.drills.engine.answers import EXAMPLES, UnreadableError, parse
from threeloops.drills.engine.spelling import nouns


@pytest.mark.parametrize(
    ("written", "like", "value"),
    [
        ("24.5 GB", "B", 24.5e9),
        ("24.5e9 bytes", "B", 24.5e9),
        ("24.5GB", "B", 24.5e9),
        ("  6 GiB ", "B", 6 * 2**30),
        ("1,234,567 B", "B", 1234567),
        ("64 KB", "B", 64e3),
        ("1 Tbit", "B", 1.25e11),
        ("1960 ms", "s", 1.96),
        ("1,960 ms", "s", 1.96),
        ("12 µs", "s", 12e-6),
        ("12 us", "s", 12e-6),
        ("2 min", "s", 120),
        ("400 Gbit/s", "B/s", 50e9),
        ("50 GB per s", "B/s", 50e9),
        ("50 GBps", "B/s", 50e9),
        ("295 FLOP/byte", "FLOP/B", 295),
        ("0.295 kFLOP/B", "FLOP/B", 295),
        ("128 KiB/token", "B/token", 131072),
        ("1200 tok/s", "token/s", 1200),
        ("$0.35", "dollar", 0.35),
        ("US$ 1,250.50", "dollar", 1250.5),
        ("$12k", "dollar", 12e3),
        ("$.5", "dollar", 0.5),
        ("0.35 dollars", "dollar", 0.35),
        ("35 cents", "dollar", 0.35),
        ("1.2 USD", "dollar", 1.2),
        ("46 %", "", 0.46),
        ("8x", "", 8),
        ("8×", "", 8),
        ("59", "", 59),
        (59, "", 59),
        (numpy.float32(0.5), "", 0.5),
        (".5 s", "s", 0.5),
        ("-3 s", "s", -3),
        ("$10,803", "dollar", 10803),
        ("10.8k dollars", "dollar", 10.8e3),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("8.4 TFLOPs", "FLOP", 8.4e12),
        ("8.4 TFLOPS", "FLOP", 8.4e12),
        ("~24.5 GB", "B", 24.5e9),
        ("= 24.5 GB", "B", 24.5e9),
        ("about 3 ms", "s", 3e-3),
        ("2*36*4", "", 288),
        ("2 x 36 x 4 GB", "B", 288e9),
        ("(3 + 4) * 2 s", "s", 14),
        ("2^13", "", 8192),
        ("2**13 B", "B", 8192),
        ("1.5e3*2 B", "B", 3000),
        ("10.8k", "", 10.8e3),
        ("10.8 k tokens", "token", 10.8e3),
        ("30.3 billion tokens", "token", 30.3e9),
        ("1.2M tokens/s", "token/s", 1.2e6),
        ("85 cm", "m", 0.85),
        ("85 centimetres", "m", 0.85),
        ("850 mm", "m", 0.85),
        ("1.2 km", "m", 1200),
        ("2 weeks", "s", 14 * 86400),
        ("1.5 d", "s", 1.5 * 86400),
        ("3 GBytes", "B", 3e9),
        ("3 Gbytes", "B", 3e9),
        ("3 Gigabytes", "B", 3e9),
        ("700 Watts", "W", 700),
        ("8.4 tflops", "FLOP/s", 8.4e12),
        ("8.4e12 flops", "FLOP", 8.4e12),
        ("8.4 TF", "FLOP/s", 8.4e12),
        ("8.4 TFLOPs", "FLOP/s", 8.4e12),
        ("1.2 petaflops", "FLOP/s", 1.2e15),
        ("1200 tps", "token/s", 1200),
        ("1.2K t/s", "token/s", 1200),
        ("400 Gbps", "B/s", 50e9),
        ("80 gb", "B", 80e9),
        ("80 GIB", "B", 80 * 2**30),
        ("80G", "B", 80e9),
        ("128K", "B/token", 128e3),
        ("0.4B tokens", "token", 0.4e9),
        ("1.2T tokens", "token", 1.2e12),
        ("400 million", "token", 400e6),
        ("251", "token", 251),
        ("12 500 tokens", "token", 12500),
        ("~$43", "dollar", 43),
        ("about $43", "dollar", 43),
        ("43 $", "dollar", 43),
        ("$27.4K", "dollar", 27.4e3),
        ("$1.2 million", "dollar", 1.2e6),
        ("43 usd", "dollar", 43),
        ("2.1X", "", 2.1),
        ("x2.1", "", 2.1),
        ("4.5x faster", "", 4.5),
        ("a factor of 2.1", "", 2.1),
        ("factor 2.1", "", 2.1),
        ("2 fold", "", 2),
        ("46% of peak", "", 0.46),
        ("46 per cent", "", 0.46),
        ("46 pct", "", 0.46),
        ("2 min 3 s", "s", 123),
        ("1m57s", "s", 117),
        ("82 ms or so", "s", 82e-3),
        ("82 ms (rounded)", "s", 82e-3),
        ("82 milli seconds", "s", 82e-3),
        ("24.5 GB total", "B", 24.5e9),
        ("24.5 GB each", "B", 24.5e9),
        ("35 ct", "dollar", 0.35),
        ("35¢", "dollar", 0.35),
        ("295 flops/byte", "FLOP/B", 295),
        ("295 ops per byte", "FLOP/B", 295),
        ("312 trillion flops", "FLOP/s", 312e12),
        ("1 in 20", "", 0.05),
        ("3 out of 4", "", 0.75),
        ("1 h 30 min", "s", 5400),
        ("around 3 ms", "s", 3e-3),
        ("circa 3 ms", "s", 3e-3),
        ("approx 3 ms!", "s", 3e-3),
        ("82 ms,", "s", 82e-3),
        ("10⁹", "", 1e9),
        ("3 × 10⁻⁶ s", "s", 3e-6),
        ("24,5 GB", "B", 24.5e9),
        ("1.234,5 GB", "B", 1234.5e9),
        ("$0,35", "dollar", 0.35),
        ("$20.88$", "dollar", 20.88),
        (r"\$20.88", "dollar", 20.88),
        ("$~43", "dollar", 43.0),
        ("$12,000 ($12k)", "dollar", 12e3),
        ("~$24 ($3 * 8 h)", "dollar", 24),
        ("$3 * 8 = $24", "dollar", 24),
        ("$3 × 8", "dollar", 24),
        ("$3 + $4", "dollar", 7),
        ("$24 = 3 * 8", "dollar", 24),
        ("$43/day", "dollar", 43),
        ("$2,500,000 = $2.5 million", "dollar", 2.5e6),
        ("$1.2e3$", "dollar", 1.2e3),
        ("$12k$", "dollar", 12e3),
        ("$20.88$ dollars", "dollar", 20.88),
        ("about $20.88$", "dollar", 20.88),
        (r"\$1.2 \times 10^6", "dollar", 1.2e6),
        (r"$1.2 \times 10^{6}$", "dollar", 1.2e6),
        ("US$ 1.2 × 10^6", "dollar", 1.2e6),
        ("about 43 bucks", "dollar", 43.0),
        ("2 grand", "dollar", 2000.0),
        ("$43 USD", "dollar", 43.0),
        ("$20.88$ GB", "B", 20.88e9),
        (r"$\approx 20.88\,\mathrm{GB}$", "B", 20.88e9),
        (r"\(2.088 \times 10^{10}\) bytes", "B", 20.88e9),
        (r"\boxed{20.88\ \text{GB}}", "B", 20.88e9),
        ("_20.88 GB_", "B", 20.88e9),
        (r"$46\%$", "", 0.46),
        (r"$\frac{3}{4}$", "", 0.75),
        (r"$1\frac{1}{2}$ s", "s", 1.5),
        (r"2\,\frac{1}{2} h", "s", 9000),
        (r"2$\frac{3}{4}$ GB", "B", 2.75e9),
        (r"$3 \times \frac{1}{2}$ s", "s", 1.5),
        (r"$12\,\mu\mathrm{s}$", "s", 12e-6),
        (r"5 \mu s", "s", 5e-6),
        (r"$12 \mu\text{s}$", "s", 12e-6),
        ("1{,}960 ms", "s", 1.96),
        ("0,806 ms", "s", 0.806e-3),
        ("24.5ish GB", "B", 24.5e9),
        ("I'd say 24.5 GB, I think", "B", 24.5e9),
        ("x = 24.5 GB", "B", 24.5e9),
        ("(24.5 GB)", "B", 24.5e9),
        ("24.5 gigs of HBM?", "B", 24.5e9),
        ("24 1/2 GB", "B", 24.5e9),
        ("twenty-four point five gigabytes", "B", 24.5e9),
        ("80 GiB, i.e. 85.9 GB", "B", 80 * 2**30),
        ("85.9 GB = 80 GiB", "B", 85.9e9),
        ("1.5 GB/s/GPU", "B/s", 1.5e9),
        ("1.5 GB a second per direction", "B/s", 1.5e9),
        ("1.947×10^3 Gbps", "B/s", 1947e9 / 8),
        ("1200 tok/s/user", "token/s", 1200),
        ("~1.2e3 tok/s", "token/s", 1200),
        ("312 TFLOPS dense", "FLOP/s", 312e12),
        ("312 T", "FLOP/s", 312e12),
        ("8.4×10¹² floating-point operations", "FLOP", 8.4e12),
        ("half a second", "s", 0.5),
        ("½ s", "s", 0.5),
        ("1½ h", "s", 5400),
        ("an hour and a half", "s", 5400),
        ("one and a half hours", "s", 5400),
        ("a quarter of an hour", "s", 900),
        ("1h30", "s", 5400),
        ("2 minutes, 3 seconds", "s", 123),
        ("1:30:00", "s", 5400),
        ("2:03 min", "s", 123),
        ("1:30 h", "s", 5400),
        ("16Ki tokens", "token", 16384),
        ("$27.4m", "dollar", 27.4e6),
        ("1.96×10^0 $", "dollar", 1.96),
        ("one in twenty", "", 0.05),
        ("five percent", "", 0.05),
        ("two thirds", "", 2 / 3),
        ("⅓", "", 1 / 3),
        ("33 1/3 %", "", 1 / 3),
        ("threefold", "", 3),
        ("twice", "", 2),
        ("3:1", "", 3),
        ("1 to 3", "", 1 / 3),
        ("√2", "", 2**0.5),
        ("2 sqrt(2)", "", 8**0.5),
        ("one hundred and twenty", "", 120),
        ("≥ 72", "", 72),
        ("at least 72", "", 72),
        ("9*8 = 72", "", 72),
        ("275 Watt", "W", 275),
        ("60.9 GB (56.7 GiB)", "B", 60.9e9),
        ("6.00 GiB (6.44 GB)", "B", 6 * 2**30),
        ("**20.88 GB**", "B", 20.88e9),
        ("`20.88 GB`", "B", 20.88e9),
        ("20.88 Go", "B", 20.88e9),
        ("20.880.000.000 B", "B", 20.88e9),
        ("348 GB s^-1", "B/s", 348e9),
        ("348 GB·s⁻¹", "B/s", 348e9),
        ("1:55.4", "s", 115.4),
        ("1.2 Mio tokens", "token", 1.2e6),
    ],
)
def test_answers_are_read_into_base_units(written: object, like: str, value: float) -> None:
    assert parse(written, like=like).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("written", "like", "told"),
    [
        ("6.44", "B", "6.44 of what"),
        (6.44, "B", "6.44 of what"),
        ("GB", "B", "is not a number with a unit"),
        ("", "B", "nothing is written"),
        ("0.35", "dollar", "0.35 of what"),
        ("$", "dollar", "is not a number with a unit"),
        ("$3", "s", "^dollars are money, which was not asked; give it like"),
        ("3 dollars", "s", "^dollars are money, which was not asked; give it like"),
        ("3 USD", "B", "^dollars are money, which was not asked; give it like"),
        (r"\frac{1}{2}\frac{3}{4} s", "s", "is not a number with a unit"),
        (r"\frac{1}{2}3 s", "s", "is not a number with a unit"),
        ("$20-25", "dollar", "is not a number with a unit"),
        ("$20 ± 2", "dollar", "is not a number with a unit"),
        ("$3 $11", "dollar", "is not a"),
        ("$24/h × 8 h = $192", "dollar", "is not a number with a unit"),
        ("20 EUR", "dollar", "'20 EUR' is not in dollars, and no rate of exchange is given"),
        *((one, "dollar", "is not in dollars") for one in ("€20", "¥20", "A$20", "C$ 20", "HK$20", "20 AUD")),
        ("3 bananas", "B", "is not a unit that this book knows"),
        ("3 s", "B", "does not measure what was asked"),
        ("400 Gb/s", "B/s", "bits or bytes"),
        ("400 gb/s", "B/s", "bits or bytes"),
        ("80 Gb", "B", "bits or bytes"),
        ("8.4 TFLOP", "FLOP/s", "does not measure what was asked"),
        ("1234,567 ms", "s", "write a decimal point"),
        ("between 24 and 25 GB", "B", "is not a number with a unit"),
        ("24.5 ± 0.5 GB", "B", "is not a number with a unit"),
        ("1,5,2 GB", "B", "is not a number with a unit"),
        ("2:75", "s", "is not a number with a unit"),
        ("3:0", "", "is not a number with a unit"),
        ("two thousand and five", "", "is not a number with a unit"),
        ("one twenty", "", "is not a number with a unit"),
        ("two five", "", "is not a number with a unit"),
        ("twelve twenty", "", "is not a number with a unit"),
        ("24 GB (binary)", "B", "is not a number with a unit"),
        ("1 1/0 GB", "B", "is not a number with a unit"),
        ("0x68", "", "hexadecimal"),
        ("60.9 GB (60.9 GiB)", "B", "are not the same"),
        ("1 s 2 h", "s", "is not a number with a unit"),
        ("24-25 GB", "B", "is not a number with a unit"),
        ("72 GPUs", "", "is not a unit that this book knows"),
        ("2.45 ms", "", "does not measure what was asked"),
        ("8.4 TFLOPS", "s", "does not measure what was asked"),
        ("nan GB", "B", "is not a number with a unit"),
        ("inf s", "s", "is not a number with a unit"),
        ("1e999 s", "s", "finite"),
        (math.nan, "", "no number at all"),
        (math.inf, "", "no number at all"),
        (None, "B", "not a NoneType"),
        (True, "", "not a bool"),
        ([1, 2], "B", "not a list"),
        (numpy.zeros(3), "B", "not a ndarray"),
        (1j, "", "not a complex"),
        ("9" * 5000, "B", "too long"),
        ("__import__('os')", "B", "is not a number with a unit"),
        ("2**99999 s", "s", "is not a number with a unit"),
    ],
)
def test_everything_else_is_asked_again_in_one_sentence(written: object, like: str, told: str) -> None:
    with pytest.raises(UnreadableError, match=told) as refusal:
        parse(written, like=like)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "like", "value"),
    [
        ("72 GPUs", "", 72),
        ("1 GPU", "", 1),
        ("stage 3", "", 3),
        ("128 KiB/token", "B", 131072),
        ("0.3 GB per GPU", "B", 0.3e9),
        ("288 tokens", "", 288),
        ("3-fold", "", 3),
        ("30 fps", "", 30),
        ("30 Hz", "", 30),
        ("30 req/s", "", 30),
        ("50 km/h", "", 50),
        ("50 kph", "", 50),
        ("20 dB", "", 20),
        ("72 H100s", "", 72),
        ("30 RPS", "", 30),
        ("0.3 GB/tok", "B", 0.3e9),
    ],
)
def test_words_of_the_question_may_stand_with_the_number(written: str, like: str, value: float) -> None:
    words = nouns(
        "Which ZeRO stage fits on 72 GPUs, how many bytes is a token, how many requests per second, at how many km/h,"
        " and how many decibels?"
    )
    assert parse(written, like=like, nouns=words).value == pytest.approx(value, rel=1e-12)


def test_of_two_readings_the_one_that_fits_is_taken_and_the_other_asked_about() -> None:
    for written, like, target, asked in (
        ("14,806 ms", "s", 14.806, False),
        ("14,806 ms", "s", 0.014806, True),
        ("14,806 tokens", "token", 14806, False),
        ("80G", "B", 80e9, False),
        ("80G", "B", 80 * 2**30, True),
        ("128K tokens", "token", 131072, True),
        ("1,234,567 B", "B", 1.2, False),
        ("960.000 B", "B", 960e3, True),
        ("960.000 B", "B", 960, False),
        ("1.255 tokens", "token", 1255, True),
        ("3:1", "", 3, False),
        ("1:3", "", 0.25, True),
        ("2:03", "s", 123, False),
        ("2:03", "s", 7380, True),
        ("1.255 kB", "B", 1.255e6, False),  # of kilobytes a decimal is usual: a thousand too small, and told so
    ):
        assert parse(written, like=like).doubtful(target) == asked, written


@given(some.lists(some.integers(1, 999), min_size=2, max_size=5), some.sampled_from(["*", " × ", " x ", "·"]))
def test_a_product_is_worked_out(factors: list[int], sign: str) -> None:
    assert parse(sign.join(map(str, factors)) + " B", like="B").value == math.prod(factors)


def test_a_unit_of_the_question_is_no_noun_of_it() -> None:
    with pytest.raises(UnreadableError, match="does not measure what was asked"):
        parse("2.45 ms", like="", nouns=nouns("A step takes 160 ms. After how many steps has it paid?"))


def test_a_million_of_the_question_takes_none_away_from_the_answer() -> None:
    asked = nouns("It is trained on 62 million scenes. How many GPUs does that take?")
    assert parse("62 million", like="", nouns=asked).value == 62e6
    assert parse("62 million scenes", like="", nouns=asked).value == 62e6
    assert parse("62 scenes", like="", nouns=asked).value == 62


def test_a_number_too_long_to_print_is_refused_too() -> None:
    with pytest.raises(UnreadableError, match="as large as this"):
        parse(10**5000, like="")


@given(some.text(max_size=60), some.sampled_from(sorted(EXAMPLES)))
def test_no_text_gets_past_as_anything_but_a_number(text: str, like: str) -> None:
    with contextlib.suppress(UnreadableError):
        assert math.isfinite(parse(text, like=like).value)


@given(some.floats(1e-6, 1e15), some.sampled_from(["GB", "GiB", "MB", "kB", "B"]))
def test_what_is_written_with_a_unit_is_read_back(number: float, unit: str) -> None:
    scale = {"GB": 1e9, "GiB": 2**30, "MB": 1e6, "kB": 1e3, "B": 1}[unit]
    assert parse(f"{number!r} {unit}", like="B").value == pytest.approx(number * scale)


def test_two_readers_of_the_first_unit_load_it_once() -> None:
    """The room gets ready in a thread while the learner may already answer."""
    work = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from threeloops.drills.engine import answers\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    read = [pool.submit(answers.parse, '2 GB', like='B') for _ in range(4)]\n"
        "    print({one.result().value for one in read}, 'dask' in sys.modules)\n"
    )
    told = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, timeout=60)
    assert told.stdout == "{2000000000.0} False\n", told.stderr


def test_a_comma_before_an_exponent_is_no_thousand() -> None:
    with pytest.raises(UnreadableError, match="decimal point, not a comma"):
        parse("8,448e-5 GB", like="B")
