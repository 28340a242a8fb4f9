"""Environments on a site: listed with their users, of other computers too, and removed."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.cli.views.environment_tables import image_notes, image_table, removed_text
from lumitui.app.history.run import Run
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.app.survey.environments.image_contents import image_version, images_with_package
from lumitui.app.survey.environments.known_images import (
    KnownImages,
    SiteImages,
    answered,
    with_known,
)
from lumitui.remote.site.errors import AnswerUnusable, InputError
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.states import State
from lumitui.remote.transfer.environments.image_listing import Image, ImageContents
from lumitui.remote.transfer.run_users import venv_users
from tests.support.files.wheels import make_wheel
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import Here
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer

NAME = "a" * 16


def image(name: str, contents: ImageContents | None = None, **named: str) -> Image:
    return Image("laif", f"/appl/{name}", f"/appl/{name}", 10, 20, named, contents)


ASKED = ImageContents("3.12.1", {"torch": "2.10.0", "pytorch-lightning": "2.6.1"}, "7.0")
FULL = image("full.sif", ASKED, torch="2.9", mpich="5.0")
NAMED = image("named.sif", ImageContents(why_not="it hangs"), torch="2.9")
UNKNOWN = image("unknown.sif")


def test_an_answer_counts_more_than_a_name() -> None:
    assert image_version(FULL, "Torch") == "2.10.0"
    assert image_version(FULL, "rocm") == "7.0"
    assert image_version(FULL, "cuda") == image_version(FULL, "einops") == ""
    assert image_version(FULL, "lightning") == "2.6.1"
    assert image_version(NAMED, "torch") == "2.9"
    assert image_version(NAMED, "lightning") is image_version(UNKNOWN, "torch") is None


def test_those_with_a_package_are_told_from_those_that_nobody_knows() -> None:
    every = (FULL, NAMED, UNKNOWN)
    assert images_with_package(every, "lightning") == ([FULL], [NAMED, UNKNOWN])
    assert images_with_package(every, "einops") == ([], [NAMED, UNKNOWN])
    assert images_with_package(every, "") == (list(every), [])


def test_a_narrow_table_of_images_has_whole_names_and_the_mark_of_the_own() -> None:
    site = Sites([BUILT_IN]).load("mn5")
    own = site.containers[min(site.containers)].image
    first = replace(image(own, ASKED, torch="2.9"), path=own)
    other = image("a-name-of-an-image-that-takes-half-of-the-columns-by-itself.sif")
    for columns in (80, 200):
        lines = image_table([first, other], site, "", columns).splitlines()
        said = "\n".join(lines)
        assert f"{own.rpartition('/')[2]}*" in said and "by-itself.sif" in said
        assert "2.10.0" in said and max(map(len, lines)) <= columns
    assert len(lines) == 3, "there is room for whole lines"


def test_what_installs_a_package_is_what_the_adviser_of_the_site_takes() -> None:
    wanted = {"mn5": "`venv: {packages: [einops], wheels: FOLDER}`", "lumi": "`venv: [einops]`"}
    for name, words in wanted.items():
        (said,) = image_notes([], [], "einops", Sites([BUILT_IN]).load(name))
        assert words in said


def test_what_was_answered_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    kept = KnownImages(tmp_path / "images")
    assert kept.get("lumi") is None
    kept.put("lumi", SiteImages(5.0, (FULL, NAMED, UNKNOWN)))
    listing = KnownImages(tmp_path / "images").get("lumi")
    assert listing == SiteImages(5.0, (FULL, NAMED, UNKNOWN))
    assert answered(listing) == [FULL.key]
    (again, link) = with_known((image("full.sif"), NAMED), listing)
    assert again.contents == ASKED
    assert link.contents == NAMED.contents
    path = tmp_path / "images" / "lumi.json"
    assert path.stat().st_mode & 0o777 == 0o600
    for text in ("", "[]", '{"form": 1}', '{"form": 1, "at": 1, "images": [{"x": 1}]}'):
        path.write_text(text)
        assert kept.get("lumi") is None


@pytest.fixture
def here_venvs(runs: Runs, home: object) -> Path:
    """The folder of this machine's environments, with one in it."""
    folder = Path.home() / ".local/share/lumitui/site/venvs"
    data = folder / f"{NAME}.host-1-2"
    data.mkdir(parents=True)
    for name, text in (("done", ""), ("used", ""), ("requirements.txt", "einops\n")):
        (data / name).write_text(text)
    (data / "facts.json").write_text('{"python": "3.12.1", "packages": {}}\n')
    (folder / NAME).symlink_to(data.name)
    return folder


def unfinished(**changes: object) -> Run:
    script = f"#!/bin/bash\n# Virtual environment {NAME}: built once\n"
    return a_run(site="laptop", script=script, state=State.RUNNING, **changes)


