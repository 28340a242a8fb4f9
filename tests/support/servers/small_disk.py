"""A file system of a few megabytes, for what happens when a disk or a quota is full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def as_root(*command: str) -> bool:
    """Run a command of the system, whatever PATH a test has put in place; whether it worked."""
    shell = ["/bin/sh", "-c", 'PATH=/usr/sbin:/usr/bin:/sbin:/bin; exec "$@"', "-"]
    return subprocess.run([*shell, *command], capture_output=True).returncode == 0


@contextmanager
def small_disk(at: Path, size: str) -> Iterator[Path]:
    """Mount one of `size` (as tmpfs's option has it) at `at`; skips where that is not allowed."""
    at.mkdir()
    if not as_root("mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", str(at)):
        pytest.skip("mounting a small disk needs root")
    try:
        yield at
    finally:
        assert as_root("umount", str(at))


@contextmanager
def quota_disk(at: Path, limit: str) -> Iterator[Path]:
    """Mount a disk at `at`; yields its folder with a quota of `limit` (as btrfs has it: 8M).

    What goes beyond it is refused by the kernel with EDQUOT, although the disk has room. Skips
    where there is no btrfs.
    """
    at.mkdir()
    image, folder = at.with_suffix(".btrfs"), at / "mine"
    with image.open("wb") as file:
        file.truncate(128 << 20)
    if not (
        as_root("mkfs.btrfs", "-q", str(image))
        and as_root("mount", "-o", "loop", str(image), str(at))
    ):
        pytest.skip("a disk with a quota needs root, loop devices, btrfs and its programs")
    try:
        assert as_root("btrfs", "quota", "enable", str(at))
        assert as_root("btrfs", "subvolume", "create", str(folder))
        assert as_root("btrfs", "qgroup", "limit", limit, str(folder))
        yield folder
    finally:
        assert as_root("umount", str(at))
        image.unlink()
