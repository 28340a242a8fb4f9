"""Each format gives the samples that were put in, and what is damaged is named in a sentence."""

import io
import json
import struct
import tarfile
from array import array
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.pictures import image_module, make_folder
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


def make_tar(path: Path, folder: Path, classes: list[str]) -> None:
    with tarfile.open(path, "w") as tar:
        for target, name in enumerate(classes):
            for image in sorted((folder / name).iterdir()):
                tar.add(image, f"{name}-{image.name}")
                said = tarfile.TarInfo(f"{name}-{image.stem}.cls")
                said.size = 1
                tar.addfile(said, io.BytesIO(str(target).encode()))


def make_hdf5(path: Path, folder: Path, classes: list[str]) -> None:
    h5py = pytest.importorskip("h5py")
    import numpy

    files = [(one, target) for target, name in enumerate(classes) for one in _sorted(folder / name)]
    with h5py.File(path, "w") as file:
        kind = h5py.vlen_dtype(numpy.uint8)
        images = file.create_dataset("images", (len(files),), dtype=kind)
        for number, (one, _) in enumerate(files):
            images[number] = numpy.frombuffer(one.read_bytes(), numpy.uint8)
        file["labels"] = [target for _, target in files]


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


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


@pytest.mark.parametrize("name", ["tars", "one.tar", "images.h5"])
def test_tars_and_hdf5_hold_the_same_images(load: Load, tmp_path: Path, name: str) -> None:
    torch = load("torch")
    make_folder(tmp_path / "from", {"a": 10, "b": 10, "c": 10})
    classes = ["a", "b", "c"]
    if name == "tars":
        (tmp_path / name).mkdir()
        make_tar(tmp_path / name / "train-000.tar", tmp_path / "from", classes)
        make_tar(tmp_path / name / "val-000.tar", tmp_path / "from", classes)
    else:
        make = make_tar if name.endswith("tar") else make_hdf5
        make(tmp_path / name, tmp_path / "from", classes)
    data = open_data(load, tmp_path / name)
    assert (len(data.train), len(data.test)) == ((30, 30) if name == "tars" else (27, 3))
    check_reds(load, data.train)
    again = open_data(load, tmp_path / name)  # with the index that the first has left
    places = torch.tensor([26, 0, 13])
    assert torch.equal(data.train.read(places)[0], again.train.read(places)[0])


@pytest.mark.parametrize(("least", "most"), [(0.0, 255.0), (-1.8, 2.2)])
def test_hdf5_floats_that_are_not_from_0_to_1_are_refused(
    load: Load, tmp_path: Path, least: float, most: float
) -> None:
    """Multiplied by 255 and cut, two thirds of their pixels were black or white."""
    torch, h5py = load("torch"), pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = torch.linspace(least, most, 20 * 64).view(20, 8, 8).numpy()
        file["labels"] = [0, 1] * 10
    data = open_data(load, tmp_path / "x.h5")
    with pytest.raises(load("data.samples").BadData, match=r"has floats from .* 0 to 1 is needed"):
        data.train.read(torch.arange(4))


@pytest.mark.parametrize("floats", [False, True], ids=["bytes", "floats"])
def test_hdf5_with_pixels_is_read_by_forked_workers(
    load: Load, tmp_path: Path, floats: bool
) -> None:
    torch, h5py = load("torch"), pytest.importorskip("h5py")
    images = torch.randint(0, 256, (24, 8, 8, 3), dtype=torch.uint8)
    stored = images.permute(0, 3, 1, 2).float() / 255 if floats else images
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for part, start in (("train", 0), ("test", 16)):
            group = file.create_group(part)
            group["images"] = stored[start : start + 16].numpy()
            group["labels"] = list(range(len(group["images"])))
    data = open_data(load, tmp_path / "x.h5")
    data.train.read(torch.tensor([0]))  # opened in this process first
    shares = load("data.loading").TrainingShares(torch.arange(16), 0, 4, 1, 0, 1)
    plain = load("data.views").View()
    cpu = torch.device("cpu")
    with load("data.loading").Batches(data.train, shares, plain, cpu, workers=2) as reading:
        found = torch.cat([inputs for inputs, _ in reading])
    assert torch.equal(found, images[:16].permute(0, 3, 1, 2))


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


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("nothing", r"There is no data folder .*/data\. "),
        ("empty", r"data holds no data of a known format\. A folder may hold MNIST"),
        ("text", r"data is of no known format\. "),
        ("squashfs", r"data is a squashfs, which has to be mounted .* `-B .*/data:/data:image-src"),
        ("no images", r"data has no images in its subfolders\. "),
        ("too few", r"data has 3 samples, too few to keep one of 10 for the test\. "),
        ("other class", r"val has a folder z, but there is no such class to learn\. "),
        ("cut image", r"data/train/a/0\.JPEG can't be read as an image \(.*\)\. Copy it again"),
        ("cut tar", r"x\.tar can't be read as a tar|x\.tar lacks a whole image or its class"),
        ("no class", r"x\.tar lacks a whole image or its class for 'later-9'\. Each sample"),
        ("no sidecar", r"train\.json can't be read \(No such file.*\"vocabulary\": 50257"),
        ("wrong sidecar", r"train\.json says 'int8' and 5\. "),
        ("high token", r"train\.bin has a token 59820, but its vocabulary is 100\. "),
        ("half token", r"train\.bin has 199 bytes, which is not a whole number of uint16 tokens"),
        ("cut hdf5", r"data can't be opened as HDF5"),
        ("other hdf5", r"data lacks the datasets images and labels in '/'\. "),
        ("unlike hdf5", r"data has images of float64 in the shape \(2, 4, 4\) and 2 labels\. "),
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
    elif "hdf5" in damage:
        damage_hdf5(damage, where)
    elif damage in ("cut tar", "no class"):
        make_folder(where.with_name("from"), {"a": 12})
        where.mkdir()
        make_tar(where / "x.tar", where.with_name("from"), ["a"])
        if damage == "cut tar":
            cut(where / "x.tar")
        else:
            with tarfile.open(where / "x.tar", "a") as tar:
                tar.add(where.with_name("from") / "a" / "9.png", "later-9.png")
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


def damage_hdf5(damage: str, where: Path) -> None:
    h5py = pytest.importorskip("h5py")
    import numpy

    with h5py.File(where, "w") as file:
        if damage == "unlike hdf5":
            file["images"] = numpy.zeros((2, 4, 4))
            file["labels"] = [0, 1]
        else:
            file["pictures"] = [1] * 1000
    if damage == "cut hdf5":
        cut(where)


def test_a_training_without_pillow_is_told_to_pack(load: Load, tmp_path: Path) -> None:
    import sys

    make_folder(tmp_path, {"a": 12})
    data = open_data(load, tmp_path)
    image_module()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "PIL.Image", None)
        with pytest.raises(load("engine.exits").UsageError, match="Install pillow, or pack"):
            data.train.read(load("torch").arange(2))


def test_a_class_without_images_is_named(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path, {"a": 8, "b": 8, "c": 0, "d": 0})
    open_data(load, tmp_path)
    assert capsys.readouterr().err.startswith(f"{tmp_path}/c has no images; the model gets this")
