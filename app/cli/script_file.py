"""Reading of job scripts: the user names them, a person wrote them, and Slurm accepts them."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from lumitui.app.runs import InputError, quote

_LARGEST = 4 * 1024 * 1024
"""Bytes: Slurm's own limit (`max_script_size`)."""
_MOST_LINES = 60_000
"""As many as 4 MiB of base64 in a heredoc have; lint checks them in 2 seconds."""
_ENDS = ("", ".sh", ".sbatch", ".slurm", ".bash", ".job", ".batch", ".sub", ".submit")
"""Suffixes of job scripts, so that a project's data files are not read."""


def scripts_of(names: Iterable[str]) -> Iterator[str]:
    """Yield the scripts that the user named; for a folder, the scripts inside it.

    In a folder, files with an `#SBATCH` line are scripts. Hidden folders and links are skipped.

    Raises:
        InputError: a folder has no script.
    """
    for name in names:
        if not os.path.isdir(name):  # Path would raise for a name that is too long
            yield name
        elif scripts := list(_below(name)):
            yield from scripts
        else:
            raise InputError(f"{name} has no job script.", "A job script has `#SBATCH` lines.")


def _below(folder: str) -> Iterator[str]:
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for path in (Path(place, name) for name in sorted(files)):
            if path.suffix in _ENDS and path.is_file() and not path.is_symlink():
                try:
                    with path.open("rb") as file:
                        is_script = b"#SBATCH" in file.read(_LARGEST)
                except OSError:
                    is_script = True  # `script_bytes` reports why it cannot be read
                if is_script:
                    yield str(path)


def script_bytes(path: str) -> bytes:
    """Return a script's bytes; `-` is standard input.

    Raises:
        InputError: the file is unreadable or not a script, Slurm would refuse it, or a program
            wrote it.
    """
    from lumitui.app.runs import read_plain

    try:
        most = _LARGEST + 1
        data = sys.stdin.buffer.read(most) if path == "-" else read_plain(Path(path), most)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the name contains a NUL"
        raise InputError(
            f"Cannot read the script {path}: {reason}.", "Choose a file that you can read."
        ) from error
    if path.endswith(".py") and b"#SBATCH" not in data:
        raise InputError(
            f"{path} is a Python program, not an sbatch script.",
            f"`lumitui new --script {quote(path)}` writes a job file; `lumitui preview` checks it.",
        )
    if path.endswith(".ipynb"):
        raise InputError(
            f"{path} is a notebook, not an sbatch script.",
            f"`jupyter nbconvert --to script {quote(path)}` extracts its program; `lumitui new "
            "--script` writes a job file for it.",
        )
    if path.endswith((".yaml", ".yml")) and b"#SBATCH" not in data:
        raise InputError(
            f"{path} is a job file, not an sbatch script.",
            f"`lumitui preview {quote(path)}` checks it.",
        )
    if len(data) > _LARGEST:
        raise InputError(
            f"The script {path} is larger than Slurm's limit of 4 MiB.",
            "Move its data into a separate file.",
        )
    if (lines := data.count(b"\n")) > _MOST_LINES:
        raise InputError(
            f"{path} has {lines:,} lines, so a program probably wrote it; lumitui reads at most "
            f"{_MOST_LINES:,}.",
            "Pass an sbatch script, and move its data into a separate file.",
        )
    return data
