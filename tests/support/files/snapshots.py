"""What a snapshot's folder holds on the site."""

import os
from pathlib import Path

from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.project_walk import ProjectLimits
from lumitui.remote.source.scan import scan


def same(snapshot: str, manifest: Manifest) -> bool:
    """Whether a folder holds exactly the manifest: content, modes' x bit, links."""
    return scan(Path(snapshot), limits=ProjectLimits(files=10_000)).id == manifest.id


def left_over(folder: str) -> list[str]:
    """Return what an upload that broke off has left in the folder of snapshots."""
    return [name for name in os.listdir(folder) if name.startswith(".in")]


def stored(folder: str) -> list[str]:
    """Return what is in the folder of snapshots: all but the empty folders of its store."""
    names = [name for name in os.listdir(folder) if name not in ("blobs", "parts")]
    return names + [name for at in ("blobs", "parts") for name in os.listdir(f"{folder}/{at}")]


def writable(path: str) -> bool:
    """Whether anything in a snapshot may be written."""
    return any(
        os.lstat(os.path.join(at, name)).st_mode & 0o222
        for at, folders, files in os.walk(path)
        for name in [".", *folders, *files]
        if not os.path.islink(os.path.join(at, name))
    )
