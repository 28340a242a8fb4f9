"""Which files go with a job that runs a bundled trainer."""

import shutil
from pathlib import Path

import pytest

from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.send.code.project_files import collect
from tests.support.jobs.small_jobs import hello_job


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
