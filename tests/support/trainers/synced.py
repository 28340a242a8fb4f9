"""The order in which a program forces files to the disk and gives them their names."""

import os
from pathlib import Path
from typing import Any

import pytest


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Note each fsync as ("sync", path), and each rename as ("name", new path), from now on."""
    done: list[tuple[str, str]] = []
    sync, rename, replace = os.fsync, Path.rename, Path.replace

    def noted_sync(file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        done.append(("sync", os.readlink(f"/proc/self/fd/{number}")))
        sync(file)

    def noted_rename(path: Path, target: Any) -> Path:
        done.append(("name", str(target)))
        return rename(path, target)

    def noted_replace(path: Path, target: Any) -> Path:
        done.append(("name", str(target)))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    monkeypatch.setattr(Path, "replace", noted_replace)
    return done
