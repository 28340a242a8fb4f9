"""Files that look like secrets: named in the preview, and at no site unless a job says so."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.send.code.project_files import collect
from lumitui.app.launch.send.preview import Preview
from lumitui.app.launch.send.shipment import Shipment
from lumitui.app.runs import Runs
from lumitui.app.tui.widgets.launch_text import findings_text
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.files.project_files import write as write_files
from tests.support.files.secrets import KEYS, SECRET_NAMES
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.command_line import LAPTOP, Here, envelope, write

KEY = next(one.text for one in KEYS if one.text.startswith("ghp_"))
PEM = KEYS[0].text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a secret of every kind, by its name and by its contents."""
    root = hello_project(tmp_path / "project")
    write_files(root, *SECRET_NAMES)
    for number, key in enumerate(KEYS):
        (root / f"notes-{number}.txt").write_text(f"first line\n{key.text}\n")
    (root / "windows.txt").write_text(f"key: {KEY}\n", encoding="utf-16")
    return root


def laptop_job(**changes: object) -> JobSpec:
    return hello_job(**LAPTOP | {"account": "none"} | changes)


def said(preview: Preview) -> str:
    return "\n".join(f"{item.message} {item.do}" for item in preview.findings)


def at_the_site(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of all files there, those in archives too."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        yield path.relative_to(folder).as_posix(), path.read_bytes()
        if path.suffix == ".gz":
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and (file := archive.extractfile(member)):
                        yield member.name, file.read()


def test_no_secret_reaches_the_site_and_all_are_named(runs: Runs, project: Path) -> None:
    preview = runs.preview(laptop_job(), project)
    assert not preview.errors
    words = said(preview)
    for name in SECRET_NAMES:
        assert name in words
    for number in range(len(KEYS)):
        assert f"notes-{number}.txt" in words
    run = finish(runs, runs.send(preview))
    assert run.state is State.DONE
    there = dict(at_the_site(Path(run.root)))
    assert any(path.endswith("hello.py") for path in there)
    for path, content in there.items():
        assert not any(path.endswith(f"/{name}") or path == name for name in SECRET_NAMES), path
        assert "notes-" not in path and "windows.txt" not in path
        assert KEY.encode() not in content.replace(b"\0", b"") and PEM.encode() not in content, path


def test_what_the_job_file_names_is_sent_and_said(runs: Runs, project: Path) -> None:
    names = [".env", "notes-8.txt", ".aws/"]
    preview = runs.preview(laptop_job(ship_secrets=names), project)
    note = next(item for item in preview.findings if item.rule == "secret-shipped")
    run = finish(runs, runs.send(preview))
    for name in (".env", "notes-8.txt", ".aws/credentials", ".aws/config"):
        assert (Path(run.folder) / "code" / name).is_file() and name in note.message
    assert not (Path(run.folder) / "code" / "id_rsa").exists()


def test_the_command_line_names_them(here: Here, tmp_path: Path) -> None:
    job = write(tmp_path / "work" / "job.yaml", LAPTOP)
    write_files(job.parent, ".env", "conf/site.txt")
    (job.parent / "conf" / "site.txt").write_text(f"one\n\n{KEY}\n")
    done = here("preview", str(job))
    assert done.returncode == 0
    assert "warning: lumitui does not send" in done.stderr and ".env" in done.stderr
    assert "lumitui does not send conf/site.txt: line 3 looks like a GitHub token" in done.stderr
    assert "ship_secrets: [conf/site.txt]" in done.stderr and KEY not in done.stderr
    data = envelope(here("preview", str(job), "--json"))["data"]
    kept = {item["path"]: item["line"] for item in data["kept_back"]}
    assert kept == {".env": None, "conf/site.txt": 3} and data["shipped_secrets"] == []


def test_the_screens_name_them(runs: Runs, project: Path) -> None:
    shown = "\n".join(text.plain for text in findings_text(runs.preview(laptop_job(), project)))
    assert ".env" in shown and "id_rsa" in shown and "notes-0.txt" in shown


# -- files that the job needs


@pytest.mark.parametrize(
    ("changes", "guilty", "why"),
    [
        ({}, "hello.py", "it is the script"),
        ({"args": ["--config", "conf/run.txt"]}, "conf/run.txt", "`args:` contains it"),
        ({"args": ["--config=run.txt"], "workdir": "conf"}, "conf/run.txt", "`args:` contains it"),
        ({}, "lib/net.py", "hello.py imports it"),
        ({}, "lib/__init__.py", "hello.py imports it"),
        ({"args": ["deploy.key"]}, "deploy.key", "`args:` contains it"),
    ],
)  # fmt: skip
def test_a_file_that_the_job_needs_is_an_error_before_anything_is_sent(
    changes: dict[str, object], guilty: str, why: str, runs: Runs, tmp_path: Path
) -> None:
    root = hello_project(tmp_path / "project")
    write_files(root, "conf/run.txt", "conf/other", "lib/net.py", "lib/__init__.py", "deploy.key")
    (root / "hello.py").write_text("import os\nfrom lib.net import Net\n")
    (root / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
    (root / guilty).write_text(f'{{"comment": "{KEY}", "train_micro_batch_size_per_gpu": 1}}')
    spec = laptop_job(**changes)
    preview = runs.preview(spec, root)
    (error,) = [item for item in preview.errors if item.rule == "secret-needed"]
    assert guilty in error.message and why in error.message
    assert f"ship_secrets: [{guilty}]" in error.do
    with pytest.raises(InputError, match=guilty):
        collect(spec, root)
    named = laptop_job(**changes, ship_secrets=[guilty])
    assert not [item for item in runs.preview(named, root).errors if "secret" in item.rule]
    collect(named, root)


DEEPSPEED = {"deepspeed": {"config": "conf/ds.json"}, "launcher": "srun", "strategy": "zero1"}
VENV: dict[str, object] = {"venv": {"requirements": "conf/packages.txt"}}


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize(
    ("changes", "name", "text", "use"),
    [
        (DEEPSPEED, "conf/ds.json", f'{{"a": "{KEY}", "train_micro_batch_size_per_gpu": 1}}',
         "it is DeepSpeed's configuration"),
        (VENV, "conf/packages.txt", f"# {KEY}\ntqdm\n", "`venv:` names it"),
    ],
)  # fmt: skip
def test_a_file_whose_text_is_sent_is_searched_even_if_the_code_excludes_it(
    changes: dict[str, object], name: str, text: str, use: str, ignored: bool, runs: Runs,
    tmp_path: Path,
) -> None:  # fmt: skip
    root = hello_project(tmp_path / "project")
    (root / "conf").mkdir()
    (root / name).write_text(text)
    if ignored:
        (root / ".lumituiignore").write_text("conf\n")
    with pytest.raises(InputError, match=re.escape(f"{name} is not sent, but {use}")) as refused:
        runs.preview(laptop_job(**changes), root)
    assert KEY not in str(refused.value) and f"ship_secrets: [{name}]" in refused.value.hint
    sent = runs.preview(laptop_job(**changes, ship_secrets=[name]), root)
    assert not [item for item in sent.errors if "secret" in item.rule]
    (root / name).write_text(text.replace(KEY, "no key"))
    assert not [item for item in runs.preview(laptop_job(**changes), root).errors
                if "secret" in item.rule]  # fmt: skip


def test_a_configuration_of_deepspeed_behind_a_link_out_of_the_project_is_refused(
    runs: Runs, tmp_path: Path
) -> None:
    root, outside = hello_project(tmp_path / "project"), tmp_path / "outside"
    outside.mkdir()
    (outside / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
    (root / "conf").symlink_to(outside)
    (root / ".lumituiignore").write_text("conf\n")
    with pytest.raises(InputError, match=r"conf/ds\.json is outside the project"):
        runs.preview(laptop_job(**DEEPSPEED), root)
    (root / ".lumituiignore").unlink()
    followed = laptop_job(**DEEPSPEED, follow_links=["conf"])
    assert "ds_config.json" in runs.preview(followed, root).launch.texts
    (outside / "ds.json").write_text(f'{{"a": "{KEY}", "train_micro_batch_size_per_gpu": 1}}')
    with pytest.raises(InputError, match="is not sent"):
        runs.preview(followed, root)


def test_a_module_that_nobody_imports_is_a_warning(runs: Runs, tmp_path: Path) -> None:
    root = hello_project(tmp_path / "project")
    write_files(root, "tests/test_keys.py")
    (root / "tests" / "test_keys.py").write_text(f"KEY = '{KEY}'\n")
    preview = runs.preview(laptop_job(), root)
    assert not preview.errors and "tests/test_keys.py" in said(preview)


def test_a_secret_that_came_after_the_preview_is_not_dropped_in_silence(
    runs: Runs, tmp_path: Path
) -> None:
    root = hello_project(tmp_path / "project")
    preview = runs.preview(laptop_job(), root)
    write_files(root, "notes.txt", ".env")
    with pytest.raises(
        InputError, match=r"\.env has changed since the preview. lumitui does not send it"
    ):
        runs.send(preview)
    assert runs.history.page() == []
    assert runs.send(runs.preview(laptop_job(), root)).job_id


def test_many_of_them_are_still_one_page(runs: Runs, tmp_path: Path) -> None:
    root = hello_project(tmp_path / "project")
    write_files(root, *(f"conf/{number}.key" for number in range(300)))
    for number in range(300):
        (root / f"text-{number}.txt").write_text(KEY)
    preview = runs.preview(laptop_job(), root)
    assert len(preview.findings) < 40
    assert len(preview.files.kept_back) == 600
    assert "and 100 more" in said(preview)


def test_a_pattern_that_names_nothing_is_said(runs: Runs, tmp_path: Path) -> None:
    root = hello_project(tmp_path / "project")
    preview = runs.preview(laptop_job(ship_secrets=["conf/.enw"]), root)
    assert "conf/.enw" in said(preview)


def test_what_a_send_carries_shows_no_value_of_a_secret(runs: Runs, tmp_path: Path) -> None:
    """A traceback or a crash report may print it."""
    spec = hello_job(**LAPTOP | {"account": "none", "secrets": ["MY_TOKEN"]})
    launch = runs.preview(spec, hello_project(tmp_path / "project")).launch
    shown = repr(Shipment(a_run(), launch, "", {"MY_TOKEN": "planted-value"}))
    assert "MY_TOKEN" in shown and "planted-value" not in shown
