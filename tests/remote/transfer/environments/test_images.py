"""The images of a site: found by the profile's paths, read by name, asked once."""

import os
import sys
from pathlib import Path

import pytest

from lumitui.remote.site.container import Container, ImageListing
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.transfer.environments import image_listing
from lumitui.remote.transfer.environments.image_listing import Image, ImageContents, find_images
from lumitui.remote.transfer.environments.image_names import versions_in
from lumitui.remote.transport.local import Local
from tests.support.servers.transports import FixedAnswer

LAIF = "lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif"
LEGACY = "lumi-pytorch-rocm-6.2.4-python-3.12-pytorch-v2.7.1.sif"
OLD = "lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif"


@pytest.fixture(scope="module")
def lumi() -> Site:
    return Sites((BUILT_IN,)).load("lumi")


@pytest.mark.parametrize(
    ("generation", "name", "versions"),
    [
        ("laif", LAIF, {"rocm": "7.0", "torch": "2.10", "ubuntu": "24", "mpich": "5.0"}),
        (
            "laif",
            LAIF.replace("t210", "t29").replace("r70", "r64"),
            {"torch": "2.9", "rocm": "6.4"},
        ),
        ("laif", "lumi-multitorch-latest.sif", {}),
        ("legacy", LEGACY, {"rocm": "6.2.4", "python": "3.12", "torch": "2.7.1"}),
        ("legacy", OLD, {"rocm": "6.2.1", "python": "3.12"}),
    ],
)
def test_the_name_says_versions(
    lumi: Site, generation: str, name: str, versions: dict[str, str]
) -> None:
    listing = lumi.containers[generation].listing
    assert listing
    found = versions_in(f"/appl/{name}", listing.names)
    assert found.items() >= versions.items()
    assert versions or not found


@pytest.fixture
def site(lumi: Site, tmp_path: Path) -> Site:
    """A site whose images are shell files, which run what they are given."""
    folder = tmp_path / "the images"
    folder.mkdir()
    log = tmp_path / "asked"
    texts = {  # 124 is what `timeout` ends with
        "a-torch1.sif": f'echo a >>"{log}"; exec "$@"',
        "b-torch2.sif": f'echo b >>"{log}"; echo "FATAL: kernel too old" >&2; exit 255',
        "c-torch3.sif": f'echo c >>"{log}"; exit 124',
        "d.txt": "exit 1",
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
    (folder / "latest.sif").symlink_to("a-torch1.sif")
    # A glob has no spaces: that the folder has one shows in what is found.
    listing = ImageListing(paths=(f"{tmp_path}/*/*.sif",), names=r"torch(?P<torch>\d)")
    container = Container(
        image=str(folder / "a-torch1.sif"),
        call=("bash",),
        python=sys.executable,
        modules=("export MODULE=loaded",),
        activate="export ACTIVATED=yes",
        listing=listing,
    )
    return lumi.model_copy(update={"containers": {"one": container}})


def by_name(found: list[Image]) -> dict[str, Image]:
    return {Path(image.path).name: image for image in found}


def test_each_image_is_asked_once_and_what_is_not_known_is_said(site: Site, tmp_path: Path) -> None:
    found = by_name(find_images(Local(), site, ()))
    assert list(found) == ["a-torch1.sif", "b-torch2.sif", "c-torch3.sif", "latest.sif"]
    first = found["a-torch1.sif"]
    assert first.named == {"torch": "1"}
    assert first.contents and first.contents.why_not == ""
    assert first.contents.python == ".".join(map(str, sys.version_info[:3]))
    assert first.contents.packages["pytest"] == pytest.__version__
    assert found["latest.sif"].contents == first.contents
    assert found["latest.sif"].real == first.path
    assert found["b-torch2.sif"].contents == ImageContents(why_not="FATAL: kernel too old")
    assert found["c-torch3.sif"].contents == ImageContents(why_not="it did not answer in 30 s")
    assert sorted((tmp_path / "asked").read_text()) == sorted("a\nb\nc\n")
    # What is known is not asked again, unless the file is another one.
    (tmp_path / "asked").unlink()
    known = [image.key for image in found.values() if not image.path.endswith("torch2.sif")]
    again = by_name(find_images(Local(), site, known))
    assert again["a-torch1.sif"].contents is None
    assert (tmp_path / "asked").read_text() == "b\n"


def test_when_the_time_is_over_the_rest_is_not_asked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_listing, "ASKING_SECONDS", -1)
    found = find_images(Local(), site, ())
    late = ImageContents(why_not="the query ran out of time")
    assert [image.contents for image in found] == [late] * 4
    assert not (tmp_path / "asked").exists()


def test_a_generation_whose_images_are_not_asked(site: Site, tmp_path: Path) -> None:
    container = site.containers["one"]
    assert container.listing
    listing = container.listing.model_copy(update={"asked": False})
    quiet = {"one": container.model_copy(update={"listing": listing})}
    found = find_images(Local(), site.model_copy(update={"containers": quiet}), ())
    assert len(found) == 4
    assert [image.contents for image in found] == [None] * 4
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    "out",
    [
        b"",
        b"MARKER image one 1\n/a\nMARKER end\n",
        b"MARKER image one x y\n/a\n/a\nMARKER end\n",
        b"MARKER image other 1 2\n/a\n/a\nMARKER end\n",
        b"MARKER contents\n/a\n" + b'{"python"' * 1000 + b"\nMARKER end\n",
        os.urandom(2000),
    ],
)
def test_an_answer_that_makes_no_sense_has_no_images(site: Site, out: bytes) -> None:
    assert find_images(FixedAnswer(out), site, ()) == []


def test_what_a_site_answers_is_kept_within_limits(site: Site) -> None:
    packages = ", ".join(f'"p{i}": "1"' for i in range(6000))
    answer = f'{{"python": 3, "packages": {{{packages}, "x": ["y"]}}, "rocm": {{}}}}'
    out = (
        "MARKER image one 1 2\n/a\n/a\nMARKER end\n"
        f"MARKER contents\n/a\n{answer}\nstatus 0\nMARKER end\n"
    )
    (image,) = find_images(FixedAnswer(out.encode()), site, ())
    assert image.contents
    assert len(image.contents.packages) == 5000
    assert (image.contents.python, image.contents.rocm) == ("3", "")
