"""pack.py: the same bytes however it ran, whole after kill -9, and what it packed is read back."""

import itertools
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.pictures import make_folder
from tests.support.trainers.ranks import Load, train_alone
from tests.support.trainers.synced import recorded

CLASSES = {"a": 20, "b": 20, "c": 20}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".journal"}


@pytest.fixture
def pack(load: Load, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Pack in this process: 24x24 pixels, ten images a shard; two files are open at a time."""
    images = load("data.packing")
    monkeypatch.setattr(load("data.samples"), "MOST_OPEN", 2)
    monkeypatch.setattr(images, "SHARD_BYTES", 10 * 3 * 24 * 24)

    def run(folder: Path, out: Path, workers: int = 1, side: int = 24) -> Any:
        return images.pack(folder, out, (3, side), workers, lambda done, total: None)

    return run


def test_shards_hold_what_the_folder_gives(
    load: Load, pack: Callable[..., Any], tmp_path: Path
) -> None:
    torch, open_data = load("torch"), load("data.sets").open_data
    make_folder(tmp_path / "from", CLASSES)
    shape = load("models.table").Shape("images", (3, 24, 24), 10)
    packed = pack(tmp_path / "from", tmp_path / "one", workers=1)
    assert (packed.images, packed.new, packed.shards) == (60, 60, 7)
    pack(tmp_path / "from", tmp_path / "three", workers=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")
    folder, shards = (
        open_data(str(tmp_path / name), shape=shape, limit=50) for name in ("from", "one")
    )
    assert len(shards.train) == 50 and len(shards.test) == 6 and shards.shape == folder.shape
    for part in ("train", "test"):
        one, other = getattr(folder, part), getattr(shards, part)
        places = torch.randperm(len(one))
        for left, right in zip(one.read(places), other.read(places), strict=True):
            assert torch.equal(left, right)
    assert pack(tmp_path / "from", tmp_path / "one").new == 0


def test_a_packing_goes_on_after_it_was_cut_anywhere(
    load: Load, pack: Callable[..., Any], tmp_path: Path
) -> None:
    bad = load("data.samples").BadData
    make_folder(tmp_path / "from", CLASSES)
    out = tmp_path / "out"
    pack(tmp_path / "from", out)
    whole, journal = contents(out), (out / "pack.journal").read_bytes()
    for length in range(0, len(journal), 61):
        (out / "pack.json").unlink()
        (out / "pack.journal").write_bytes(journal[:length])
        (out / "train-00003.shard").write_bytes(whole["train-00003.shard"][: 7 * length])
        (out / "train-00004.shard.part").write_bytes(b"half of it")
        noted = [json.loads(line) for line in journal[:length].split(b"\n")[1:-1]]
        kept = sum(one["count"] for one in noted if one["file"] != "train-00003.shard")
        with pytest.raises(bad, match=r"is only partly packed\. Run pack\.py again"):
            load("data.sets").open_data(str(out), shape=load("models.table").DIGITS)
        assert pack(tmp_path / "from", out).new == 60 - kept
        assert contents(out) == whole
    # A bit that flips on the disk is found by packing again.
    spoilt = bytearray(whole["train-00000.shard"])
    spoilt[9000] ^= 4
    (out / "train-00000.shard").write_bytes(spoilt)
    assert pack(tmp_path / "from", out).new == 10
    assert contents(out) == whole
    # Other images, or another size, are not mixed with these.
    with pytest.raises(bad, match=r"already contains other images, or these with another --size"):
        pack(tmp_path / "from", out, side=16)
    (tmp_path / "from" / "a" / "0.JPEG").unlink()
    with pytest.raises(bad, match="already contains other images"):
        pack(tmp_path / "from", out)


def test_a_shard_is_on_the_disk_before_the_journal_names_it(
    load: Load, pack: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "from", {"a": 12})
    done = recorded(monkeypatch)
    out = tmp_path / "out"
    pack(tmp_path / "from", out)
    journal = ("sync", str(out / "pack.journal"))
    shards = sorted(path.name for path in out.glob("*.shard"))
    for name in shards:
        named = done.index(("name", str(out / name)))
        assert ("sync", str(out / f"{name}.part")) in done[:named] and journal in done[named:]
    assert len(shards) > 1 and done.count(journal) == 1 + len(shards)
    manifest = done.index(("name", str(out / "pack.json")))
    assert journal not in done[manifest:]
    assert done[manifest - 1] == ("sync", str(out / ".pack.json.part"))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("cut", r"train-00001\.shard has \d+ bytes instead of 21456\. "),
        ("gone", r"train-00001\.shard can't be read \(No such file"),
        ("header", r"train-00001\.shard is not the shard that pack\.json names\. "),
        ("label", r"pack\.json has no train images, or their labels are not its classes\. "),
        ("manifest", r"pack\.json can't be read \(.*\)\. Pack the images again\."),
        ("format", r"pack\.json is of the format 'packed images 9', not 'packed images 1'\. "),
        ("later", r"train-00001\.shard is truncated: it ends at byte 4196\. Copy it again\."),
    ],
)
def test_a_damaged_shard_is_named(
    load: Load, pack: Callable[..., Any], tmp_path: Path, damage: str, complaint: str
) -> None:
    make_folder(tmp_path / "from", {"a": 10, "b": 20})
    out = tmp_path / "out"
    pack(tmp_path / "from", out)
    shard, manifest = out / "train-00001.shard", out / "pack.json"
    content = bytearray(shard.read_bytes())
    data = (
        load("data.sets").open_data(str(out), shape=load("models.table").DIGITS)
        if damage == "later"
        else None
    )
    if damage == "gone":
        shard.unlink()
    elif damage in ("manifest", "format"):
        text = manifest.read_text().replace("packed images 1", "packed images 9")
        manifest.write_text(text if damage == "format" else text[:-50])
    else:
        content[0 if damage == "header" else -1] ^= 1
        shard.write_bytes(content[:4196] if damage in ("cut", "later") else content)
    with pytest.raises(load("data.samples").BadData, match=complaint):
        data = data or load("data.sets").open_data(str(out), shape=load("models.table").DIGITS)
        data.train.read(load("torch").arange(len(data.train)))


def test_two_packings_of_one_folder_do_not_mix(
    load: Load, pack: Callable[..., Any], tmp_path: Path
) -> None:
    make_folder(tmp_path / "from", {"a": 12})
    pack(tmp_path / "from", tmp_path / "out")
    plan = (tmp_path / "out" / "pack.journal").read_text().split("\n")[0]
    other = load("data.packing").Journal(tmp_path / "out", plan)
    with pytest.raises(load("data.samples").BadData, match=r"Another pack\.py is writing to"):
        pack(tmp_path / "from", tmp_path / "out")
    other.close()
    assert pack(tmp_path / "from", tmp_path / "out").new == 0


def test_a_damaged_image_ends_the_packing_with_its_name(
    load: Load, pack: Callable[..., Any], tmp_path: Path
) -> None:
    make_folder(tmp_path / "from", {"a": 12})
    (tmp_path / "from" / "a" / "3.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    words = ("pack.py", str(tmp_path / "from"), str(tmp_path / "out"), "--size", "8")
    code, said = train_alone(tmp_path, *words)
    assert code == 2
    assert said.startswith(f"pack.py: {tmp_path}/from/a/3.png can't be read as an image (")
    assert said.count("\n") == 1  # and no progress bar: this is no terminal
    (tmp_path / "from" / "a" / "3.png").unlink()
    with pytest.raises(load("data.samples").BadData, match="already contains other images"):
        pack(tmp_path / "from", tmp_path / "out", side=8)
    assert pack(tmp_path / "from", tmp_path / "new").images == 11


def test_no_shards_are_written_among_the_images(load: Load, tmp_path: Path) -> None:
    make_folder(tmp_path / "a", {"x": 2})
    make_folder(tmp_path / "b" / "train", {"x": 2})
    images = load("data.packing")
    for folder, out in (("a", "a"), ("a", "a/x/out"), ("b", "b/train/out"), ("b", "b/../b")):
        with pytest.raises(load("data.sets").BadData, match="is the folder of the images"):
            images.pack(tmp_path / folder, tmp_path / out, (3, 8), 1, lambda *_: None)
        assert not list(tmp_path.rglob("*.journal"))


def test_text_becomes_tokens(load: Load, tmp_path: Path) -> None:
    torch = load("torch")
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "b.txt").write_text("second " * 30)
    (tmp_path / "books" / "a.txt").write_text("Äpfel")
    code, said = train_alone(
        tmp_path, "pack.py", "--text", str(tmp_path / "books"), str(tmp_path / "out")
    )
    assert (code, said) == (0, f"218 tokens of 2 files are in {tmp_path / 'out'}.\n")
    shape = load("models.table").Shape("tokens", (7,), 1)
    data = load("data.sets").open_data(str(tmp_path / "out"), shape=shape)
    inputs, targets = data.train.read(torch.tensor([0, 1]))
    assert bytes(inputs[0].tolist()[:6]) == "Äpfel".encode()
    assert inputs[1].tolist() == list(b"second ") and inputs[0][6] == 256 == targets[0][5]
    assert data.shape.classes == 257


@pytest.mark.slow
def test_kill_9_at_any_moment_costs_what_was_not_finished(tmp_path: Path) -> None:
    make_folder(tmp_path / "from", {"a": 100, "b": 100}, size=(600, 400))
    command = [PYTHON, str(TRAINERS / "pack.py"), str(tmp_path / "from")]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, timeout=300)
    out = tmp_path / "out"
    whole = contents(tmp_path / "whole")
    for name, share in itertools.product(("train", "test"), (0.01, 0.5, 0.99)):
        kill_when(
            out / f"{name}-00000.shard.part", share * len(whole[f"{name}-00000.shard"]), command
        )
    subprocess.run([*command, str(out), "--workers", "1"], check=True, timeout=300)
    assert contents(out) == whole


def kill_when(part: Path, size: float, command: list[str]) -> None:
    """Pack until a part has that many bytes, then kill; or to the end, if it was too quick."""
    process = subprocess.Popen([*command, str(part.parent), "--workers", "1"])
    try:
        while process.poll() is None and not (part.exists() and part.stat().st_size >= size):
            time.sleep(0.001)
    except FileNotFoundError:
        pass  # it has just got its name
    process.kill()
    process.wait(timeout=30)
