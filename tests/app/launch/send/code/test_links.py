"""Which files go with a job: its trainer, its configuration, and no link in the place of a file."""

import shutil
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.send.code.project_files import collect, look
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.program.command_line import LAPTOP

JOB = """\
name: t
site: laptop
partition: local
time: "00:05:00"
script: train.py
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("train.py", "sub/a.py"):
        (tmp_path / name).write_text("pass\n")
    return tmp_path


@pytest.mark.parametrize("link", ["train.py", "train.py/x", "sub", "sub/", "sub/a.py/deep/x"])
def test_a_link_onto_the_code_is_an_error_of_the_preview(link: str, project: Path) -> None:
    spec = parse_job(f"{JOB}stage: {{D: {{path: /data, link: {link}}}}}", "job.yaml")
    (error,) = look(spec, project, None).findings
    assert (error.rule, error.severity, error.at.field) == ("link-taken", "error", "stage.D")
    assert f"`link: {link}`" in error.message and error.final
    with pytest.raises(InputError, match="link"):
        collect(spec, project)


@pytest.mark.parametrize("link", ["data", "sub/data", "train", "sub2"])
def test_a_link_beside_the_code_is_free(link: str, project: Path) -> None:
    spec = parse_job(f"{JOB}stage: {{D: {{path: /data, link: {link}}}}}", "job.yaml")
    assert not look(spec, project, None).findings


def test_two_links_do_not_share_a_place(project: Path) -> None:
    text = f"{JOB}links: {{d: /x}}\nstage: {{D: {{path: /data, link: d/e}}}}"
    (error,) = look(parse_job(text, "job.yaml"), project, None).findings
    assert error.at.field == "stage.D" and "links: d uses the same path" in error.message


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


def test_a_file_beside_the_project_is_found_before_the_queue_and_sent_with_its_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").touch()
    (tmp_path / "own" / "helper.py").write_text("PATH = '../data/x.txt'\n")
    (tmp_path / "own" / "unused.py").write_text("PATH = '../data'\n")
    (tmp_path / "own" / "train.py").write_text("import helper\nopen('../gone.txt')\n")
    job = {"name": "x", "site": "lumi", "partition": "small-g", "time": "1:00:00"}
    spec = JobSpec.model_validate(job | {"script": "train.py"})
    (finding,) = look(spec, tmp_path / "own", None).findings
    assert "helper.py uses ../data/x.txt, which lumitui does not send" in finding.message
    assert "`project: ..`, `workdir: own` and `script: own/train.py`" in finding.do
    wider = JobSpec.model_validate(
        job | {"project": "..", "workdir": "own", "script": "own/train.py"}
    )
    assert not look(wider, tmp_path, None).findings


def test_what_tools_leave_in_a_checkout_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, project = tmp_path / "trainers", tmp_path / "project"
    project.mkdir()
    caches = (".mypy_cache/3.11/cache.db", "models/__pycache__/a.pyc", "data/.DS_Store")
    shutil.copytree(
        TRAINER_FOLDER, folder, ignore=lambda at, names: [n for n in names if "cache" in n]
    )
    others = {
        "deepspeed_zero.py",
        "fsdp.py",
        "lightning_trainer.py",
        "preflight/preflight.py",
        "preflight/preflight_verdict.py",
    }
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in caches:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    monkeypatch.setattr("lumitui.app.launch.send.code.project_files.TRAINER_FOLDER", folder)
    spec = hello_job().model_copy(update={"script": None, "trainer": "ddp"})
    sent = {entry.path for entry in collect(spec, project).manifest.entries}
    assert sent == {f".lumitui/trainers/{name}" for name in files - others}
    assert len(sent) > 10


def test_a_deepspeed_configuration_in_args_is_checked_as_in_any_script_and_pointed_to_its_key(
    runs: Runs, tmp_path: Path
) -> None:
    root = hello_project(tmp_path / "project")
    (root / "ds.json").write_text('{"train_batch_size": 9, "zero_optimization": {"stage": 1}}')
    spec = hello_job(site="lumi", args=["--deepspeed", "--deepspeed_config", "ds.json"])
    found = {one.rule: one for one in runs.preview(spec, root).findings}
    assert "deepspeed: {config: ds.json}" in found["deepspeed-args"].do
    assert "which is not a multiple of 2 ranks" in found["deepspeed-batch"].message
