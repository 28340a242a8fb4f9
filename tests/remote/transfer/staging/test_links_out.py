"""Links in what is staged: inside they stay, and nothing is sent through one that leads out."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.transfer.contents.content_store import Item, blobs_of
from lumitui.remote.transfer.contents.pieces import content_of, tar_of
from lumitui.remote.transfer.contents.shipment_progress import Meter
from lumitui.remote.transfer.contents.staged_files import find, read

KEY = (
    "-----BEGIN OPENSSH PRIVATE"
    + " KEY-----\n"
    + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n" * 20
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "real.bin").write_text("real")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "shared.bin").write_text("shared")
    (outside / "hop").symlink_to("shared.bin")
    (outside / "notes.txt").write_text(KEY)
    (outside / "again").symlink_to(".")
    (outside / ".ssh").mkdir()
    (outside / ".ssh/id_ed25519").write_text("key")
    (outside / "innocent").symlink_to(".ssh/id_ed25519")
    return folder


LINKS = {
    "weights.bin": "/etc/shadow",
    "relative": "../outside/shared.bin",
    "sub/deeper": "../../outside/shared.bin",
    "chain": "../outside/hop",
    "folder": "../outside",
    "key": "../outside/innocent",
    "back": "sub/../../data/../outside/shared.bin",
    "loop": "loop",
    "twice": "../outside/again/again/shared.bin",
}


@pytest.mark.parametrize("path", LINKS)
def test_a_link_out_is_refused_by_name_with_its_target(path: str, data: Path) -> None:
    (data / path).symlink_to(LINKS[path])
    with pytest.raises(InputError) as refused:
        find("DATA", data)
    assert repr(path) in refused.value.message and LINKS[path] in refused.value.message
    if path != "loop":
        real = os.path.realpath(data / path)
        assert (
            real in refused.value.message and f"`follow_links: [{path}]`" in refused.value.message
        )


def test_links_inside_stay_links(data: Path) -> None:
    (data / "sub/link").symlink_to("../real.bin")
    (data / "up").symlink_to("sub")
    found = find("DATA", data)
    assert found.links == {"sub/link": "../real.bin", "up": "sub"} and not found.follow.taken


def test_a_link_to_a_link_out_is_one(data: Path) -> None:
    (data / "out").symlink_to("../outside/shared.bin")
    (data / "inside").symlink_to("out")
    with pytest.raises(InputError, match=r"'inside' is a link out.*'out' is a link out"):
        find("DATA", data)


@pytest.mark.parametrize("word", ["relative", "*", "data/relative", "rel*"])
def test_a_link_that_is_named_is_followed(word: str, data: Path) -> None:
    (data / "relative").symlink_to("../outside/hop")
    item = read(find("DATA", data, follow=[word]))
    assert [entry.path for entry in item.manifest.files] == ["real.bin", "relative"]
    assert b"shared" in sent(item)


def test_a_folder_that_is_named_is_followed_and_a_circle_is_refused(data: Path) -> None:
    (data / "folder").symlink_to("../outside")
    (data.parent / "outside/notes.txt").unlink()
    with pytest.raises(InputError) as refused:
        find("DATA", data, ["folder/innocent", "folder/.ssh/id_ed25519"], ["folder"])
    assert refused.value.message.count("'folder/") == 1
    assert "'folder/again' is a link to" in refused.value.message
    (data.parent / "outside/again").unlink()
    found = find("DATA", data, ["folder/innocent", "folder/.ssh/id_ed25519"], ["folder"])
    assert {"folder/hop", "folder/shared.bin", "folder/.ssh/id_ed25519"} <= set(found.files)
    assert b"shared" in sent(read(found))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../outside/innocent", "looks like a private SSH key"),
        ("../outside/notes.txt", "a private key in line 1"),
        ("../outside", "folder/notes.txt"),
    ],
)
def test_a_followed_link_to_a_secret_is_refused(target: str, words: str, data: Path) -> None:
    (data / "folder").symlink_to(target)
    with pytest.raises(InputError, match=words):
        find("DATA", data, (), ["*"])


def test_a_key_deep_in_a_large_file_is_found_before_a_byte_is_sent(
    data: Path, tmp_path: Path
) -> None:
    large = data.parent / "outside/large"
    large.write_text("x\n" * 500_000 + KEY)
    os.utime(large, (1, 1))
    hashes = tmp_path / "hashes.json"
    for name in ("link", "linked"):  # a file that was hashed is searched when a link leads to it
        (data / name).symlink_to("../outside/large")
        for _ in range(2):
            with pytest.raises(InputError, match="line 500001"):
                read(find("DATA", data, (), ["*"]), Hashes(hashes, data))
    assert read(find("DATA", data, ["lin*"], ["*"]), Hashes(hashes, data))


@pytest.mark.parametrize("target", ["notes.txt", "innocent"])
def test_a_link_that_is_staged_itself_is_searched(target: str, data: Path) -> None:
    (data / "weights.bin").symlink_to(f"../outside/{target}")
    with pytest.raises(InputError, match="private"):
        find("DATA", data / "weights.bin")
    (data / "d").symlink_to("../outside")
    with pytest.raises(InputError, match="private"):
        find("DATA", data / "d" / target)


def swap(place: Path, target: Path) -> None:
    place.rename(place.with_name("kept"))
    place.symlink_to(target)


@pytest.mark.parametrize("what", ["file", "folder", "followed"])
@pytest.mark.parametrize("when", ["before the read", "before the send"])
def test_a_link_that_takes_a_place_later_sends_nothing(what: str, when: str, data: Path) -> None:
    secret = data.parent / "outside/secret"
    secret.mkdir()
    (secret / "a").write_text("SECRET")
    (data / "sub/a").write_text("public")
    (data.parent / "outside/a").write_text("PUBLIC")
    (data / "followed").symlink_to("../outside/a")
    found = find("DATA", data, (), ["followed"])
    item = read(found) if when == "before the send" else None
    if what == "file":
        swap(data / "sub/a", secret / "a")
    elif what == "folder":
        swap(data / "sub", secret)
    else:
        swap(data.parent / "outside/a", secret / "a")
    pieces: list[bytes] = []
    with pytest.raises(InputError):
        pieces.extend(stream(item or read(found)))
    assert b"SECRET" not in b"".join(pieces)


def test_the_rest_of_a_large_file_comes_from_no_link(data: Path) -> None:
    item = read(find("DATA", data))
    swap(data / "real.bin", data.parent / "outside/notes.txt")
    with pytest.raises(InputError):
        list(
            content_of(item, next(one for one in item.manifest.files if one.path == "real.bin"), 2)
        )


def stream(item: Item) -> Iterator[bytes]:
    return tar_of(item, "w", blobs_of(item), Meter("DATA", lambda progress: None), places=True)


def sent(item: Item) -> bytes:
    return b"".join(stream(item))
