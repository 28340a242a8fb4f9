"""The help says what each verb and option does, and what the exit codes mean."""

import click
import pytest

from lumitui.app.cli.main import lumitui
from tests.support.program.command_line import lt
from tests.support.program.home import Home


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


def test_the_exit_codes_stand_below_each_other(home: Home) -> None:
    lines = lt(home, "--help").stdout.splitlines()
    first = lines.index("  Exit codes:") + 1
    assert [line.split()[0] for line in lines[first : first + 9]] == [
        "0", "1", "2", "3", "4", "5", "6", "124", "130"
    ]  # fmt: skip


def test_the_verbs_stand_in_groups_each_once(home: Home) -> None:
    listed = lt(home, "--help").stdout.partition("Show this message and exit.")[2]
    groups = {
        lines[0].removesuffix(":"): [line.split()[0] for line in lines[1:]]
        for lines in (part.splitlines() for part in listed.strip().split("\n\n"))
    }
    assert groups["Other sizes"] == ["resubmit", "scaling", "grid"] and len(groups) == 6
    assert [verb for verbs in groups.values() for verb in verbs] == lumitui.list_commands(
        click.Context(lumitui)
    )
