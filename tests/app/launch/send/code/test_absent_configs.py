"""A configuration that an argument names, and that the project lacks, is found before the queue."""

from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.program.command_line import LAPTOP


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--deepspeed", "--deepspeed_config", "ds_config.json"], ["ds_config.json"]),
        (["--deepspeed=conf/ds.json"], ["conf/ds.json"]),
        (["--config", "here.yaml", "--cfg-file=gone.yaml"], ["gone.yaml"]),
        (["--config", "linked/a.yaml", "--config", "/abs/a.yaml", "--config", "$X.yaml"], []),
        (["--save_config", "out.yaml", "--config", "base", "--data", "x.json"], []),
    ],
)
def test_a_configuration_that_the_project_lacks_is_found_before_the_queue(
    args: list[str], named: list[str], runs: Runs, tmp_path: Path
) -> None:
    root = hello_project(tmp_path / "project")
    (root / "here.yaml").write_text("a: 1\n")
    spec = hello_job(**LAPTOP | {"account": "none", "args": args, "links": {"linked": "/data"}})
    found = [one for one in runs.preview(spec, root).findings if one.rule == "argument-file"]
    assert [one.severity for one in found] == ["warning"] * len(named)
    assert [one.message for one in found] == [
        f"`args:` names {name}, which the code lacks." for name in named
    ]
