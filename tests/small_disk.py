"""A file system of a few hundred kilobytes, for what happens when a disk is full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(at: Path, size: str) -> Iterator[Path]:
    """Mount one of `size` (as tmpfs's option has it) at `at`; skips where that is not allowed."""
    at.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", str(at)]
    # A test may have put a PATH of its own in place.
    shell = ["/bin/sh", "-c", 'PATH=/usr/sbin:/usr/bin:/sbin:/bin; exec "$@"', "-"]
    if subprocess.run([*shell, *command], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield at
    finally:
        subprocess.run([*shell, "umount", str(at)], check=True)
