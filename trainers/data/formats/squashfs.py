"""Squashfs: a folder in one file. It is read as that folder, where it is mounted."""

from __future__ import annotations

from pathlib import Path

from engine.reporting import UsageError

MAGIC = b"hsqs"


def check(path: Path) -> None:
    """Say how to mount a file, if it is a squashfs: a job may not do it, its container does.

    Raises:
        UsageError: it is one.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return
    raise UsageError(
        f"{path} is a squashfs, which has to be mounted before it is read. Let the container do "
        f"it, with `-B {path}:/data:image-src=/` (in a job file: container: binds:), and give "
        "--data /data."
    )
