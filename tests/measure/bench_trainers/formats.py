"""Images that one core reads in a second from each format, beside what scripts commonly do.

Both sides run in turns in one thread, on files that the machine has in memory: what a disk or a
parallel file system does is not measured. Ours ends with bytes in a batch; crops and normalisation
are the GPU's. The others' work is all the processor's, since that is how they are written:

    ImageFolder  torchvision's, with RandomResizedCrop(224), a flip, ToTensor and Normalize: the
                 same calls of Pillow and PyTorch, written out, for torchvision is not needed here
    the guide    HDF5 as the LUMI AI Guide makes and reads it: floats of 64x64 pixels, made an
                 image again, Resize(256), CenterCrop(224), ToTensor and Normalize
"""

import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from tests.measure.bench_trainers.row import Row, abba
from tests.support.places import TRAINERS

CLASSES, OF_A_CLASS, ROUNDS = 4, 100, 6
PHOTO, SMALL = (400, 300), (64, 64)
"""Pixels of the photos, and of the small ones."""
LEAST = {"photos": 0.9, "packed": 30.0, "small-packed": 100.0}
"""How many times as fast as the others' each folder or file has to be, or the bench fails."""


@dataclass(frozen=True)
class Reader:
    """Reads batches of 32 images of random places."""

    batch: Callable[[], Any]
    batches: int
    """In a turn: some tenths of a second."""

    def __call__(self) -> None:
        """Read."""
        for _ in range(self.batches):
            self.batch()


def rows() -> Iterator[Row]:
    """Yield the images a second of each format."""
    sys.path.insert(0, str(TRAINERS))
    import_module("torch").set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        files = sorted((folder / "photos").glob("*/*"))
        other = Reader(lambda: [image_folder(random.choice(files)) for _ in range(32)], 2)
        for title, where, batches in (
            ("a folder of JPEG files", "photos", 2),
            ("packed shards", "packed", 100),
        ):
            one = ours(folder / where, 224, batches)
            yield beside(title, one, other, "ImageFolder", LEAST.get(where))
        one = ours(folder / "packed", 224, 4, seed=1)
        yield beside("packed shards, crops on the CPU too", one, other, "ImageFolder", None)
        other = Reader(guide(folder / "small.h5"), 2)
        one = ours(folder / "small-packed", 64, 400)
        yield beside("packed shards of 64x64", one, other, "the guide", LEAST["small-packed"])


def beside(title: str, one: Reader, other: Reader, what: str, least: float | None) -> Row:
    """Compare what two readers read in a second of one core."""
    found, others = abba(one, other, ROUNDS)
    speed = 32 * one.batches / median(found)
    return Row(title, speed, "images/s", 32 * other.batches / median(others), what, least=least)


def ours(where: Path, side: int, batches: int, seed: int | None = None) -> Reader:
    """Return the trainers' reader; with a seed it does the GPU's work, too."""
    torch = import_module("torch")
    shape = import_module("models.table").Shape("images", (3, side, side), CLASSES)
    data = import_module("data.sets").open_data(str(where), shape=shape)

    def batch() -> None:
        places = torch.randint(len(data.train), (32,))
        images, _ = data.train.read(places)
        if seed is not None:
            data.view(seed=seed)(images, places)

    return Reader(batch, batches)


def image_folder(path: Path) -> Any:
    """Return one image as torchvision's ImageFolder and the usual transforms do."""
    image = pillow()
    with path.open("rb") as file:
        photo = image.open(file).convert("RGB")
    width, height = photo.size
    area = width * height * random.uniform(0.08, 1)
    ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
    wide = min(width, round(math.sqrt(area * ratio)))
    high = min(height, round(math.sqrt(area / ratio)))
    left, top = random.randint(0, width - wide), random.randint(0, height - high)
    photo = photo.crop((left, top, left + wide, top + high))
    photo = photo.resize((224, 224), image.Resampling.BILINEAR)
    if random.random() < 0.5:
        photo = photo.transpose(image.Transpose.FLIP_LEFT_RIGHT)
    return to_tensor(photo)


def guide(path: Path) -> Callable[[], Any]:
    """Return what reads a batch as the guide's scripts do."""
    image, file = pillow(), import_module("h5py").File(path, "r")
    images, labels = file["images"], file["labels"]

    def one() -> Any:
        place = random.randrange(len(images))
        stored, label = images[place], int(labels[place])
        photo = image.fromarray((stored.transpose(1, 2, 0) * 255).astype("uint8"))
        photo = photo.resize((256, 256), image.Resampling.BILINEAR)
        return to_tensor(photo.crop((16, 16, 240, 240))), label

    return lambda: [one() for _ in range(32)]


def to_tensor(photo: Any) -> Any:
    """ToTensor and Normalize."""
    torch, numpy = import_module("torch"), import_module("numpy")
    found = torch.from_numpy(numpy.array(photo)).permute(2, 0, 1).contiguous().float().div(255)
    mean = torch.tensor((0.485, 0.456, 0.406)).view(-1, 1, 1)
    return found.sub_(mean).div_(torch.tensor((0.229, 0.224, 0.225)).view(-1, 1, 1))


def pillow() -> Any:
    """Pillow's module Image."""
    return import_module("PIL.Image")


def make(folder: Path) -> None:
    """Make the same photos in each format."""
    pack = import_module("data.packing").pack
    made = random.Random(1)
    for name, size in (("photos", PHOTO), ("small", SMALL)):
        for number in range(CLASSES * OF_A_CLASS):
            where = folder / name / f"class-{number % CLASSES}"
            where.mkdir(parents=True, exist_ok=True)
            coarse = pillow().frombytes("RGB", (20, 15), made.randbytes(20 * 15 * 3))
            photo = coarse.resize(size, pillow().Resampling.BICUBIC)
            photo.save(where / f"{number}.jpg", quality=90)
        side = 224 if name == "photos" else SMALL[0]
        out = folder / ("packed" if name == "photos" else "small-packed")
        pack(folder / name, out, (3, side), 1, lambda done, total: None)
    make_hdf5(folder)


def make_hdf5(folder: Path) -> None:
    """Make HDF5 of floats with the channels first."""
    h5py, numpy = import_module("h5py"), import_module("numpy")
    small = sorted((folder / "small").glob("*/*"))
    with h5py.File(folder / "small.h5", "w") as file:
        images = file.create_dataset("images", (len(small), 3, *SMALL), dtype="f")
        for number, path in enumerate(small):
            images[number] = numpy.array(pillow().open(path)).transpose(2, 0, 1) / 255
        file["labels"] = [int(path.parent.name[-1]) for path in small]
