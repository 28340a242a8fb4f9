"""A run planned again: its beginning, what it resumes from, and what changed in its code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.run import NODE_PROBE, AttemptRecord, Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import set_in
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.launch.send.code import project_files
from lumitui.app.runs import Runs
from lumitui.app.scale import rescale
from lumitui.app.scale.changes import naming
from lumitui.app.scale.resubmission import CodeNews, code_news, code_words
from lumitui.app.scale.run_plan import (
    Basis,
    CodeChoice,
    ResubmissionRequest,
    StartPoint,
    choose_start,
    plan,
    wanted_spec,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.run_folder import RECORD
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.jobs.sites.rescaled_jobs import DDP, LUMI, launched
from tests.support.jobs.small_jobs import finish, hello_project
from tests.support.program.command_line import LAPTOP, Here


def test_a_job_that_measures_a_node_is_not_sent_again(runs: Runs) -> None:
    runs.history.begin(a_run("node-probe-1", name=NODE_PROBE, site="lumi", snapshot="s"))
    with pytest.raises(InputError, match=r"^node-probe-1 only measures a node\.") as raised:
        runs.plan_resubmission("node-probe-1", nodes=2)
    assert "`lumitui site check lumi --probe`" in raised.value.hint


def test_two_numbers_of_nodes_are_refused_and_the_same_one_twice_is_not() -> None:
    parent = a_run("a-1", site="lumi", spec=DDP, snapshot="s")
    with pytest.raises(InputError, match="2 nodes are requested, but a setting has `nodes=3`"):
        wanted_spec(parent, ResubmissionRequest(2, ("nodes=3",)))
    assert wanted_spec(parent, ResubmissionRequest(3, ("nodes=3",))).nodes == 3


@pytest.mark.parametrize(
    ("code", "keys"), [("same", ["time"]), ("current", ["time", "venv.requirements"])]
)
def test_each_setting_is_applied_once(
    runs: Runs, tmp_path: Path, code: CodeChoice, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements.txt").write_text("einops==0.8.0\n")
    runs.history.begin(a_run("a-1", site="lumi", spec=DDP, project=str(tmp_path), snapshot="s"))
    applied = list[str]()

    def spied(data: dict[str, Any], key: str, value: object) -> None:
        applied.append(key)
        set_in(data, key, value)

    monkeypatch.setattr(rescale, "set_in", spied)
    values = {"time": "02:00:00", "venv.requirements": "requirements.txt"}
    settings = [f"{key}={values[key]}" for key in keys]
    made = runs.plan_resubmission("a-1", nodes=2, settings=settings, code=code)
    assert applied == keys
    spec = made.plan.launch.spec
    assert (spec.time, spec.nodes) == ("02:00:00", 2)
    assert [spec.venv.lines if spec.venv else ()] == [("einops==0.8.0",) if keys[1:] else ()]
    assert list(made.plan.request.settings) == settings, "what the files say is read again"


def test_a_plan_needs_neither_files_nor_a_site() -> None:
    parent = a_run(
        "a-1", site="lumi", spec=DDP, project="/nowhere", snapshot="s", layout=launched(DDP).layout
    )
    request = ResubmissionRequest(4, ("--lr=0.5",), slowest_save=60.0)
    made = plan(Basis(parent, wanted_spec(parent, request)), [], LUMI, request)
    rows = {row.what: row.after for row in made.changes if row.differs}
    assert rows["nodes"] == "4"
    assert rows["stop signal"] == "USR1, 210 s before the limit"
    assert "0.5" in rows["learning rate"], "a rate that a person sets is not rescaled"


@pytest.mark.parametrize(
    ("trained", "rule", "told"),
    [
        (64, {}, "if --batch-size is the global batch, set `scale.batch.arg_is: global`."),
        (999, {}, "the batch below may be wrong."),
        (512, {}, ""),
        (64, {"arg_is": "global"}, ""),
        (None, {}, ""),
    ],
)
def test_a_batch_that_the_metrics_contradict_is_warned_about(
    trained: int | None, rule: dict[str, object], told: str
) -> None:
    scale = {"batch": {"arg": "--batch-size"} | rule}
    own = {"trainer": None, "script": "train.py", "args": ["--batch-size", "64"]}
    first = launched(changed(DDP, own | {"scale": scale}, "t"))
    parent = a_run(
        "a-1",
        site="lumi",
        spec=first.spec,
        snapshot="s",
        layout=first.layout,
        global_batch=first.global_batch,
    )
    request = ResubmissionRequest(trained_batch=trained)
    notes = plan(Basis(parent, first.spec), [], LUMI, request).notes
    warned = [note for note in notes if note.startswith("The metrics of a-1")]
    assert len(warned) == bool(told) and all(note.endswith(told) for note in warned)


SAVED = AttemptRecord(1, "7", "nid1", 100.0, 160.0, 85, 350, "requeue")
LOST = AttemptRecord(1, "7", "nid1", 100.0, 160.0, end="killed")


@pytest.mark.parametrize(
    ("attempts", "start", "said"),
    [
        ((SAVED,), "checkpoint", ["a-1 was cancelled: it resumes from its last checkpoint."]),
        ((LOST,), "scratch", []),
        ((), "scratch", []),
    ],
)
def test_a_chain_cancelled_between_attempts_continues_from_its_checkpoint(
    attempts: tuple[AttemptRecord, ...], start: StartPoint, said: list[str]
) -> None:
    run = a_run("a-1", state=State.CANCELLED, attempts=attempts)
    launch = Launch(run.spec, run.script, run.layout, run.price, can_resume=True)
    notes: list[str] = []
    assert choose_start(run, launch, ResubmissionRequest(), notes) == start
    assert notes == said


@pytest.mark.parametrize(
    ("trainer", "rc", "batch", "save", "words"),
    [
        ("ddp", 2, None, None, "It starts from scratch: a-1 saved no checkpoint."),
        ("ddp", 1, 64, None, "It starts from scratch: a-1 saved no checkpoint."),
        ("ddp", 1, None, None, "a-1 failed: it resumes from its last checkpoint, if it saved one."),
        ("ddp", 1, 64, 0.5, "a-1 failed: it resumes from its last checkpoint."),
        (None, 2, 64, None, "a-1 failed: it resumes from its last checkpoint, if it saved one."),
    ],
)
def test_a_run_that_saved_nothing_is_not_said_to_resume(
    trainer: str | None, rc: int, batch: int | None, save: float | None, words: str
) -> None:
    run = a_run("a-1", state=State.FAILED, rc=rc, started=1.0)
    keys = {"trainer": trainer, "script": None if trainer else "train.py"}
    run = replace(run, spec=run.spec.model_copy(update=keys))
    launch = Launch(run.spec, run.script, run.layout, run.price, can_resume=True)
    notes: list[str] = []
    choose_start(run, launch, ResubmissionRequest(slowest_save=save, trained_batch=batch), notes)
    assert notes == [words]


@pytest.fixture
def failed(runs: Runs, tmp_path: Path) -> Run:
    job = JobSpec.model_validate(
        {**LAPTOP, "env": {"FAIL_RANK": "0"}, "resume": ["--resume"], "proof": "off"}
    )
    run = finish(runs, runs.send(runs.preview(job, hello_project(tmp_path / "work"))))
    assert run.state is State.FAILED
    return run


def recorded(run: Run) -> object:
    return json.loads(Path(run.folder, RECORD).read_text())["resumed_from"]


@pytest.mark.parametrize("saved", [False, True])
def test_it_continues_only_from_what_was_saved(runs: Runs, failed: Run, saved: bool) -> None:
    folder = Path(failed.folder, "checkpoints")
    folder.mkdir()
    if saved:
        (folder / "last.pt").write_text("step 7")
    made = runs.plan_resubmission(failed.id)
    assert made.plan.start == "checkpoint"
    again = runs.resubmit(made)
    expected = failed.id if saved else None
    assert (again.parent, again.resumed_from) == (failed.id, expected)
    assert runs.history.get(again.id).resumed_from == expected
    assert recorded(again) == expected
    finish(runs, again)
    assert Path(again.folder, "checkpoints", "last.pt").exists() == saved
    assert not list(Path(again.folder).glob(".record*"))


def test_who_insists_on_a_checkpoint_is_refused_without_one(runs: Runs, failed: Run) -> None:
    Path(failed.folder, "checkpoints").mkdir()
    with pytest.raises(RefusedError, match="no checkpoints"):
        runs.resubmit(runs.plan_resubmission(failed.id, start="checkpoint"))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("train.py",), "Changed since the run: train.py."),
        (("a.py", "b.py"), "Changed since the run: a.py, b.py."),
        (tuple("abcd"), "Changed since the run: a, b, c, 1 more file."),
        (
            (),
            "The project differs from the code that ran, perhaps only in a job file. lumitui "
            "cannot name the files, because it has sent other code since.",
        ),
    ],
)
def test_it_names_the_files(files: tuple[str, ...], words: str) -> None:
    assert CodeNews(True, files).sentence == words
    assert CodeNews().sentence == ""


def test_a_project_is_compared_with_what_was_sent(runs: Runs, tmp_path: Path) -> None:
    project, hashes = tmp_path / "project", tmp_path / "hashes"
    project.mkdir()
    train = project / "train.py"
    train.write_text("print(1)")
    spec = SPEC.model_copy(update={"trainer": None, "script": "train.py"})
    sent = project_files.collect(spec, project, hashes).manifest
    known = runs.history.snapshots
    run = a_run(spec=spec, project=str(project), snapshot=sent.id, state=State.FAILED)
    known.remember(run.site, run.root, sent.text, sent.id)
    assert code_news(run, known, hashes) == CodeNews()
    train.write_text("print(2)")
    (project / "new.py").write_text("")
    changed = CodeNews(True, ("train.py", "new.py (added)"), "current")
    assert code_news(run, known, hashes) == changed
    assert code_words(run, "same") == "the code that failed"
    unsaved = (AttemptRecord(1, "7", "n1", 0.0, end="used-up"),)
    for state, attempts in ((State.DONE, ()), (State.TIMEOUT, ()), (State.NODE_FAILED, ()),
                            (State.FAILED, unsaved)):  # fmt: skip
        other = replace(run, state=state, attempts=attempts)
        assert code_news(other, known, hashes) == replace(changed, first="same")
        assert code_words(other, "same") == "the code that ran"
    known.remember(run.site, run.root, "", "another")
    assert code_news(run, known, hashes) == CodeNews(True, (), "current"), "another was sent since"
    assert code_news(replace(run, snapshot=None), known, hashes).first == "current"
    train.unlink()
    assert code_news(run, known, hashes) == CodeNews(), "the plan says what is wrong"


def test_the_command_line_says_that_it_sends_the_code_that_failed(
    runs: Runs, here: Here, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text("raise SystemExit(3)\n")
    data = LAPTOP | {"name": "t", "account": "none", "script": "train.py", "proof": "off"}
    run = finish(runs, runs.send(runs.preview(JobSpec.model_validate(data), tmp_path)))
    program.write_text("print('fixed')\n")
    done = here("resubmit", run.id)
    assert (
        "note: Changed since the run: train.py. This sends the code that failed; to send "
        "your current code, add `--code current`." in done.stderr
    )
    done = here("resubmit", run.id, "--code", "current", "--yes")
    assert "the run: train.py. This sends your current code.\n" in done.stderr


def test_the_same_code_gets_the_findings_on_the_files_that_have_not_changed(
    runs: Runs, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr')\nparser.parse_args()\n"
    )
    data = LAPTOP | {"name": "t", "account": "none", "script": "train.py", "proof": "off",
                     "time": "00:05:00", "args": ["--learning-rate", "1"]}  # fmt: skip
    (tmp_path / "notes.txt").write_text("Not a program.\n")
    preview = runs.preview(JobSpec.model_validate(data), tmp_path)
    run = finish(runs, runs.send(replace(preview, forced=True)))
    rules = {one.rule for one in runs.plan_resubmission(run.id).preview.findings}
    assert "unknown-argument" in rules
    with pytest.raises(InputError, match=f"The code of {run.id} lacks the script helper.py"):
        runs.plan_resubmission(run.id, settings=["script=helper.py"])
    with pytest.raises(InputError, match=r"notes\.txt is neither Python"):
        runs.plan_resubmission(run.id, settings=["script=notes.txt"])
    with pytest.raises(InputError, match=f"{run.id} has no files in the working folder gone"):
        runs.plan_resubmission(run.id, settings=["workdir=gone"])
    program.write_text(f"{program.read_text()}# another\n")
    rules = {one.rule for one in runs.plan_resubmission(run.id).preview.findings}
    assert "unknown-argument" not in rules, "these files are not the code that it sends"


@pytest.mark.parametrize("option", ["--dependency=afterok:12", "--dep afterok:12", "-d afterok:12"])
def test_a_resubmission_does_not_wait_again_for_jobs_by_their_numbers(option: str) -> None:
    options = ("--nice=5", option, f"--exclude=n1 {option}")
    parent = a_run("a-1", spec=SPEC.model_copy(update={"sbatch": options}), snapshot="s")
    assert wanted_spec(parent, ResubmissionRequest()).sbatch == ("--nice=5", "--exclude=n1")
    again = ResubmissionRequest(settings=("sbatch=[--dependency=afterok:13]",))
    assert wanted_spec(parent, again).sbatch == ("--dependency=afterok:13",)


_READS = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("-l", "--lr", type=float, default=0.1)
"""


