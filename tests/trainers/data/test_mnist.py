"""MNIST's files: whole ones, or a sentence."""

import gzip
import struct
from pathlib import Path

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.ranks import Load


def idx(magic: int, *shape: int, fill: int | None = None) -> bytes:
    size = 1
    for axis in shape:
        size *= axis
    header = struct.pack(f">I{len(shape)}I", magic, *shape)
    return gzip.compress(header + bytes(size if fill is None else fill), mtime=0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not an IDX file"),
        (b"<html>404</html>", "not a complete gzip file"),
        (idx(0x0803, 2, 28, 28)[:-9], "not a complete gzip file"),
        (idx(0x0801, 100), "not an IDX file of bytes in 3"),
        (idx(0x0803, 3, 28, 28, fill=2 * 784), "declares 3x28x28 bytes but contains 1568"),
        (idx(0x0803, 0, 28, 28), "declares 0x28x28"),
        (None, "No such file"),
    ],
)
def test_a_broken_data_file_is_refused_with_a_sentence(
    load: Load, tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    mnist, exits = load("data.mnist"), load("engine.exits")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(exits.UsageError, match=complaint) as caught:
        mnist.read_idx(path, mnist.IMAGES)
    assert str(path) in str(caught.value)


def test_files_that_do_not_fit_together_are_refused(load: Load, tmp_path: Path) -> None:
    mnist, exits = load("data.mnist"), load("engine.exits")
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(0x0803, 4, 28, 28))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(0x0801, 4))
    assert mnist.open_set(tmp_path).train.inputs.shape == (4, 1, 28, 28)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(idx(0x0801, 5))
    with pytest.raises(exits.UsageError, match=r"t10k files .* do not match"):
        mnist.open_set(tmp_path)


def test_the_sample_is_small_and_balanced(load: Load) -> None:
    digits = load("data.mnist").open_set(TRAINERS / "data" / "sample")
    assert digits.train.targets.bincount().tolist() == [800] * 10
    assert digits.test.targets.bincount().tolist() == [150] * 10
    assert sum(path.stat().st_size for path in (TRAINERS / "data" / "sample").iterdir()) < 2_000_000
