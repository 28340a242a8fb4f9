"""The lock of the process that is sending a run; the kernel frees it when the process dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lumitui.remote.site.errors import HistoryError


@contextlib.contextmanager
def sender_lock(folder: Path, run_id: str, *, wait: bool = False) -> Iterator[bool]:
    """Hold a run's lock in `folder`; yield whether it was free.

    With `wait`, wait until the lock is free: only a sweep ever holds the lock of a new run.

    Raises:
        HistoryError: the lock's file cannot be created.
    """
    path = folder / f"{run_id}.sending"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _locked(path, wait=wait)
    except OSError as error:
        raise HistoryError(
            f"Cannot create the lock {path}: {error.strerror}.",
            "Check the folder's permissions and the disk space, or set LUMITUI_DATA_DIR to another "
            "folder.",
        ) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _leave(path, descriptor)


def sweep_locks(folder: Path) -> None:
    """Remove the lock files of dead processes; keep active locks."""
    for path in folder.glob("*.sending"):
        # A leftover file does no harm: the kernel's lock counts, not the file.
        with contextlib.suppress(OSError):
            descriptor = _locked(path, wait=False)
            if descriptor is not None:
                _leave(path, descriptor)


def _leave(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    os.close(descriptor)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return a descriptor that locks the file at `path`; None if another process has it."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            with contextlib.suppress(FileNotFoundError):
                # If the last holder removed the file meanwhile, its lock excludes no one.
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
