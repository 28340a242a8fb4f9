"""The help says what each verb and option does, and what the exit codes mean."""

from pathlib import Path

import click
import pytest

from lumitui.app.cli.main import lumitui
from tests.support.program.command_line import Here, told


@pytest.mark.parametrize("name", list(lumitui.every()))
def test_every_verb_and_option_has_help(name: str) -> None:
    verb = lumitui.every()[name]
    assert verb.help
    for param in verb.params:
        if isinstance(param, click.Option):
            assert param.help, f"{name} {param.name}"


@pytest.mark.parametrize("name", list(lumitui.every()))
def test_every_verb_is_explained_in_one_line_of_the_list(name: str) -> None:
    words = lumitui.every()[name].get_short_help_str(limit=65)
    assert words.endswith(".") and not words.endswith("...")


@pytest.mark.parametrize("name", list(lumitui.every()))
def test_the_default_of_an_option_is_one_that_it_takes(name: str) -> None:
    verb = lumitui.every()[name]
    context = click.Context(verb)
    for param in verb.params:
        if isinstance(param, click.Option) and not (param.is_eager or param.required):
            default = param.get_default(context)
            assert not isinstance(default, int | float | str) or (
                param.type_cast_value(context, default) is not None
            ), param.name


def test_h_is_help_everywhere(here: Here) -> None:
    for words in ((), ("submit",), ("site",), ("site", "check")):
        short, long = here(*words, "-h"), here(*words, "--help")
        assert short.returncode == 0 and short.stdout == long.stdout != ""


def test_a_table_in_a_help_keeps_its_lines(here: Here) -> None:
    text = here("resubmit", "--help").stdout
    assert "\\b" not in text
    assert "\n  lr: {rule: none}        keeps the learning rate [default]\n" in text


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("prevew",), "Did you mean `lumitui preview`?"),
        (("check", "lumi"), "Did you mean `lumitui site check`?"),
        (("site", "chekc"), "Did you mean `lumitui site check`?"),
        (("zzz",), "`lumitui --help`"),
        (("job.yaml",), "`lumitui preview job.yaml` or `lumitui tui job.yaml`"),
        (("job.sh",), "`lumitui import job.sh` or `lumitui lint job.sh`"),
        (("train.py",), "`lumitui new --script train.py`"),
    ],
)
def test_what_is_not_a_verb_gets_the_nearest_or_the_verbs_that_take_the_file(
    here: Here, words: tuple[str, ...], hint: str
) -> None:
    told(here(*words), 2, words[-1] if words[0] == "site" else words[0], hint)


def test_a_file_of_any_name_is_not_taken_for_a_verb(here: Here, tmp_path: Path) -> None:
    script = tmp_path / "run-it"
    script.write_text("#!/bin/bash\n")
    told(here(str(script)), 2, "is a file, not a command", f"`lumitui lint {script}`")


def test_the_exit_codes_stand_below_each_other(here: Here) -> None:
    lines = here("--help").stdout.splitlines()
    first = lines.index("  Exit codes:") + 1
    assert [line.split()[0] for line in lines[first : first + 11]] == [
        "0", "1", "2", "3", "4", "5", "6", "7", "70", "124", "130"
    ]  # fmt: skip


def test_the_verbs_stand_in_groups_each_once(here: Here) -> None:
    listed = here("--help").stdout.partition("Show this message and exit.")[2]
    groups = {
        lines[0].removesuffix(":"): [line.split()[0] for line in lines[1:]]
        for lines in (part.splitlines() for part in listed.strip().split("\n\n"))
    }
    assert groups["Other sizes"] == ["resubmit", "scaling", "grid"] and len(groups) == 6
    assert [verb for verbs in groups.values() for verb in verbs] == lumitui.list_commands(
        click.Context(lumitui)
    )
