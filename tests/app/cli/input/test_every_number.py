"""Every option that takes a number, with numbers that nobody should give: no crash."""

import click
import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.command_line import Here

STRANGE = ["-1", "0", str(2**63), "9" * 400, "9" * 5000, "nan", "inf", "-inf", "1e999", "0.5", "x"]
DESIGNED = {0, 1, 2, 3, 4, 5, 6, 7, 124, 130}
ARGUMENTS = {"run_id": "last", "run_ids": "last", "site_name": "lumi", "job": "none.yaml"}
ARGUMENTS |= {"ports": "6006", "command": "true", "page": "lint", "folder": "/"}


def numeric_options() -> list[tuple[str, str]]:
    """Return each verb with each of its options that takes a number, as the program has them."""
    return [
        (name, option.opts[0])
        for name, verb in lumitui.every().items()
        for option in verb.params
        if isinstance(option, click.Option)
        and isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    ]


@pytest.mark.parametrize(("verb", "option"), numeric_options())
def test_no_number_ends_a_verb_with_a_crash(verb: str, option: str, here: Here, runs: Runs) -> None:
    spec = SPEC.model_copy(update={"site": "laptop", "partition": "local"})
    run = a_run(site="laptop", spec=spec, folder="/nowhere/at/all")
    runs.history.begin(run)
    runs.history.update(run.id, state=State.FAILED)
    arguments = [
        ARGUMENTS[str(item.name)]
        for item in lumitui.every()[verb].params
        if isinstance(item, click.Argument)
    ]
    for number in STRANGE:
        done = here(*verb.split(), *arguments, f"{option}={number}")
        assert done.returncode in DESIGNED, (number, done.stderr)
        assert "internal error" not in done.stderr, (number, done.stderr)


def test_there_are_such_options() -> None:
    assert ("resubmit", "--nodes") in numeric_options() and len(numeric_options()) >= 5
