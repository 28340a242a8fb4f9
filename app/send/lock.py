"""The lock that says "this process is sending the run": held by one, left by none."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lumitui.remote.errors import HistoryError


@contextlib.contextmanager
def sender_lock(folder: Path, run_id: str, *, wait: bool = False) -> Iterator[bool]:
    """Hold a run's lock below `folder`; yields whether it was free.

    The kernel lets go of it when the process dies, however it dies. With `wait` it is waited for:
    whoever holds a new run's lock is only sweeping.

    Raises:
        HistoryError: there can be no such file.
    """
    path = folder / f"{run_id}.sending"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _locked(path, wait=wait)
    except OSError as error:
        raise HistoryError(
            f"The lock {path} cannot be taken: {error.strerror}.",
            "Check the rights of its folder and the space on the disk, or set LUMITUI_DATA_DIR to "
            "another folder.",
        ) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _leave(path, descriptor)


def sweep_locks(folder: Path) -> None:
    """Remove the lock files of processes that died; a lock that is held stays."""
    for path in folder.glob("*.sending"):
        # One that stays says nothing: the kernel's lock does.
        with contextlib.suppress(OSError):
            descriptor = _locked(path, wait=False)
            if descriptor is not None:
                _leave(path, descriptor)


def _leave(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    os.close(descriptor)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return a descriptor that holds the lock of the file that is at `path` now; None: held."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            with contextlib.suppress(FileNotFoundError):
                # Its last holder may have removed it in between: such a lock keeps nobody out.
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
