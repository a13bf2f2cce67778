"""One dialect: an option means one thing in every calculation, reads what is typed in one way, and has one help where
its meaning is whole.
"""

import argparse

import pytest

from threeloops.cli import GROUPS, main, parser
from threeloops.commands import budget, named
from threeloops.commands.typed import amount, context, whole

CALCULATIONS = ("kv", "fit", "serve", "allreduce", "roofline", "memory", "plan", "step")
# Option -> what reads it, and how its help begins or what it holds.
MEANS = {
    "--model": (None, named.MODEL_HELP),
    "--hardware": (None, named.HARDWARE_HELP),
    "--cache": (None, "how keys and values are stored"),
    "--weights": (None, budget.WEIGHTS_HELP),
    "--share": (budget._portion, "share of the memory that may be used"),
    "--utilisation": (budget._portion, "share of the memory that may be used"),
    "--other": (None, "of each GPU, for a"),
    "--json": (None, "print base SI units for a script"),
    "--catalog": (None, "your own parts and models"),
    "--tokens": (context, ""),
    "--sequence": (context, "tokens of one sequence"),
    "--batch": (whole, ""),
    "--tp": (whole, ""),
    "--gpus": (whole, ""),
    "--users": (whole, "at"),
    "--dtype": (None, ""),
    "--zero": (int, "ZeRO stage"),
    "--recompute": (None, ""),
    "--lora": (whole, "train adapters of this rank"),
    "--targets": (None, "with --lora"),
    "--base": (None, "with --lora"),
    "--adapter-dropout": (None, "with --lora"),
    "--dora": (None, "with --lora"),
}
# Older names, kept: (command, option) -> the option that it stands for there.
OLDER = {
    ("fit", "--format"): "--weights",
}
REFUSED = {("plan", "--format"), ("step", "--format"), ("kv", "--dtype")}  # with a sentence that says what is meant
# Where a word has another meaning after all: tokens of a whole training run are counted in billions.
OTHERWISE = {("plan", "--tokens"): amount, ("step", "--tokens"): amount}


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found.choices)


def options(command: str) -> dict[str, argparse.Action]:
    return {name: action for action in commands()[command]._actions for name in action.option_strings}


@pytest.mark.parametrize("command", CALCULATIONS)
def test_an_option_means_one_thing(command: str) -> None:
    held = options(command)
    for name, (reads, told) in MEANS.items():
        if name not in held or (command, name) in {*OLDER, *REFUSED}:
            continue
        assert held[name].type is OTHERWISE.get((command, name), reads), (command, name)
        assert told in (held[name].help or ""), (command, name)


def test_whoever_shares_a_name_shares_what_reads_it() -> None:
    """Options that the table does not hold, too, wherever two calculations have them."""
    readers: dict[str, dict[str, object]] = {}
    for command in CALCULATIONS:
        for name, action in options(command).items():
            if (command, name) not in {*OLDER, *OTHERWISE, *REFUSED}:
                readers.setdefault(name, {})[command] = action.type
    assert {name: found for name, found in readers.items() if len(set(found.values())) > 1} == {}


@pytest.mark.parametrize(("command", "older"), OLDER)
def test_an_older_name_is_a_second_one_of_the_same_option(command: str, older: str) -> None:
    held = options(command)
    assert held[older] is held[OLDER[command, older]]


def test_dtype_means_what_is_multiplied_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["kv", "--model", "llama-3-8b", "--tokens", "8k", "--dtype", "fp8"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert "--dtype: means what is multiplied, in `roofline` and `plan`; a cache is --cache fp8 here" in said


@pytest.mark.parametrize("command", ["plan", "step"])
def test_format_means_weights_and_nothing_else(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--format", "fp8"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert "--format: means how weights are stored, in `fit`; the numbers of matmuls are --dtype fp8 here" in said


def test_every_command_is_in_one_group_and_help_says_what_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(commands())
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert all(f"{question}:" in said for question in GROUPS)
    assert "exit codes: 0 answered" in said
    assert "--json prints results in base SI" in said


@pytest.mark.parametrize(
    "words",
    [
        "kv --model llama-3-8b --tokens 8k --cache bf16",
        "fit --model llama-3-8b --weights fp8 --hardware 4090 --tokens 8k",
        "roofline --model llama-3-8b --hardware h200 --dtype bf16 --tokens 8k",
        "memory --model gpt2 --recipe megatron --zero 0 --micro-batch 1 --sequence 1k --kernels fused --recompute none",
    ],
)
def test_thousands_of_tokens_may_be_written_with_a_k(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 0
    k = capsys.readouterr().out
    assert main(words.replace("8k", "8,192").replace("1k", "1024").split()) == 0
    assert capsys.readouterr().out == k
