"""Writes a new job file and the files beside it."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from lumitui.remote.site.errors import InputError, LumiError

_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)


def refuse_there(folder: Path, files: tuple[tuple[str, str], ...]) -> None:
    """Refuse to overwrite one of `files` in a folder.

    Raises:
        InputError: one exists.
    """
    existing = [name for name, _ in files if (folder / name).exists()]
    if existing:
        raise InputError(
            f"{folder / existing[0]} already exists.",
            "The example has a file of the same name: write it to another folder.",
        )


def write_all(path: Path, text: str, files: tuple[tuple[str, str], ...]) -> None:
    """Write a job file and the files beside it, all or nothing; never overwrite a file.

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
    """Write `text` to a new file with mode 0600, a program with 0700; never overwrite a file.

    Raises:
        InputError: the file exists, its folder does not, or the path is invalid.
        LumiError: it cannot be written.
    """
    mode = 0o700 if text.startswith("#!") else 0o600
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} already exists.", "Name another with --output.") from error
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Create it first.") from error
    except OSError as error:
        message = f"Cannot write {path}: {error.strerror}."
        if error.errno in _NO_PATH:
            raise InputError(message, "Name another with --output.") from error
        raise LumiError(message, "Check the disk.") from error
