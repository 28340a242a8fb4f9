"""Writes a new job file and what belongs beside it."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from lumitui.remote.site.errors import InputError, LumiError

_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)


def refuse_there(folder: Path, files: tuple[tuple[str, str], ...]) -> None:
    """Refuse to write `files` to a folder that has one of them.

    Raises:
        InputError: it has one.
    """
    there = [name for name, _ in files if (folder / name).exists()]
    if there:
        raise InputError(
            f"{folder / there[0]} is already there.",
            "The example has a file of this name: write it to another folder.",
        )


def write_all(path: Path, text: str, files: tuple[tuple[str, str], ...]) -> None:
    """Write a job file and what belongs beside it, all or nothing; never over a file.

    Raises:
        InputError: one of them exists, or the folder does not.
        LumiError: one cannot be written.
    """
    refuse_there(path.parent, files)
    written: list[Path] = []
    try:
        for name, content in ((path.name, text), *files):
            write_new(path.parent / name, content)
            written.append(path.parent / name)
    except LumiError:
        for one in written:
            with suppress(OSError):
                one.unlink()
        raise


def write_new(path: Path, text: str) -> None:
    """Write `text` to a new file (0600; a program 0700); never overwrite one.

    Raises:
        InputError: the file exists, its folder does not, or the path leads nowhere.
        LumiError: it cannot be written.
    """
    mode = 0o700 if text.startswith("#!") else 0o600
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} is already there.", "Name another with --output.") from error
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Make it first.") from error
    except OSError as error:
        if error.errno in _NO_PATH:
            message = f"{path} cannot be written: {error.strerror}."
            raise InputError(message, "Name another with --output.") from error
        raise LumiError(f"Writing {path}: {error.strerror}.", "Check the disk.") from error
