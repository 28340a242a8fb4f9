"""A draft says what is wrong with it at its field, fixes it, and is saved whole."""

import os
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.follow.results.log_patterns import series_of
from lumitui.app.job.edit import set_key
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.draft.job_form import apply_fix
from lumitui.app.launch.send import draft as drafts
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.drafts import CheckedDraft, total_price
from lumitui.app.runs import Runs, files_here
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home

JOB = """# a trial
name: vit                # short
site: lumi
account: project_462000001
partition: small-g
nodes: 2
time: "01:00:00"
script: train.py
args: [--lr, "0.1"]      # found by hand
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


def check(runs: Runs, folder: Path, text: str) -> CheckedDraft:
    return runs.drafts.check(Draft(text, folder, "a test"))


def field(checked: CheckedDraft, key: str) -> job_form.Field:
    return next(item for item in checked.fields if item.key == key)


def test_too_many_nodes_stand_at_nodes_and_one_fix_ends_it(runs: Runs, folder: Path) -> None:
    checked = check(runs, folder, JOB.replace("nodes: 2", "nodes: 9"))
    (problem,) = field(checked, "nodes").problems
    assert problem.at.line == 6 and problem.severity == "error" and problem.fix
    assert problem.words.endswith("small-g allows for a job (4). → use standard-g")
    fixed = apply_fix(checked.draft.text, problem.fix)
    assert fixed == JOB.replace("nodes: 2", "nodes: 9").replace("small-g", "standard-g")
    assert not check(runs, folder, fixed).errors


@pytest.mark.parametrize(
    ("old", "new", "key", "fixed"),
    [
        ("nodes: 2", "nods: 2", "", "nodes: 2"),
        ("small-g", "smal-g", "partition", "small-g"),
        ("time:", "launcher: tochrun\ntime:", "launcher", "launcher: torchrun"),
        ("time:", "strategy: dpp\ntime:", "strategy", "strategy: ddp"),
        ("time:", "proof: onn\ntime:", "proof", 'proof: "on"'),
        ("lumi\n", "lumo\n", "site", "lumi\n"),
        ("time:", "memory: 900G\ntime:", "memory", "nodes: 2\ntime:"),
        ("time:", "env: {NCCL_NET_GDR_LEVEL: PHB}\ntime:", "env", "nodes: 2\ntime:"),
        ("time:", "sbatch: [--gpu-bind=closest]\ntime:", "sbatch", "nodes: 2\ntime:"),
        ("time:", "container: {generation: leif}\ntime:", "container.generation", "laif"),
    ],
)
def test_a_fix_ends_its_problem_and_changes_nothing_else(
    runs: Runs, folder: Path, old: str, new: str, key: str, fixed: str
) -> None:
    text = JOB.replace(old, new)
    checked = check(runs, folder, text)
    found = field(checked, key).problems if key else job_form.loose(checked.problems)
    assert found and found[0].fix and found[0].at.line
    after = apply_fix(text, found[0].fix)
    assert fixed in after and "# short" in after and "# found by hand" in after
    assert not check(runs, folder, after).errors


def test_every_mistake_has_its_field_and_its_line(runs: Runs, folder: Path) -> None:
    text = JOB.replace("nodes: 2", "nodes: two").replace('"01:00:00"', "10")
    checked = check(runs, folder, text)
    assert field(checked, "nodes").problems[0].at.line == 6
    assert "ambiguous" in field(checked, "time").problems[0].words
    assert field(checked, "nodes").value == "two", "what was typed stays to be seen"
    assert not checked.previews
    broken = check(runs, folder, JOB + "env: {\n")
    assert broken.problems[0].at.line and not broken.fields and broken.draft.text.endswith("{\n")


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("nodes: 2", "nods: 2\nlauncher: tochrun\nproof: onn", ["nods", "proof", "launcher"]),
        ('"01:00:00"', "10\nlauncher: tochrun", ["time", "launcher"]),
        ("nodes: 2", "nodes: two\nmemory: 900G\nproof: onn", ["nodes", "proof", "memory"]),
        ("train.py", "train.py\ntrainer: magic\nnods: 1", ["trainer", "nods"]),
        ("small-g", "smal-g\nlauncher: tochrun", ["launcher", "partition"]),
    ],
)
def test_errors_that_show_only_after_others_are_named_too(
    runs: Runs, folder: Path, old: str, new: str, fields: list[str]
) -> None:
    checked = check(runs, folder, JOB.replace(old, new))
    assert sorted(item.at.field for item in checked.errors) == sorted(fields)
    assert checked.where == f"lumi {'smal-g' if old == 'small-g' else 'small-g'}"


def test_a_job_script_is_told_to_be_one(runs: Runs, folder: Path) -> None:
    for text in (
        "#!/bin/bash\n#SBATCH --nodes=2\nsrun a\n",
        "#SBATCH -N 2\nsrun bash -c 'a: b: c'\n",
    ):
        (problem,) = check(runs, folder, text).problems
        assert "is a job script, not a job file" in problem.words
        assert "`lumitui import " in problem.words and "`lumitui lint " in problem.words


def test_the_form_says_what_each_site_is(runs: Runs, folder: Path) -> None:
    offered = {item.value: item.words for item in field(check(runs, folder, JOB), "site").choices}
    assert offered["karolina"] == "Karolina GPU: 8 x NVIDIA A100 per node"
    assert offered["puhti"] == "Puhti: closed on 2026-07-31; use roihu"


def test_the_form_has_the_choices_of_the_site_with_their_limits(runs: Runs, folder: Path) -> None:
    checked = check(runs, folder, JOB)
    partition = field(checked, "partition")
    assert [item.value for item in partition.choices] == ["standard-g", "small-g", "dev-g"]
    assert partition.choices[0].words == "up to 1,024 nodes, 48 h, whole nodes"
    assert (
        job_form.stepped(partition, 1) == "dev-g"
        and job_form.stepped(partition, -1) == "standard-g"
    )
    nodes = field(checked, "nodes")
    faster = job_form.now(nodes, JOB.replace("nodes: 2", "nodes: 5"))
    assert job_form.stepped(faster, 1) == "6", "a key that is faster than the check"
    assert job_form.now(nodes, "nodes: [") == nodes
    assert (
        job_form.stepped(nodes, 1) == "3"
        and job_form.stepped(replace(nodes, value="1"), -1) is None
    )
    assert job_form.stepped(field(checked, "launcher"), 1) not in ("srun", None)


def test_values_are_read_as_they_are_shown(runs: Runs, folder: Path) -> None:
    checked = check(runs, folder, JOB + "env: {A: b c, D: '1'}\ngrid: {lr: ['1', '2']}\n"
                    "metrics: {loss: 'loss=([0-9.]+), '}\n")  # fmt: skip
    for key in ("args", "env", "grid", "metrics", "name", "nodes"):
        shown = field(checked, key)
        assert job_form.written({key: job_form.read(shown, shown.value)}, key) == shown.value
    assert job_form.read(field(checked, "env"), "'A=b c' D=1") == {"A": "b c", "D": "1"}
    with pytest.raises(InputError, match="not closed"):
        job_form.read(field(checked, "args"), "'a")
    with pytest.raises(InputError, match="no value"):
        job_form.read(field(checked, "env"), "A")


@pytest.mark.parametrize(
    ("program", "line", "found"),
    [
        ('print(f"epoch {e} loss {x:.4f} {s:.0f} samples/s")', "epoch 3 loss 1.1276 343 samples/s",
         {"loss": [1.1276], "samples_per_s": [343]}),
        ('print("val/loss:", loss.item())', "val/loss: 0.5", {"val_loss": [0.5]}),
        ('log.info("Loss=%.3f train_acc %d%%", x, y)', "Loss=2.000 train_acc 7%",
         {"loss": [2.0], "train_acc": [7.0]}),
        ('open("metrics.jsonl"); print(f"loss {x}")', "loss 1", {}),
        ('writer.add_scalar("loss", x)', "loss 1", {}),
    ],
)  # fmt: skip
def test_the_form_offers_to_draw_what_the_script_prints(
    runs: Runs, folder: Path, program: str, line: str, found: dict[str, list[float]]
) -> None:
    (folder / "train.py").write_text(program)
    text = JOB
    while notes := field(check(runs, folder, text), "metrics").problems:
        assert notes[0].severity == "note" and notes[0].fix, "one after the other"
        text = apply_fix(text, notes[0].fix)
    assert series_of(line, parse_job(text, "t").metrics) == found


def test_a_grid_is_priced_whole_and_looked_at_once(runs: Runs, folder: Path) -> None:
    checked = check(runs, folder, JOB + "grid: {lr: [1e-3, 3e-4], nodes: [1, 2, 9]}\n")
    assert len(checked.previews) == 6
    assert len({id(item.files) for item in checked.previews}) == 1
    (price,) = total_price(checked.previews)
    assert price.amount == sum(item.launch.price.amount for item in checked.previews) > 0
    assert [item.words for item in checked.errors] != [], "one of the runs is too large"
    (error,) = checked.errors
    assert error.at.field == "grid" and error.at.line == 10, "it is named once, where it is set"
    assert error.fix and error.fix.at.field == "partition", "nodes: alone would change nothing"


def test_a_key_does_not_look_at_all_files_again(
    runs: Runs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = check(runs, folder, JOB).previews[0]
    again = check(runs, folder, JOB.replace("nodes: 2", "nodes: 3")).previews[0]
    assert again.files is first.files and again.launch.spec.nodes == 3
    (folder / "other.py").write_text("print(2)\n")
    other = check(runs, folder, JOB.replace("train.py", "other.py"))
    assert not other.errors and other.previews[0].files is not first.files
    monkeypatch.setattr("lumitui.app.launch.send.drafts.LOOK_SECONDS", -1.0)
    (folder / "train.py").unlink()
    assert "lacks the script train.py" in check(runs, folder, JOB).errors[0].words
    wrong = check(runs, folder, JOB.replace("train.py", "othr.py")).errors[0]
    assert wrong.fix and wrong.fix.value == "other.py" and "Did you mean other.py?" in wrong.do


# -- files


def test_a_draft_is_saved_whole_and_never_over_what_others_wrote(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text(JOB)
    path.chmod(0o640)
    draft = drafts.open_draft(path)
    assert not draft.unsaved
    edited = draft.edited(JOB.replace("nodes: 2", "nodes: 3"))
    assert edited.unsaved
    saved = drafts.save_draft(edited)
    assert path.read_text() == edited.text and not saved.unsaved
    assert path.stat().st_mode & 0o777 == 0o640
    assert [item.name for item in folder.iterdir() if item.name.startswith(".")] == []
    path.write_text("name: other\n")
    with pytest.raises(InputError, match="Another program changed"):
        drafts.save_draft(saved.edited(JOB))
    with pytest.raises(InputError, match="already exists"):
        drafts.save_draft(replace(saved, path=None), path)
    with pytest.raises(InputError, match="no name yet"):
        drafts.save_draft(Draft(JOB, folder, "an example"))
    new = drafts.save_draft(Draft(JOB, folder, "an example"), folder / "new.yaml")
    assert new.path and new.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="no folder"):
        drafts.save_draft(Draft(JOB, folder, "an example"), folder / "nowhere" / "new.yaml")


def test_a_run_is_opened_with_its_comments_while_its_file_is_the_same(
    runs: Runs, folder: Path
) -> None:
    path = folder / "job.yaml"
    path.write_text(JOB)
    preview = check(runs, folder, JOB).previews[0]
    run = a_run("vit-1", spec=preview.launch.spec, script="#!/bin/bash\n", job_file=os.fspath(path))
    opened = drafts.from_run(run)
    assert "# found by hand" in opened.text and opened.base == "#!/bin/bash\n"
    assert opened.path is None and opened.folder == folder
    runs.history.begin(run)
    assert runs.drafts.open(path).base == run.script, "what was sent last is compared with"
    path.write_text(JOB.replace("nodes: 2", "nodes: 1"))
    again = drafts.from_run(run)
    assert "#" not in again.text
    assert check(runs, folder, again.text).previews[0].launch == preview.launch


def test_every_example_begins_without_a_mistake_but_its_script(runs: Runs, folder: Path) -> None:
    for name in ("ddp", "deepspeed_zero", "resnet50-deepspeed", "script"):
        found = runs.drafts.check(runs.drafts.example(name, folder))
        assert found.previews and not found.errors, found.errors


def test_an_example_is_saved_with_its_files_and_says_so(runs: Runs, folder: Path) -> None:
    draft = runs.drafts.example("simple-ddp", folder)
    (problem,) = runs.drafts.check(draft).errors
    assert "lacks the script simple_ddp.py" in problem.message
    assert "Save the job file" in problem.do
    saved = drafts.save_draft(draft, folder / "simple.yaml")
    assert (folder / "simple_ddp.py").exists() and not saved.files
    assert not runs.drafts.check(saved).errors
    with pytest.raises(InputError, match=r"simple_ddp\.py already exists"):
        drafts.save_draft(draft, folder / "other.yaml")
    assert not (folder / "other.yaml").exists()


def test_a_program_of_the_users_own_is_a_beginning_with_the_arguments_it_demands(
    runs: Runs, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)\n"
        "p.add_argument('--data', required=True)\np.add_argument('out')\np.parse_args()\n"
        "print(f'loss {loss:.3f} samples/s {speed:.0f}')\n"
    )
    (tmp_path / "notes.py").write_text("x = 1\n")
    draft = runs.drafts.script(program)
    assert "script: train.py" in draft.text and "args: [--data, DATA, OUT]" in draft.text
    assert re.search(r"metrics:\n? *{?loss: .*\n? *samples_per_s: ", draft.text), "what it prints"
    assert "# train.py also reads: --lr 0.1\nargs:" in draft.text
    assert not runs.drafts.check(draft).errors and draft.folder == tmp_path
    (tmp_path / "data.py").write_text("import torch\n\n\ndef load():\n    return torch.zeros(3)\n")
    assert files_here(tmp_path) == ([], [program]), "a module is not offered"


def test_a_batch_script_is_a_beginning_that_says_what_became_of_it(
    runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --partition=standard-g --account=project_462000001\n"
        "#SBATCH --nodes=2 --gpus-per-node=8 --time=02:00:00\n"
        "module load LUMI\nmodule swap a b\nsrun python train.py\n"
    )
    draft = runs.drafts.script(script)
    assert "site: lumi" in draft.text and "nodes: 2" in draft.text
    said = [f"{fate}: {text}" for fate, text in draft.imported]
    assert said[0].startswith("lost: module swap a b")
    assert any(line.startswith("kept: partition") for line in said)
    assert any(
        line.startswith("site: lumi, guessed from the partition standard-g") for line in said
    )
    assert "modules: [LUMI, b]" in draft.text
    assert files_here(tmp_path) == ([], [script])


def test_a_job_file_on_one_line_is_offered_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("{name: ddp, site: lumi, script: train.py}\n")
    (tmp_path / "other.yaml").write_text("{website: x}\nurls: [http://site: 80]\n")
    assert files_here(tmp_path) == ([tmp_path / "flow.yaml"], [])


def test_another_site_brings_its_partition_and_account(home: Home, folder: Path) -> None:
    own = home.settings.profiles[0]
    (own / "mine.yaml").write_text("extends: lumi\naccount: {default: project_462000009}\n")
    with closing(Runs(home.settings)) as runs:
        # Without a run on a cluster, the one profile that the user wrote is where a job begins.
        spec = parse_job(runs.drafts.example("ddp", folder).text, "job")
        assert (spec.site, spec.account) == ("mine", "project_462000009")
        here = set_key(JOB, ("account",), "none")
        spec = parse_job(runs.drafts.at_site(set_key(here, ("partition",), "local"), "mine"), "job")
        assert (spec.site, spec.partition) == ("mine", "standard-g")
        assert spec.account == "project_462000009"
        # What the site takes stays, and a text that is not a job file is only given the site.
        assert runs.drafts.at_site(JOB, "mine") == JOB.replace("lumi", "mine")
        assert runs.drafts.at_site("nodes: x\n", "mine") == "nodes: x\nsite: mine\n"


def test_a_job_file_without_an_account_is_billed_to_the_profiles_default(
    home: Home, folder: Path
) -> None:
    own = home.settings.profiles[0]
    (own / "mine.yaml").write_text("extends: lumi\naccount: {default: project_462000009}\n")
    (own / "here.yaml").write_text("extends: laptop\naccount: {required: true, default: proj}\n")
    text = JOB.replace("account: project_462000001\n", "").replace("lumi", "mine")
    with closing(Runs(home.settings)) as runs:
        (preview,) = check(runs, folder, text).previews
        assert preview.launch.spec.account == "project_462000009"
        assert "#SBATCH --account=project_462000009" in preview.launch.script
        # Comparing starts there needs neither `account:` nor an earlier run.
        job = parse_job(JOB.replace("nodes: 2", "nodes: 1"), "job")
        places = runs.start_places(job, folder, sites={"here": ""})
        assert {place.changes["account"] for place in places} == {"proj"}
        assert not any("needs an account" in place.refusal for place in places)


def test_a_run_of_an_unsaved_draft_notes_that_its_file_was_edited(runs: Runs, folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB)
    draft = runs.drafts.open(folder / "job.yaml")
    (saved,) = runs.drafts.check(draft).previews
    (edited,) = runs.drafts.check(draft.edited(JOB.replace("nodes: 2", "nodes: 1"))).previews
    assert (saved.note, edited.note) == ("", "differs from job.yaml")


def test_a_site_with_accounts_refuses_a_job_without_one(runs: Runs, folder: Path) -> None:
    checked = check(runs, folder, JOB.replace("account: project_462000001\n", ""))
    assert "account" in {error.rule for error in checked.errors}
