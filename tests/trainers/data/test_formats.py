"""Each format gives the samples that were put in, and what is damaged is named in a sentence."""

import json
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.pictures import cut, image_module, make_folder
from tests.support.trainers.ranks import Load

SHADES = (0, 60, 120)
"""Red of each class."""


def photo_shape(load: Load, side: int = 16, channels: int = 3) -> Any:
    return load("models.table").Shape("images", (channels, side, side), 10)


def open_data(load: Load, where: Path, shape: Any = None) -> Any:
    return load("data.sets").open_data(str(where), shape=shape or photo_shape(load))


def check_reds(load: Load, samples: Any) -> None:
    """The red of an image tells its class; JPEG changes it a little, and grey ones have others."""
    torch = load("torch")
    images, targets = samples.read(torch.arange(len(samples)))
    assert images.dtype == torch.uint8 and images.shape[1:] == samples.shape.input
    assert targets.dtype == torch.int64
    reds, colours = images[:, 0, 8, 8].tolist(), images[:, :, 8, 8].tolist()
    for red, colour, target in zip(reds, colours, targets.tolist(), strict=True):
        assert len(set(colour)) == 1 or abs(red - SHADES[target]) <= 12


def make_tokens(folder: Path, kind: str = "H", vocabulary: int = 60_000) -> None:
    folder.mkdir(exist_ok=True)
    dtype = {"H": "uint16", "I": "uint32"}[kind]
    for name, start in (("train", 0), ("val", 5)):
        numbers = [(start + each * 997) % vocabulary for each in range(100)]
        (folder / f"{name}.bin").write_bytes(array(kind, numbers).tobytes())
        says = {"dtype": dtype, "vocabulary": vocabulary}
        (folder / f"{name}.json").write_text(json.dumps(says))


def test_a_folder_of_images_with_and_without_a_test_of_its_own(load: Load, tmp_path: Path) -> None:
    torch = load("torch")
    make_folder(tmp_path / "one", {"a": 10, "b": 10, "c": 10})
    data = open_data(load, tmp_path / "one")
    assert (len(data.train), len(data.test)) == (27, 3)
    assert data.shape == load("models.table").Shape("images", (3, 16, 16), 3)
    check_reds(load, data.train)
    assert len(set(data.train.read(torch.arange(9))[1].tolist())) == 3  # the classes are mixed
    make_folder(tmp_path / "two" / "train", {"a": 4, "b": 4, "c": 4})
    make_folder(tmp_path / "two" / "val", {"c": 3})
    data = open_data(load, tmp_path / "two")
    assert (len(data.train), len(data.test)) == (12, 3)
    assert data.test.read(torch.arange(3))[1].tolist() == [2, 2, 2]
    grey = open_data(load, tmp_path / "two", photo_shape(load, 28, channels=1))
    assert grey.shape.input == (1, 28, 28)
    seen = data.view(seed=1)(*_first(load, data.train))
    assert seen.shape == (5, 3, 16, 16)


def _first(load: Load, samples: Any) -> tuple[Any, Any]:
    places = load("torch").arange(5)
    return samples.read(places)[0], places


@pytest.mark.parametrize("kind", ["H", "I"])
def test_tokens_are_windows_and_what_follows_them(load: Load, tmp_path: Path, kind: str) -> None:
    torch = load("torch")
    make_tokens(tmp_path, kind)
    data = open_data(load, tmp_path, load("models.table").Shape("tokens", (9,), 7))
    assert data.shape == load("models.table").Shape("tokens", (9,), 60_000)
    assert len(data.train) == 11  # of 100 tokens, 99 have one after them
    inputs, targets = data.train.read(torch.tensor([10, 0]))
    everything = [each * 997 % 60_000 for each in range(100)]
    assert inputs.tolist() == [everything[90:99], everything[:9]]
    assert targets.tolist() == [everything[91:100], everything[1:10]]


HEADER = struct.pack("<256i", 20240520, 1, 100, *[0] * 253)


