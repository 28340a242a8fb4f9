"""What a job file stages by mistake: files with keys, and files that were to stay here."""

import os
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.site.finding import Finding

JOB = """\
name: staged
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
script: train.py
ship_secrets: [{ship}]
stage: {{DATA: {path}}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("print(1)\n")
    return root


def said(runs: Runs, project: Path, path: Path | str, ship: str = "") -> dict[str, Finding]:
    """Return what a preview says of the staged things and of `ship_secrets`, by its ids."""
    spec = parse_job(JOB.format(path=path, ship=ship), "job.yaml")
    wanted = ("stage", "stage-private", "ship-secrets-unused")
    return {one.rule: one for one in runs.preview(spec, project).findings if one.rule in wanted}


NAMES = [
    (".netrc", ".netrc", "logins and passwords"),
    ("etc/shadow", "etc/shadow", "passwords of a machine's users"),
    ("id_ed25519", "id_ed25519", "a private SSH key"),
    (".ssh/config", ".ssh", "a private SSH key"),
    (".aws/config", ".aws", "cloud credentials"),
    (".config/gcloud/config", ".config/gcloud", "cloud credentials"),
    ("data/key.pem", "data/key.pem", "more than public certificates"),
]


@pytest.mark.parametrize(("name", "staged", "words"), NAMES)
def test_what_looks_like_a_secret_is_staged_only_when_the_job_file_names_it(
    name: str, staged: str, words: str, runs: Runs, project: Path, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("-----BEGIN PRIVATE KEY-----\n")
    error = said(runs, project, tmp_path / staged)["stage"]
    assert words in error.message and error.final and "`ship_secrets:" in error.do
    assert not said(runs, project, tmp_path / staged, Path(staged).name)


def test_a_link_to_a_secret_is_one_and_data_beside_it_is_not(
    runs: Runs, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "public.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "labels.json").write_text("{}")
    (tmp_path / "id_rsa").symlink_to("labels.json")
    (tmp_path / "data").symlink_to("id_rsa")
    for name, found in (("public.pem", False), ("labels.json", False), ("id_rsa", True)):
        assert ("stage" in said(runs, project, tmp_path / name)) is found, name


def test_what_other_people_may_not_read_is_a_warning_outside_of_home_and_project(
    runs: Runs, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for top in (tmp_path / "home", tmp_path / "shared", project):
        (top / "set").mkdir(parents=True)
        for name in ("1", "2", "3"):
            (top / "set" / name).write_text(name)
            (top / "set" / name).chmod(0o600 if name != "1" else 0o644)
    warning = said(runs, project, tmp_path / "shared" / "set")["stage-private"]
    assert f"only you can read {tmp_path}/shared/set/2 and 1 more file." in warning.message
    assert warning.severity == "warning" and "`ship_secrets: [set]`" in warning.do
    assert not said(runs, project, tmp_path / "shared" / "set", "set")
    assert not said(runs, project, tmp_path / "shared" / "set" / "1")
    assert not said(runs, project, tmp_path / "home" / "set")
    assert not said(runs, project, project / "set")
    os.chmod(tmp_path / "shared" / "set", 0o700)
    warning = said(runs, project, tmp_path / "shared" / "set")["stage-private"]
    assert warning.message.endswith(f"only you can read {tmp_path}/shared/set.")


def test_a_pattern_for_nothing_is_named(runs: Runs, project: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("{}")
    assert set(said(runs, project, tmp_path / "labels.json", "'*.key'")) == {"ship-secrets-unused"}