@pytest.mark.parametrize(
    ("args", "keys", "added"),
    [
        ([], "batch: {arg: --batch-size}, lr: {arg: --lr}", ["--batch-size=64", "--lr=0.1"]),
        (["-l", "1"], "batch: {arg: --batch-size}, lr: {arg: -l}", ["--batch-size=64"]),
    ],
)
def test_unknown_arguments_are_proposed_by_the_scripts_own_names(
    runs: Runs, tmp_path: Path, args: list[str], keys: str, added: list[str]
) -> None:
    (tmp_path / "train.py").write_text(_READS)
    spec = changed(DDP, {"trainer": None, "script": "train.py", "scale": None, "args": args}, "t")
    parent = a_run(
        "a-1", site="lumi", spec=spec, project=str(tmp_path), snapshot="s", global_batch=None,
        layout=launched(spec).layout, deepspeed_config=None,
    )  # fmt: skip
    runs.history.begin(parent)
    made = runs.plan_resubmission("a-1", nodes=2)
    assert made.effect == "lumitui does not know the batch size or the learning rate."
    assert made.naming == (f"scale={{{keys}}}", *added)
    named = runs.plan_resubmission("a-1", nodes=2, settings=made.naming)
    assert (named.plan.launch.global_batch, named.naming) == (64 * 16, ())
    rate = str(args[1] if args else 0.1)
    assert named.effect == (
        f"Each step trains on 1024 samples instead of 512; the learning rate stays {rate}."
    )
    before = {change.what: (change.before, change.after) for change in named.plan.changes}
    assert before["global batch"] == ("512", "1024")
    assert before["learning rate"] == (rate, rate)
    assert not runs.plan_resubmission("a-1").effect, "on as many ranks"
    (tmp_path / "train.py").write_text("import torch")
    assert not runs.plan_resubmission("a-1", nodes=2).naming


