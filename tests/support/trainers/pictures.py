"""Folders of images for tests of the trainers' data."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest


def image_module() -> Any:
    """Return Pillow's module Image, or skip the test."""
    if not importlib.util.find_spec("PIL"):
        pytest.skip("Pillow is not installed")
    from PIL import Image

    return Image


def make_folder(folder: Path, counts: dict[str, int], size: tuple[int, int] = (24, 20)) -> None:
    """Write that many images of each class: JPEG, PNG and grey ones; a class has a colour."""
    module = image_module()
    for shade, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            colour = (60 * shade, 255 - 10 * number, 7 * number)
            mode = "L" if number % 5 == 4 else "RGB"
            image = module.new("RGB", size, colour).convert(mode)
            image.save(folder / name / f"{number}.{'png' if number % 2 else 'JPEG'}")


def cut(path: Path) -> None:
    """Leave the first half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
