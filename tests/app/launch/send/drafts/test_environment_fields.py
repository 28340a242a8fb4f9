"""The form offers what a site has: its images, and packages that are installed once."""

from pathlib import Path

import pytest

from lumitui.app.job.edit import place_of_key, set_key
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.send.draft import Draft
from lumitui.app.runs import Runs
from lumitui.app.survey.environments.known_images import KnownImages, SiteImages
from lumitui.remote.transfer.environments.image_listing import Image, ImageContents
from tests.support.program.home import Home

JOB = """name: vit
site: lumi
account: project_462000001
partition: standard-g
time: "01:00:00"
script: train.py
"""


def fields(runs: Runs, folder: Path, text: str) -> dict[str, job_form.Field]:
    (folder / "train.py").write_text("print(1)\n")
    return {item.key: item for item in runs.drafts.check(Draft(text, folder, "a test")).fields}


def test_packages_are_typed_as_words(runs: Runs, tmp_path: Path) -> None:
    row = fields(runs, tmp_path, JOB)["venv"]
    assert (row.value, row.shown) == ("", "none")
    text = set_key(JOB, place_of_key("venv"), job_form.read(row, "einops==0.8 'x[y]>1'"))
    row = fields(runs, tmp_path, text)["venv"]
    assert row.value == "einops==0.8 'x[y]>1'"
    assert not row.problems
    # One word that is a file is the requirements file, which is not there.
    text = set_key(JOB, place_of_key("venv"), job_form.read(row, "requirements.txt"))
    (problem,) = fields(runs, tmp_path, text)["venv"].problems
    assert "Cannot read" in problem.words
    # Its other keys are edited in the text.
    assert "venv" not in fields(runs, tmp_path, f"{JOB}venv: {{packages: [a], wheels: /w}}\n")


@pytest.mark.parametrize("known", [False, True])
def test_the_images_of_the_site_are_offered(
    runs: Runs, home: Home, tmp_path: Path, known: bool
) -> None:
    if known:
        said = ImageContents("3.12.1", {"torch": "2.11.0"}, "7.2")
        image = Image("laif", "/appl/new.sif", "/appl/new.sif", 1, 2, {}, said)
        KnownImages(home.data / "images").put("lumi", SiteImages(1.0, (image,)))
    row = fields(runs, tmp_path, JOB)["container.image"]
    offered = {item.value: item.words for item in row.choices}
    own = runs.sites.load("lumi").containers["laif"].image
    assert offered[""] == "the site's own" and offered[own] == "laif"
    assert offered.get("/appl/new.sif") == (
        "torch 2.11.0, ROCm 7.2, Python 3.12.1" if known else None
    )
    # Any other may be typed.
    assert row.kind == "text"
    assert job_form.stepped(row, 1) in offered
