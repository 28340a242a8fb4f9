"""`relaunch:` in a composed job: its script, what the adviser refuses, what is exported."""

import subprocess

import pytest

from lumitui.app.job.spec import changed
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.scale.changes import changes_between
from lumitui.remote.site.run_folder import MACHINERY
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import JOB

LUMI = Sites([BUILT_IN]).load("lumi")
OURS: dict[str, object] = {"script": None, "trainer": "ddp", "time": "01:00:00"}
OWN: dict[str, object] = {"script": "train.py", "trainer": None, "relaunch": 2}


@pytest.mark.parametrize("chain", [1, 3])
def test_the_program_becomes_a_function_that_each_launch_calls(chain: int) -> None:
    without, twice = (
        compose(changed(JOB, OURS | {"chain": chain, "relaunch": times}, "t"), LUMI)
        for times in (0, 2)
    )
    assert "relaunch" not in without.script and "program()" not in without.script
    assert "lumitui_relaunch 2 3600 60 # " in twice.script
    body = twice.script.partition("program() {")[2]
    assert body.index("resume=()") < body.index("  launch ") < body.index("lumitui_run program")
    assert twice.script.count("resume=()") == 1
    own = (TEMPLATES / "job" / "relaunch.sh").read_text()
    assert twice.texts[MACHINERY].replace(own, "") == without.texts[MACHINERY]
    assert own in twice.texts[MACHINERY]
    assert (twice.price, twice.layout) == (without.price, without.layout)
    for text in (twice.script, twice.texts[MACHINERY]):
        checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, "")
    rows = {row.what: (row.before, row.after) for row in changes_between(without, twice)}
    assert rows["relaunch"][1] == "2"


def test_what_is_exported_launches_the_program_once() -> None:
    once, twice = (compose(changed(JOB, OURS | {"relaunch": times}, "t"), LUMI) for times in (0, 2))
    assert plain_script(twice, LUMI, "x") == plain_script(once, LUMI, "x")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (OWN, ["relaunch"]),
        (OWN | {"resume": ["--resume"]}, []),
        (OWN | {"relaunch": 0}, []),
        (OURS | {"relaunch": 2}, []),
    ],
)
def test_a_script_that_cannot_continue_is_refused(
    changes: dict[str, object], fields: list[str]
) -> None:
    found = findings(compose(changed(JOB, changes, "t"), LUMI), LUMI)
    mine = [item for item in found if item.rule == "relaunch-resume"]
    assert [item.at.field for item in mine] == fields
    assert all(item.severity == "error" for item in mine)