def test_what_an_unfinished_run_uses_stays(runs: Runs, here_venvs: Path) -> None:
    runs.history.begin(unfinished())
    with pytest.raises(InputError, match=r"vit-tiny-000001 uses the environment"):
        runs.environments.remove("laptop", [NAME])
    assert all(not gone.names for gone in runs.environments.remove("laptop").values())
    assert (here_venvs / NAME / "done").exists()
    runs.history.update("vit-tiny-000001", state=State.DONE)
    gone = runs.environments.remove("laptop", [NAME])
    assert [one.names for one in gone.values() if one.names] == [(NAME,)]
    assert list(here_venvs.iterdir()) == []


def test_the_verb_lists_and_removes(here: Here, here_venvs: Path) -> None:
    listed: subprocess.CompletedProcess[str] = here("site", "venvs", "laptop")
    assert NAME in listed.stdout and "einops" in listed.stdout
    assert here("site", "venvs", "laptop", "--prune", "--remove", NAME).returncode == 2
    dry = here("site", "venvs", "laptop", "--prune", "--unused", "0", "--dry-run")
    assert "1 environment" in dry.stdout and (here_venvs / NAME).exists()
    unknown = here("site", "venvs", "laptop", "--remove", "zzz")
    assert (unknown.returncode, "laptop has no environment zzz" in unknown.stderr) == (2, True)
    asked = here("site", "venvs", "laptop", "--remove", NAME)
    assert (asked.returncode, (here_venvs / NAME).exists()) == (2, True)
    assert "would remove 1 environment" in asked.stderr and "Add --yes." in asked.stderr
    assert "1 environment" in here("site", "venvs", "laptop", "--remove", NAME, "--yes").stdout
    assert "nothing to remove" in here("site", "venvs", "laptop", "--prune").stderr
    assert "There are no environments" in here("site", "venvs", "laptop").stderr


def test_a_site_without_images_says_what_jobs_run_with(here: Here) -> None:
    said = here("site", "images", "laptop")
    assert said.returncode == 2
    assert "has no container images" in said.stderr


JOB = """\
name: venv
site: laptop
partition: local
gpus_per_node: 1
time: "00:10:00"
launcher: plain
script: wait.sh
proof: "off"
venv: {packages: [tiny], wheels: wheels}
"""


@pytest.fixture
def run(runs: Runs, tmp_path: Path) -> Iterator[Run]:
    """A run that works in an environment."""
    make_wheel(tmp_path / "wheels", "tiny", "1.2")
    script = tmp_path / "wait.sh"
    script.write_text("#!/bin/sh\necho at work\nexec sleep 600\n")
    script.chmod(0o755)
    sent = runs.send(runs.preview(parse_job(JOB, "job"), tmp_path))
    wait_until(lambda: b"at work" in runs.read_log(sent.id)[1], 120)
    yield sent
    if not runs.history.get(sent.id).state.is_final:
        runs.cancel(sent.id)


def test_what_a_run_of_another_computer_uses_stays(
    home: Home, runs: Runs, run: Run, tmp_path: Path
) -> None:
    elsewhere = Home(home.config, tmp_path / "another laptop")
    elsewhere.data.mkdir(mode=0o700)
    other = Runs(elsewhere.settings)
    try:
        ((folder, (found,)),) = [item for item in other.environments.venvs("laptop").items()]
        with pytest.raises(InputError, match=f"{run.id} from another computer uses"):
            other.environments.remove("laptop", [found.name])
        kept = other.environments.remove("laptop")
        assert removed_text(kept, dry=False) == f"{folder}: removed 0 environments, 0 B"
        assert Path(folder, found.name).exists()
        runs.cancel(run.id)
        assert runs.wait(run.id).state is State.CANCELLED
        assert other.environments.remove("laptop", [found.name])[folder].names == (found.name,)
    finally:
        other.close()


def test_an_answer_that_is_none_removes_nothing() -> None:
    with pytest.raises(AnswerUnusable, match="instead of a list of the runs that use environments"):
        venv_users(FixedAnswer(b"welcome to the cluster\n"), "/scratch")


def test_every_image_answers_and_is_asked_once(cluster_runs: Runs) -> None:
    environments = cluster_runs.environments
    listing = environments.images("minilumi")
    named = {one.path.rpartition("/")[2]: one for one in listing.images}
    assert "lumi-multitorch-latest.sif" in named
    assert {one.generation for one in listing.images} == {"laif", "legacy"}
    for image in listing.images:
        assert image_version(image, "torch") and image_version(image, "python"), image
    (requests,) = cluster_runs.requests().values()
    asked = sum(one.kind == "images" for one in requests)
    assert asked == 1
    # What is known is kept: the same again without a request, and a refresh starts no image.
    assert environments.images("minilumi") == listing
    again = environments.images("minilumi", refresh=True)
    assert again.images == listing.images and again.at > listing.at
