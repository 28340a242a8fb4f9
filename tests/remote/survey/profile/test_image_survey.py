"""The survey's search for container images: what it lists, what it starts, and how they answer."""

import os
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.survey.profile.image_survey import SurveyedImages, images, images_sh
from tests.support.replies.surveyed import SURVEY, site_of, text_from, with_changes

SINGULARITY = """#!/bin/sh
# A stand-in: `run` has a Python everywhere, `exec` only in images whose names begin with exec.
echo "$1 ${2##*/}" >>"$CALLS"
case $1-${2##*/} in run-* | exec-exec*) PATH=$INSIDE ;; *) PATH=/nowhere ;; esac
export IMAGE=$2; shift 3; exec /bin/sh "$@"
"""
PYTHON = """#!/bin/sh
case $IMAGE in *none*) torch= ;; *) torch=2.7.0 ;; esac
echo "answer|$3|3.12.1|$torch"
"""


def looked(tmp_path: Path, groups: str, *names: str) -> tuple[SurveyedImages, list[str]]:
    """Return what the survey finds in a home with images, and which of them it started."""
    commands, inside, home = (tmp_path / name for name in ("bin", "inside", "home"))
    for folder in (commands, inside, home / "containers"):
        folder.mkdir(parents=True, exist_ok=True)
    for file, text in ((commands / "singularity", SINGULARITY), (inside / "python3", PYTHON)):
        file.write_text(text)
        file.chmod(0o755)
    for age, name in enumerate(names):
        image = home / "containers" / name
        image.write_text("")
        os.utime(image, (2e9 - age, 2e9 - age))
    calls = tmp_path / "calls"
    calls.touch()
    words = {"HOME": str(home), "CALLS": str(calls), "INSIDE": str(inside),
             "PATH": f"{commands}:{os.environ['PATH']}"}  # fmt: skip
    script = f"t='timeout 20'; groups={groups!r}\n{images_sh('')}"
    done = subprocess.run(
        ["sh", "-c", script], env=words, capture_output=True, text=True, check=True
    )
    return images(done.stdout), calls.read_text().splitlines()


def test_each_way_to_start_an_image_is_found_with_the_first_image_that_has_torch(
    tmp_path: Path,
) -> None:
    found, calls = looked(
        tmp_path, "gpu:mi250:8", "none-torch.sif", "run-torch.sif", "exec-torch.sif", "exec-jax.sif"
    )
    assert [Path(path).name for path in found.paths] == [
        "none-torch.sif", "run-torch.sif", "exec-torch.sif", "exec-jax.sif"]  # fmt: skip
    assert calls == ["exec none-torch.sif", "run none-torch.sif", "exec run-torch.sif",
                     "run run-torch.sif", "exec exec-torch.sif"]  # fmt: skip
    assert [(one.verb, Path(one.path).name, one.python, one.torch) for one in found.working] == [
        ("run", "run-torch.sif", "python3", "2.7.0"),
        ("exec", "exec-torch.sif", "python3", "2.7.0"),
    ]
    assert found.patterns(found.working[0]) == (f"{tmp_path}/home/containers/*.sif",)


@pytest.mark.parametrize(
    ("groups", "started"),
    [("gpu:mi250:8", "exec-torch-rocm.sif"), ("gpu:a100:4", "exec-torch-cuda.sif")],
)
def test_an_image_for_the_other_makers_gpus_is_not_started(
    tmp_path: Path, groups: str, started: str
) -> None:
    found, calls = looked(tmp_path, groups, "exec-torch-cuda.sif", "exec-torch-rocm.sif")
    assert len(found.paths) == 2 and calls == [f"exec {started}"]


def test_a_link_and_a_name_that_no_shell_can_take_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "containers"
    folder.mkdir(parents=True)
    (folder / "latest.sif").symlink_to(folder / "exec-torch.sif")
    found, _calls = looked(tmp_path, "", "exec-torch.sif", "a torch;b.sif")
    assert [Path(path).name for path in found.paths] == ["exec-torch.sif"]


def test_spoilt_lines_are_no_images() -> None:
    for line in ("image|a.sif", "image|/a b.sif", "tried|sh|exec|/a.sif|python|3|2",
                 "tried|singularity|rm|/a.sif|python|3|2", "tried|singularity|run|/a.sif|sh|3|2",
                 "tried|singularity|run", "|"):  # fmt: skip
        assert images(line) == SurveyedImages(), line
    odd = images("tried|singularity|run|/a.sif|python|3.12|2.7;rm\n")
    assert odd.tried[0].torch == "" and not odd.working


IMAGES = """MARKER end
MARKER images
image|/appl/containers/torch.sif
image|/appl/containers/jax.sif
tried|singularity|exec|/appl/containers/torch.sif|python3|3.12.1|2.7.0
MARKER end
"""


def test_a_surveyed_cluster_gets_a_container_that_works() -> None:
    end = SURVEY.rstrip()
    assert end.endswith("MARKER end")
    site = site_of(text_from(end.removesuffix("MARKER end") + IMAGES))
    found = site.containers["singularity"]
    assert site.default_container == "singularity"
    assert (found.image, found.python) == ("/appl/containers/torch.sif", "python3")
    assert found.call == ("singularity", "exec", "--nv", "-B", "/work")
    assert found.listing and found.listing.paths == ("/appl/containers/*.sif",)
    assert {"containers.singularity.image", "containers.singularity.call"} <= set(site.unverified)


def test_images_that_did_not_answer_are_named_with_the_line_to_add() -> None:
    listed = IMAGES.replace("tried|", "lost|")
    text = text_from(SURVEY.rstrip().removesuffix("MARKER end") + listed)
    words = " ".join(text.replace("\n#", "").split())
    line = "{singularity: {image: /appl/containers/torch.sif, call: [singularity, exec]}}"
    assert not site_of(text).containers and f"write `containers: {line}`" in words


def test_a_folder_of_a_group_that_is_not_an_account_is_not_taken() -> None:
    other = with_changes(("found|/work/ag-lehre42|", "found|/work/course|"))
    other = other.replace("found|/work/ag-lehre42|", "found|/work/course|")
    site = site_of(text_from(other))
    assert site.folders == {"HOME": "/users/{user}"}
    assert site.work_root == "/users/{user}/lumitui"
