"""`chain:` in a composed job: its script, its price, what the adviser refuses, what is exported."""

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
OURS: dict[str, object] = {"script": None, "trainer": "ddp", "chain": 4}
OWN: dict[str, object] = {"script": "train.py", "trainer": None, "chain": 4}
GOOD = OWN | {"resume": ["--resume"], "signal": "USR1@300"}


def test_a_chain_is_one_job_that_may_take_its_time_limit_several_times() -> None:
    one, four = (compose(changed(JOB, {"chain": limits}, "t"), LUMI) for limits in (1, 4))
    assert (four.price.amount, four.price.per_hour) == (4 * one.price.amount, one.price.per_hour)
    added = set(four.script.splitlines()) - set(one.script.splitlines())
    assert [line.partition(" # ")[0] for line in sorted(added)] == [
        "#SBATCH --requeue",
        "lumitui_chain 4",
    ]
    own = (TEMPLATES / "job" / "chain.sh").read_text()
    assert four.texts[MACHINERY].replace(own, "") == one.texts[MACHINERY] != four.texts[MACHINERY]
    rows = {row.what: (row.before, row.after) for row in changes_between(one, four)}
    assert rows["time limit"] == (JOB.time, f"4 x {JOB.time}")


def test_what_is_exported_takes_one_time_limit() -> None:
    launch = compose(changed(JOB, {"chain": 4}, "t"), LUMI)
    assert not {"lumitui_chain", "--requeue"} & set(plain_script(launch, LUMI, "x").split())


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        (GOOD, {"chain-contract"}),
        (OWN | {"signal": "USR1@300"}, {"chain-resume", "chain-contract"}),
        (OWN | {"resume": ["--resume"]}, {"chain-signal"}),
        (GOOD | {"launcher": "torchrun"}, {"chain-exit"}),
        (GOOD | {"launcher": "plain", "gpus_per_node": 1, "nodes": 1}, {"chain-signal"}),
        (OURS, set()),
        (OURS | {"launcher": "torchrun"}, set()),
    ],
)
def test_what_a_chain_needs_of_the_program(changes: dict[str, object], rules: set[str]) -> None:
    found = findings(compose(changed(JOB, changes, "t"), LUMI), LUMI)
    assert {item.rule for item in found if item.rule.startswith("chain-")} == rules


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_a_script_that_ends_with_finish_is_not_told_to(launcher: str) -> None:
    launch = compose(changed(JOB, GOOD | {"launcher": launcher}, "t"), LUMI)
    for program, quiet in (
        ("import lumitui_run as run\nrun.finish()\n", True),
        ("import sys\nsys.exit(85)\n", False),
    ):
        found = {item.rule for item in findings(launch, LUMI, {"train.py": program})}
        assert found.isdisjoint({"chain-contract", "chain-exit"}) is quiet


def test_a_site_that_lets_no_job_go_back_into_the_queue_is_told_before_the_submit() -> None:
    site = LUMI.model_copy(update={"requeue": False})
    found = findings(compose(changed(JOB, {"chain": 2}, "t"), site), site)
    assert [item.severity for item in found if item.rule == "chain-requeue"] == ["error"]
