"""A resubmission's DeepSpeed configuration: which file counts, for how many ranks, from where."""

import json
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Button, Input

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.deepspeed_batch import MICRO, TRAIN
from lumitui.app.runs import Runs
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish
from tests.support.program.command_line import LAPTOP, Here, envelope, told, write
from tests.support.program.driven_tui import app_of, sees
from tests.support.program.home import Home

JOB = "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\ntime: '01:00:00'\n"
SCRIPT = "script: train.py\ndeepspeed: {config: ds.json}\n"
ZERO = "trainer: deepspeed_zero\nstrategy: zero1\n"
LINEAR = "scale: {batch: {keep: per_gpu}, lr: {rule: linear}}\n"


def config(train: int = 64, lr: float = 0.001, **more: object) -> str:
    optimizer = {"type": "Adam", "params": {"lr": lr}}
    return json.dumps({TRAIN: train, "optimizer": optimizer, **more})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "ds.json").write_text(config())
    (tmp_path / "train.py").touch()
    return tmp_path


def ran(runs: Runs, work: Path, job: str | Resubmission, **changes: object) -> Run:
    """Write the record of a run that went on the nodes that its job asks for."""
    if isinstance(job, str):
        preview = runs.preview(parse_job(JOB + job, "t"), work)
    else:
        preview = job.preview
        changes["parent"] = job.plan.parent.id
    launch = preview.launch
    run = a_run(
        f"t-{runs.history.count():06}",
        **{
            "spec": launch.spec,
            "site": "lumi",
            "layout": launch.layout,
            "price": launch.price,
            "global_batch": launch.global_batch,
            "deepspeed_config": launch.texts.get(DEEPSPEED_CONFIG),
            "project": str(work),
            "snapshot": "s",
            "state": State.DONE,
            "started": 1.0,
            "created": float(runs.history.count()),
        }
        | changes,
    )
    runs.history.begin(run)
    return run


def sent(made: Resubmission) -> dict[str, Any]:
    found = json.loads(made.preview.launch.texts[DEEPSPEED_CONFIG])
    assert isinstance(found, dict)
    return found


def batch_and_rate(made: Resubmission) -> tuple[object, object]:
    found = sent(made)
    return found[TRAIN], found["optimizer"]["params"]["lr"]


# -- which file


def test_an_edited_configuration_counts_with_the_current_code_alone(runs: Runs, work: Path) -> None:
    run = ran(runs, work, SCRIPT)
    (work / "ds.json").write_text(config(128, 9e-9, gradient_clipping=1.0))
    assert batch_and_rate(runs.plan_resubmission(run.id)) == (64, 0.001)
    made = runs.plan_resubmission(run.id, code="current")
    assert batch_and_rate(made) == (128, 9e-9)
    rows = {row.what: (row.before, row.after) for row in made.plan.changes}
    assert rows["global batch"] == ("64", "128")
    assert rows["learning rate"] == ("0.001", "9e-09")
    assert rows["gradient_clipping"] == ("none", "1")
    assert rows[MICRO] == ("8", "16")


def test_a_configuration_named_by_hand_stands_as_it_is(runs: Runs, work: Path) -> None:
    run = ran(runs, work, SCRIPT + LINEAR)
    (work / "other.json").write_text(config(256, 0.007))
    settings = ["deepspeed.config=other.json"]
    made = runs.plan_resubmission(run.id, nodes=4, settings=settings, code="current")
    assert batch_and_rate(made) == (256, 0.007)
    with pytest.raises(InputError, match="unchanged") as refused:
        runs.plan_resubmission(run.id, settings=settings)
    assert "--code current" in refused.value.hint
    with pytest.raises(InputError, match=r"Cannot read .*other2\.json"):
        runs.plan_resubmission(run.id, settings=["deepspeed.config=other2.json"], code="current")


