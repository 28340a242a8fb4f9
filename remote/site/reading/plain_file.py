"""Small files named by the user, read without waiting for pipes and devices."""

import errno
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
)


def read_plain(path: Path, most: int) -> bytes:
    """Return the first `most` bytes of the file at `path`.

    Raises:
        OSError: it cannot be read, or is a folder, a pipe, a socket or a device.
    """
    # A pipe without a writer would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        for is_kind, words in _KINDS:
            if is_kind(mode):
                raise OSError(errno.EINVAL, words)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)
