"""The requirements file and the wheels of a project, read when a launch is made ready."""

from pathlib import Path

import pytest

from lumitui.app.job.fields.venv_field import VenvChoice
from lumitui.app.job.spec import JobSpec, parse_job, read_job
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.app.launch.send.draft import from_run
from lumitui.remote.site.errors import InputError
from tests.support.files.wheels import make_wheel
from tests.support.jobs.made_runs import a_run

JOB = "name: a\nsite: laptop\npartition: local\ntime: '1:00:00'\nscript: a.py\n"


def job(venv: str) -> JobSpec:
    return parse_job(f"{JOB}venv: {venv}", "job")


def test_files_that_include_others_become_one_list(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "r.txt").write_text("einops==0.8 # of the model\n-r sub/more.txt\n")
    (tmp_path / "sub" / "more.txt").write_text("-r last.txt\ntqdm\n")
    (tmp_path / "sub" / "last.txt").write_text("rich\n")
    read = with_requirements(job("{requirements: r.txt, packages: [numpy]}"), tmp_path)
    assert read.venv
    assert read.venv.lines == ("einops==0.8", "rich", "tqdm", "numpy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-r r.txt\n", "includes itself"),
        ("-r ../../etc/passwd\n", "outside the project"),
        ("-e .\n", "is a path"),
        ("-r none.txt\n", "No such file"),
        ("\xff", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "r.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words) as refused:
        with_requirements(job("r.txt"), tmp_path)
    assert refused.value.field == "venv"


def test_wheels_count_by_their_contents(tmp_path: Path) -> None:
    spec = job("{packages: [tiny], wheels: wheels}")
    with pytest.raises(InputError, match="wheels contains no wheels"):
        with_requirements(spec, tmp_path)
    wheel = make_wheel(tmp_path / "wheels", "tiny", "1.0")
    first = with_requirements(spec, tmp_path)
    wheel.write_bytes(wheel.read_bytes() + b" ")
    second = with_requirements(spec, tmp_path)
    assert first.venv and first.venv.sent and second.venv and second.venv.sent
    assert list(first.venv.sent.wheels) == ["tiny-1.0-py3-none-any.whl"]
    assert first.venv.sent.wheels != second.venv.sent.wheels


@pytest.mark.parametrize("comments", [True, False])
def test_a_draft_from_a_run_has_what_the_person_wrote(tmp_path: Path, comments: bool) -> None:
    (tmp_path / "r.txt").write_text("einops\n")
    path = tmp_path / "job.yaml"
    path.write_text(f"# mine\n{JOB}venv: r.txt\n")
    spec = with_requirements(read_job(path), tmp_path)
    run = a_run(spec=spec, job_file=str(path) if comments else None, project=str(tmp_path))
    draft = from_run(run)
    assert draft.text.startswith("# mine") is comments
    again = parse_job(draft.text, "again")
    assert again.venv == VenvChoice(requirements="r.txt")
