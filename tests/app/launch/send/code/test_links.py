"""A link below the code is refused before the send where the code has something in its place."""

from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.launch.send.code.project_files import collect, look
from lumitui.remote.site.errors import InputError

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