def test_an_edited_configuration_is_written_for_the_first_runs_ranks(
    runs: Runs, work: Path
) -> None:
    first = ran(runs, work, SCRIPT + LINEAR)
    second = ran(runs, work, runs.plan_resubmission(first.id, nodes=2))
    third = ran(runs, work, runs.plan_resubmission(second.id, nodes=4, code="current"))
    # The file was not touched: what the chain has grown to stays, and grows on.
    again = runs.plan_resubmission(third.id, code="current")
    assert batch_and_rate(again) == (256, 0.004)
    assert not [row for row in again.plan.changes if row.differs]
    (work / "ds.json").write_text(config(32, 0.002))
    assert batch_and_rate(runs.plan_resubmission(third.id, code="current")) == (128, 0.008)
    larger = runs.plan_resubmission(third.id, nodes=8, code="current")
    assert batch_and_rate(larger) == (256, 0.016)


def test_a_rate_that_is_an_argument_follows_the_batch_of_the_run_before(
    runs: Runs, work: Path
) -> None:
    scale = "scale: {batch: {keep: per_gpu}, lr: {rule: linear, arg: --rate}}\n"
    first = ran(runs, work, SCRIPT + "args: [--rate, 0.1]\n" + scale)
    second = ran(runs, work, runs.plan_resubmission(first.id, nodes=2))
    assert second.spec.args == ("--rate", "0.2")
    made = runs.plan_resubmission(second.id, nodes=4, code="current")
    assert made.preview.launch.spec.args == ("--rate", "0.4")


def test_a_strategy_named_by_hand_brings_its_configuration(runs: Runs, work: Path) -> None:
    run = ran(runs, work, "script: train.py\n")
    settings = ["strategy=zero1", "deepspeed.config=ds.json"]
    made = runs.plan_resubmission(run.id, nodes=2, settings=settings, code="current")
    assert batch_and_rate(made) == (64, 0.001)
    bundled = ran(runs, work, "trainer: ddp\nargs: [--batch-size, 8]\n", state=State.FAILED)
    settings = ["strategy=zero1", "trainer=deepspeed_zero", "args=[]"]
    made = runs.plan_resubmission(bundled.id, settings=settings, code="current")
    assert sent(made)["zero_optimization"]["stage"] == 1
    assert made.plan.start == "scratch"
    assert any("ddp wrote it, not deepspeed_zero" in note for note in made.plan.notes)
    with pytest.raises(InputError, match="which lacks the trainer deepspeed_zero"):
        runs.plan_resubmission(bundled.id, settings=settings)


# -- from where


@pytest.mark.parametrize(
    ("optimizer", "settings", "nodes", "reason"),
    [
        ("SGD", [], 2, "not that of SGD; 8 ranks wrote it, and 16 would read it"),
        ("Adam", ["strategy=zero2"], 1, "its ZeRO stage is 1, not 2"),
    ],
)
def test_a_zero_checkpoint_that_cannot_be_divided_starts_from_scratch(
    runs: Runs, work: Path, optimizer: str, settings: list[str], nodes: int, reason: str
) -> None:
    (work / "ds.json").write_text(config().replace("Adam", optimizer))
    job = ZERO + "deepspeed: {config: ds.json}\n"
    run = ran(runs, work, job, state=State.TIMEOUT)
    assert runs.plan_resubmission(run.id).plan.start == "checkpoint"
    made = runs.plan_resubmission(run.id, nodes=nodes, settings=settings)
    assert made.plan.start == "scratch"
    assert any("starts from scratch" in note and reason in note for note in made.plan.notes)
    with pytest.raises(InputError, match=reason) as refused:
        runs.plan_resubmission(run.id, nodes=nodes, settings=settings, start="checkpoint")
    assert "--from scratch" in refused.value.hint