@pytest.mark.parametrize("header", [b"", HEADER], ids=["nanoGPT's", "llm.c's"])
def test_token_files_in_several_parts_say_nothing_of_themselves(
    load: Load, tmp_path: Path, header: bytes
) -> None:
    torch = load("torch")
    tokens = array("H", (each * 997 % 50_257 for each in range(200)))
    for number in range(2):
        part = tokens[100 * number : 100 * number + 100].tobytes()
        (tmp_path / f"fineweb_train_{number:06}.bin").write_bytes(header + part)
    (tmp_path / "fineweb_val_000000.bin").write_bytes(header + tokens[:50].tobytes())
    shape = load("models.table").Shape("tokens", (9,), 50_257)
    data = open_data(load, tmp_path, shape)
    assert data.shape == shape
    assert (len(data.train), len(data.test)) == (22, 5)  # 11 of each part: none spans two
    inputs, targets = data.train.read(torch.tensor([21, 0, 11]))
    assert inputs.tolist() == [list(tokens[at : at + 9]) for at in (190, 0, 100)]
    assert targets.tolist() == [list(tokens[at : at + 9]) for at in (191, 1, 101)]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("nothing", r"There is no data folder .*/data\. "),
        ("empty", r"data contains no data of a known format\. A folder may contain MNIST"),
        ("text", r"data is not a folder\. A folder may contain MNIST"),
        ("squashfs", r"data is a squashfs, which must be mounted .* `-B .*/data:/data:image-src"),
        ("no images", r"data has no images in its subfolders\. "),
        ("too few", r"data has 3 samples, too few to keep one of 10 for the test\. "),
        ("other class", r"val has a folder z, but the training images have no such class\. "),
        ("cut image", r"data/train/a/0\.JPEG can't be read as an image \(.*\)\. Copy it again"),
        ("no sidecar", r"train\.json can't be read \(No such file.*\"vocabulary\": 50257"),
        ("wrong sidecar", r"train\.json contains 'int8' and 5\. "),
        ("high token", r"train\.bin has a token 59820, but its vocabulary is 100\. "),
        ("half token", r"train\.bin has 199 bytes, which is not a whole number of uint16 tokens"),
    ],
)
def test_what_is_damaged_is_named(load: Load, tmp_path: Path, damage: str, complaint: str) -> None:
    torch, error = load("torch"), load("engine.exits").UsageError
    where = tmp_path / "data"
    damage_it(damage, where)
    shape = load("models.table").Shape("tokens", (9,), 7) if "token" in damage else None
    with pytest.raises(error, match=complaint) as caught:
        data = open_data(load, where, shape)
        data.train.read(torch.arange(len(data.train)))
    assert "\n" not in str(caught.value)


def damage_it(damage: str, where: Path) -> None:
    if damage in ("text", "squashfs"):
        where.write_bytes(b"hsqs and more" if damage == "squashfs" else b"some text")
    elif damage in ("no sidecar", "wrong sidecar", "high token", "half token"):
        make_tokens(where)
        damage_tokens(damage, where)
    elif damage == "empty":
        where.mkdir()
    elif damage == "no images":
        (where / "a").mkdir(parents=True)
    elif damage == "too few":
        make_folder(where, {"a": 3})
    elif damage != "nothing":
        make_folder(where / "train", {"a": 3})
        make_folder(where / "val", {"z" if damage == "other class" else "a": 1})
        cut(where / "train" / "a" / "0.JPEG")


def damage_tokens(damage: str, where: Path) -> None:
    if damage == "no sidecar":
        (where / "train.json").unlink()
    elif damage == "wrong sidecar":
        (where / "train.json").write_text('{"dtype": "int8", "vocabulary": 5}')
    elif damage == "high token":
        for path in where.glob("*.json"):
            path.write_text('{"dtype": "uint16", "vocabulary": 100}')
    else:
        (where / "train.bin").write_bytes(bytes(199))


def test_a_training_without_pillow_is_told_to_pack(load: Load, tmp_path: Path) -> None:
    import sys

    make_folder(tmp_path, {"a": 12})
    data = open_data(load, tmp_path)
    image_module()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "PIL.Image", None)
        with pytest.raises(load("engine.exits").UsageError, match="Install pillow, or run pack"):
            data.train.read(load("torch").arange(2))


def test_a_class_without_images_is_named(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path, {"a": 8, "b": 8, "c": 0, "d": 0})
    open_data(load, tmp_path)
    assert capsys.readouterr().err.startswith(f"{tmp_path}/c has no images; the model includes")