@pytest.mark.parametrize(
    ("keep", "rule", "words"),
    [
        ("global", "none", "keeps the global batch (`keep: global`) and keeps the learning rate"),
        ("per_gpu", "sqrt", "keeps the samples of each rank (`keep: per_gpu`) and multiplies"),
    ],
)
def test_another_size_says_what_the_rules_do_to_batch_and_rate(
    runs: Runs, tmp_path: Path, keep: str, rule: str, words: str
) -> None:
    spec = changed(DDP, {"scale": {"batch": {"keep": keep}, "lr": {"rule": rule}}}, "t")
    parent = a_run("a-1", site="lumi", spec=spec, project=str(tmp_path), snapshot="s",
                   layout=launched(spec).layout, deepspeed_config=None)  # fmt: skip
    runs.history.begin(parent)
    assert words in runs.plan_resubmission("a-1", nodes=parent.layout.nodes * 2).effect
    assert "On another size" not in runs.plan_resubmission("a-1").effect


def test_a_batch_that_is_called_global_is_proposed_as_global() -> None:
    program = _READS.replace("--batch-size", "--global-batch-size")
    spec = changed(DDP, {"trainer": None, "script": "train.py", "scale": None, "args": []}, "t")
    assert naming(program, spec)[0] == (
        "scale={batch: {arg: --global-batch-size, arg_is: global}, lr: {arg: --lr}}"
    )