def test_other_checkpoints_are_continued_on_any_number_of_ranks(runs: Runs, work: Path) -> None:
    for job in ("trainer: ddp\nargs: [--batch-size, 8]\n", ZERO):
        bundled = ran(runs, work, job, state=State.TIMEOUT)
        assert runs.plan_resubmission(bundled.id, nodes=2).plan.start == "checkpoint"
    own = ran(runs, work, SCRIPT + "resume: [--resume]\n", state=State.TIMEOUT)
    made = runs.plan_resubmission(own.id, nodes=2)
    assert made.plan.start == "checkpoint"
    assert any("8 ranks wrote the checkpoint" in note for note in made.plan.notes)
    assert not any("8 ranks" in note for note in runs.plan_resubmission(own.id).plan.notes)


async def test_the_dialog_tells_both_and_lets_the_person_choose(home: Home, work: Path) -> None:
    async with LumiApp(home.settings).run_test(size=(110, 45)) as pilot:
        (work / "ds.json").write_text(config().replace("Adam", "SGD"))
        job = ZERO + "deepspeed: {config: ds.json}\n"
        run = ran(app_of(pilot).runs, work, job, state=State.TIMEOUT)
        pilot.app.push_screen(ResubmitDialog(run, 2))
        await sees(pilot, "It starts from scratch: DeepSpeed repartitions")
        await sees(pilot, "starts +from scratch")
        await pilot.click("#start")
        await sees(pilot, "cannot resume from")
        assert pilot.app.screen.query_one("#yes", Button).disabled
        pilot.app.screen.query_one("#nodes", Input).value = "1"
        await sees(pilot, "◂ from checkpoint ▸")


# -- seen by the job

TELL = """\
import json, sys
used = json.load(open(sys.argv[sys.argv.index("--deepspeed_config") + 1]))
print("LR USED", used["optimizer"]["params"]["lr"], flush=True)
"""


def test_the_job_trains_with_the_edited_configuration(
    runs: Runs, here: Here, tmp_path: Path
) -> None:
    job = {**LAPTOP, "script": "tell.py", "deepspeed": {"config": "ds.json"}}
    path = write(tmp_path / "work" / "job.yaml", job)
    (path.parent / "tell.py").write_text(TELL)
    (path.parent / "ds.json").write_text(config(lr=0.0001))
    run = finish(runs, runs.send(runs.preview(JobSpec.model_validate(job), path.parent)))
    (path.parent / "ds.json").write_text(config(lr=9e-9))
    refused = here("resubmit", run.id, "--set", "deepspeed.config=ds.json", "--yes")
    told(refused, 2, "unchanged", "--code current")
    done = here("resubmit", run.id, "--code", "current", "--yes", "--json")
    again = finish(runs, runs.history.get(envelope(done)["data"]["id"]))
    assert "LR USED 9e-09" in runs.read_log(again.id)[1].decode()
    assert "learning rate" in done.stderr and "9e-09" in done.stderr


def test_a_file_nobody_edited_stays_what_the_chain_made_of_it(runs: Runs, work: Path) -> None:
    """Current code alone takes back neither a batch set by hand nor a file named by hand."""
    batch = "args: [--batch-size, 8]\n"
    rule = "scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {rule: linear}}\n"
    first = ran(runs, work, SCRIPT + batch + rule)
    by_hand = ["--batch-size=16"]
    second = ran(runs, work, runs.plan_resubmission(first.id, settings=by_hand, code="current"))
    for nodes in (1, 2):
        plans = [
            runs.plan_resubmission(second.id, nodes=nodes, code=code)
            for code in ("same", "current")
        ]
        assert sent(plans[0]) == sent(plans[1])
        assert sent(plans[1])[TRAIN] == 128 * nodes
        assert plans[1].preview.launch.spec.args == ("--batch-size", "16")
    named = ["deepspeed.config=ds.json"]
    wide = ran(
        runs,
        work,
        runs.plan_resubmission(
            ran(runs, work, SCRIPT + LINEAR).id, nodes=4, settings=named, code="current"
        ),
    )
    assert sent(runs.plan_resubmission(wide.id, code="current"))[TRAIN] == 64
