"""What a job file stages: shown before, sent once, there in the job, shared by a resubmission."""

import os
import stat
from pathlib import Path

import pytest

from lumitui.app.cli.views.tables import removed_text, stock_text
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.send.code.project_files import collect
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.states import State
from tests.support.program.command_line import Here
from tests.support.program.home import Home

JOB = """\
name: staged
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
script: train.py
proof: "off"
args: [$STAGE_DATA/1, "a $STAGE_DATA b $LATER '"]
env: {MODEL: "x${STAGE_MODEL}"}
stage:
  DATA: {path: ../data, link: in/side/data}
  MODEL: ../model.bin
"""
SCRIPT = """\
import os, sys
stage = os.environ["STAGE_DATA"]
assert open(sys.argv[1]).read() == open("in/side/data/1").read() == "one"
assert sys.argv[2] == f"a {stage} b $LATER '", sys.argv
assert open(os.environ["MODEL"][1:]).read() == "weights"
assert os.environ["STAGE_MODEL"].endswith("/model.bin")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (tmp_path / "data").mkdir()
    root.mkdir()
    (tmp_path / "data" / "1").write_text("one")
    (tmp_path / "model.bin").write_text("weights")
    (root / "train.py").write_text(SCRIPT)
    return root


def job(text: str = JOB) -> JobSpec:
    return parse_job(text, "job.yaml")


def test_a_job_finds_what_was_staged_and_a_resubmission_shares_it(
    home: Home, runs: Runs, project: Path
) -> None:
    told: list[str] = []
    preview = runs.preview(job(), project)
    notes = [item.message for item in preview.findings if item.rule == "stage-size"]
    assert notes[0].startswith("DATA is staged: 1 file, 3 B, from ") and len(notes) == 2
    first = runs.send(preview, report=lambda step, words: told.append(words))
    assert "staged DATA: 1 file, 3 B" in told and "staged MODEL: 1 file, 7 B" in told
    again = runs.send(preview, report=lambda step, words: told.append(words))
    assert "staged DATA: 1 file, the site already had it" in told
    # The same code again needs nothing of the laptop.
    (project.parent / "data" / "1").write_text("changed")
    shared = runs.resubmit(runs.plan_resubmission(first.id, code="same"))
    for run in (first, again, shared):
        ended = runs.wait(run.id)
        assert ended.state is State.DONE, runs.read_log(run.id)[1].decode()
    (stock,) = runs.stocks.list("laptop")
    assert {(item.name, item.files, item.bytes, item.in_use) for item in stock.items} == {
        ("DATA", 1, 3, False),
        ("MODEL", 1, 7, False),
    }
    with pytest.raises(InputError, match="laptop has no staged data called OTHER"):
        runs.stocks.remove("laptop", ["OTHER"])
    assert runs.stocks.remove("laptop", ["DATA"], dry=True)[0].bytes == 3
    runs.stocks.remove("laptop", ["DATA"])
    (stock,) = runs.stocks.list("laptop")
    assert [item.name for item in stock.items] == ["MODEL"]
    assert len(os.listdir(f"{stock.folder}/blobs")) == 1, "a content stayed that nobody has"
    with pytest.raises(RefusedError, match="staged data DATA is no longer on the site"):
        runs.resubmit(runs.plan_resubmission(first.id, code="same"))
    assert runs.history.count() == 3, "a run that could not be sent is in the history"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path(stock.folder).rglob("*")}
    assert all(not mode & 0o077 for mode in modes)


def test_what_is_not_there_is_an_error_before_anything_is_sent(runs: Runs, project: Path) -> None:
    (project.parent / "model.bin").unlink()
    preview = runs.preview(job(), project)
    (error,) = preview.errors
    assert (error.rule, error.at.field) == (
        "stage",
        "stage.MODEL",
    ) and "does not exist" in error.message


IMAGE = JOB.replace("MODEL: ../model.bin", "MODEL: image.def").replace('"x$', '"x$')


def test_a_definition_of_an_image_is_refused_with_the_command_that_builds_it(
    runs: Runs, project: Path
) -> None:
    (project / "image.def").write_text("Bootstrap: docker\n")
    (error,) = runs.preview(job(IMAGE), project).errors
    assert (error.rule, error.at.field) == ("stage", "stage.MODEL")
    assert "apptainer build image.sif image.def" in error.do


def test_an_exported_job_says_what_to_copy(runs: Runs, project: Path, tmp_path: Path) -> None:
    text = JOB.replace("site: laptop\npartition: local", "site: lumi\npartition: small-g")
    spec = job(text + "account: project_462000001\n")
    done = runs.export(runs.preview(spec, project), tmp_path / "exported")
    script, readme = ((done.path / name).read_text() for name in ("job.sh", "README.md"))
    assert ': "${STAGE_DATA:?export its path before sbatch}"' in script
    assert 'train.py "$STAGE_DATA"/1 \'a \'"$STAGE_DATA"\' b $LATER' in script
    assert '-B "$STAGE_DATA" -B "$STAGE_MODEL"' in script
    assert "- ../data of the laptop: copy it, and `export STAGE_DATA=…` with its path" in readme
    assert '`ln -s "$STAGE_DATA" code/in/side/data`' in readme


def test_what_a_run_of_another_laptop_needs_stays(
    home: Home, runs: Runs, project: Path, tmp_path: Path
) -> None:
    (project / "train.py").write_text("import time; time.sleep(600)\n")
    run = runs.send(runs.preview(job(), project))
    elsewhere = Home(home.config, tmp_path / "another laptop")
    elsewhere.data.mkdir(mode=0o700)
    other = Runs(elsewhere.settings)
    try:
        (stock,) = other.stocks.list("laptop")
        assert [item.used_by for item in stock.items] == [(run.id,)] * 2
        shown = stock_text([stock], 80).splitlines()
        assert [line.split()[-1] for line in shown[2:]] == ["use"] * 2
        assert max(map(len, shown[1:])) <= 80
        (left,) = other.stocks.remove("laptop", None)
        assert not left.ids and {item.name for item in left.kept} == {"DATA", "MODEL"}
        assert f"still needed by {run.id}" in removed_text([left], dry=False)
        with pytest.raises(InputError, match=f"An unfinished run needs .*: {run.id}"):
            other.stocks.remove("laptop", ["DATA"])
        runs.cancel(run.id)
        runs.wait(run.id)
        (gone,) = other.stocks.remove("laptop", None)
        assert {item.name for item in gone.items} == {"DATA", "MODEL"} and not gone.kept
    finally:
        if not runs.history.get(run.id).state.is_final:
            runs.cancel(run.id)
        other.close()


INSIDE = JOB.replace("../data, link: in/side/data", "data/set, link: data/set")


def test_what_is_staged_inside_the_project_is_no_part_of_the_code(
    home: Home, runs: Runs, project: Path
) -> None:
    (project / "data").mkdir()
    (project.parent / "data").rename(project / "data" / "set")
    (project / "data" / "list.txt").write_text("code")
    spec = job(INSIDE)
    code = collect(spec, project)
    assert [entry.path for entry in code.manifest.entries] == ["data/list.txt", "train.py"]
    with (project / "data" / "set" / "2").open("wb") as large:
        large.truncate(300_000_000)
    assert collect(spec, project).manifest.size < 1000
    os.truncate(project / "data" / "set" / "2", 2)
    (project / "train.py").write_text(SCRIPT.replace("in/side/data", "data/set"))
    preview = runs.preview(spec, project)
    hints = [item.do for item in preview.findings if item.rule == "stage-size"]
    assert "the code is sent without it" in hints[0] and "the code" not in hints[1]
    run = runs.send(preview)
    assert runs.wait(run.id).state is State.DONE, runs.read_log(run.id)[1].decode()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ('""', "is the whole project"),
        ("/", "which contains all files of this machine"),
        ("/dev/zero", "which is not a file or folder"),
        ("../data", "'.env' looks like"),
        ("../gone", "'link' is a link to 'nowhere', which is not a file"),
        ("../empty", "contains no files"),
    ],
)
def test_a_preview_says_what_the_send_refuses(
    path: str, words: str, runs: Runs, project: Path
) -> None:
    (project.parent / "data" / ".env").write_text("KEY=1")
    for name in ("gone", "empty"):
        (project.parent / name).mkdir()
    (project.parent / "gone" / "link").symlink_to("nowhere")
    (error,) = runs.preview(job(JOB.replace("../data", path)), project).errors
    assert (error.at.field, words in error.message) == ("stage.DATA", True), error.message


def test_a_removal_is_asked_about_and_counts_what_sends_left(
    home: Home, runs: Runs, here: Here, project: Path
) -> None:
    run = runs.send(runs.preview(job(), project))
    runs.wait(run.id)
    (stock,) = runs.stocks.list("laptop")
    asked = here("site", "data", "laptop", "--prune")
    assert asked.returncode == 2 and "Remove this data?" in asked.stderr
    assert "would remove DATA" in asked.stderr and runs.stocks.list("laptop") == (stock,)
    assert "removed DATA" in here("site", "data", "laptop", "--prune", "--yes").stdout
    left = Path(stock.folder, ".left-1", "new")
    left.mkdir(parents=True)
    (left / "x").write_bytes(b"x" * 2048)
    (stock,) = runs.stocks.list("laptop")
    assert stock_text([stock], 80).splitlines()[1:] == ["unfinished uploads: 1 file, 2.0 kB"]
    said = f"{stock.folder}: 1 file of unfinished uploads, "
    would = runs.stocks.remove("laptop", None, dry=True)
    assert removed_text(would, dry=True) == f"{said}would free 2.0 kB"
    assert removed_text(runs.stocks.remove("laptop", None), dry=False) == f"{said}freed 2.0 kB"
    assert removed_text(runs.stocks.remove("laptop", None), dry=False).endswith(
        "0 items, freed 0 B"
    )
