"""A job script that a user names, as bytes: one that a user wrote and Slurm would take."""

import sys
from pathlib import Path

from lumitui.app.runs import InputError

_LARGEST = 4 * 1024 * 1024
"""Bytes: Slurm's own limit (`max_script_size`)."""
_MOST_LINES = 60_000
"""As many as 4 MiB of base64 in a heredoc have; lint takes 2 seconds for them."""


def script_bytes(path: str) -> bytes:
    """Return what a script holds; `-` is standard input.

    Raises:
        InputError: it cannot be read, Slurm would not take it, or no person wrote it.
    """
    from lumitui.app.runs import read_plain

    try:
        most = _LARGEST + 1
        data = sys.stdin.buffer.read(most) if path == "-" else read_plain(Path(path), most)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the name has a NUL character"
        raise InputError(
            f"The script {path} cannot be read: {reason}.", "Name a file that you may read."
        ) from error
    if len(data) > _LARGEST:
        raise InputError(
            f"The script {path} is larger than 4 MiB, and Slurm takes none that is.",
            "Put what is long into a file beside the script.",
        )
    if (lines := data.count(b"\n")) > _MOST_LINES:
        raise InputError(
            f"{path} has {lines:,} lines, so a program wrote it; lumitui reads {_MOST_LINES:,}.",
            "Name an sbatch script, and put what is long into a file beside it.",
        )
    return data
