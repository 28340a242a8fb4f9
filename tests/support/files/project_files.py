"""The files of a small project, and which of them are sent."""

from pathlib import Path

from lumitui.remote.source.scan import scan


def write(root: Path, *paths: str, **named: str) -> Path:
    """Write `paths`, each with its own name in it, and `named` texts; return `root`."""
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    for path, text in named.items():
        (root / path).write_text(text)
    return root


def shipped(root: Path) -> list[str]:
    """Return the paths that are sent of the project."""
    return [entry.path for entry in scan(root).entries]
