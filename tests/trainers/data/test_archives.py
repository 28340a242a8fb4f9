"""Tars and HDF5 become the same shards as a folder, and what is damaged is named in a sentence."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.pictures import cut, make_folder
from tests.support.trainers.ranks import Load

CLASSES = ["a", "b", "c"]


def make_tar(path: Path, folder: Path, classes: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
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

    files = [
        (one, target)
        for target, name in enumerate(classes)
        for one in sorted((folder / name).iterdir())
    ]
    with h5py.File(path, "w") as file:
        kind = h5py.vlen_dtype(numpy.uint8)
        images = file.create_dataset("images", (len(files),), dtype=kind)
        for number, (one, _) in enumerate(files):
            images[number] = numpy.frombuffer(one.read_bytes(), numpy.uint8)
        file["labels"] = [target for _, target in files]


def packed(load: Load, source: Path, side: int = 16) -> Any:
    """Pack, and open what was packed."""
    out = source.with_name("packed")
    load("data.packing").pack(source, out, (3, side), 2, lambda done, total: None)
    shape = load("data.samples").Shape("images", (3, side, side), 10)
    return load("data.sets").open_data(str(out), shape=shape)


@pytest.mark.parametrize("name", ["tars", "one.tar", "images.h5"])
def test_tars_and_hdf5_are_packed_as_their_folder_is(load: Load, tmp_path: Path, name: str) -> None:
    torch, photos = load("torch"), load("data.photos")
    make_folder(tmp_path / "from", {"a": 10, "b": 10, "c": 10})
    if name == "tars":
        make_tar(tmp_path / name / "train-000.tar", tmp_path / "from", CLASSES)
        make_tar(tmp_path / name / "val-000.tar", tmp_path / "from", CLASSES)
    else:
        make = make_tar if name.endswith("tar") else make_hdf5
        make(tmp_path / name, tmp_path / "from", CLASSES)
    data = packed(load, tmp_path / name)
    assert (len(data.train), len(data.test)) == ((30, 30) if name == "tars" else (27, 3))
    images, targets = data.train.read(torch.arange(len(data.train)))
    folder = photos.folder_images(tmp_path / "from", (3, 16))
    pictures, classes = folder.read(torch.arange(30))
    expected = {
        picture.numpy().tobytes(): each
        for picture, each in zip(pictures, classes.tolist(), strict=True)
    }
    found = [expected[image.numpy().tobytes()] for image in images]
    assert found == targets.tolist() and set(found) == {0, 1, 2}


@pytest.mark.parametrize("floats", [False, True], ids=["bytes", "floats"])
def test_hdf5_may_hold_pixels_in_groups(load: Load, tmp_path: Path, floats: bool) -> None:
    torch, h5py = load("torch"), pytest.importorskip("h5py")
    images = torch.randint(0, 256, (24, 8, 8, 3), dtype=torch.uint8)
    stored = images.permute(0, 3, 1, 2).float() / 255 if floats else images
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for part, start in (("train", 0), ("test", 16)):
            group = file.create_group(part)
            group["images"] = stored[start : start + 16].numpy()
            group["labels"] = list(range(len(group["images"])))
    data = packed(load, tmp_path / "x.h5", side=8)
    assert torch.equal(data.train.read(torch.arange(16))[0], images[:16].permute(0, 3, 1, 2))
    assert data.test.read(torch.arange(8))[1].tolist() == list(range(8))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("cut tar", r"x\.tar can't be read as a tar|x\.tar has no complete image, or no class"),
        ("no class", r"x\.tar has no complete image, or no class, for 'later-9'\. Each sample"),
        ("text", r"data can't be read as a tar"),
        ("cut hdf5", r"data can't be opened as HDF5"),
        ("other hdf5", r"data has no datasets `images` and `labels` in '/'\. "),
        ("unlike hdf5", r"data has images of float64 in the shape \(2, 4, 4\) and 2 labels\. "),
        ("large floats", r"data: image \d+ has floats from 0 to 255 instead of 0 to 1"),
        ("negative floats", r"data: image \d+ has floats from -1\.8 to .* instead of 0 to 1"),
    ],
)
def test_what_is_damaged_is_named(load: Load, tmp_path: Path, damage: str, complaint: str) -> None:
    source = tmp_path / "data"
    if damage in ("cut tar", "no class"):
        make_folder(tmp_path / "from", {"a": 12})
        make_tar(source / "x.tar", tmp_path / "from", ["a"])
        with tarfile.open(source / "x.tar", "a") as tar:
            tar.add(tmp_path / "from" / "a" / "9.png", "later-9.png")
        if damage == "cut tar":
            cut(source / "x.tar")
    elif damage == "text":
        source.write_text("some text")
    else:
        damage_hdf5(damage, source, load("torch"))
    with pytest.raises(load("data.samples").BadData, match=complaint) as caught:
        packed(load, source, side=8)
    assert "\n" not in str(caught.value)


def damage_hdf5(damage: str, where: Path, torch: Any) -> None:
    h5py = pytest.importorskip("h5py")
    import numpy

    with h5py.File(where, "w") as file:
        if damage == "unlike hdf5":
            file["images"] = numpy.zeros((2, 4, 4))
            file["labels"] = [0, 1]
        elif damage.endswith("floats"):
            # Multiplied by 255 and cut, two thirds of such pixels were black or white.
            least, most = (0.0, 255.0) if damage == "large floats" else (-1.8, 2.2)
            pixels = torch.linspace(least, most, 64).repeat(20).view(20, 8, 8)
            file["images"], file["labels"] = pixels.numpy(), [0, 1] * 10
        else:
            file["pictures"] = [1] * 1000
    if damage == "cut hdf5":
        cut(where)
