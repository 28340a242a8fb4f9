"""Host keys that are revoked: lists of keys, and KRLs as `ssh-keygen -k` makes them.

Format: openssh-portable, PROTOCOL.krl. As in OpenSSH, a list that is missing or cannot be
understood revokes every key: it may be the one that matters.
"""

import base64
import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

from lumitui.remote.errors import LinkError

_MAGIC = b"SSHKRL\n\0"
_MOST_BYTES = 32 << 20
_CERTIFICATES, _KEYS, _SHA1, _SIGNATURE, _SHA256, _EXTENSION = 1, 2, 3, 4, 5, 255


def check_revoked(files: Sequence[Path], name: str, blob: bytes, fingerprint: str) -> None:
    """Return if no file of `files` revokes the host key `blob` of the host `name`.

    Raises:
        LinkError: one does, or one cannot be read.
    """
    for path in files:
        try:
            revoked = _revokes(path, blob)
        except (OSError, ValueError, struct.error) as error:
            why = getattr(error, "strerror", None) or "it is neither a list of keys nor a KRL"
            raise LinkError(
                f"The list of revoked host keys {path} cannot be read: {why}.",
                "Correct the file or RevokedHostKeys in the ssh configuration; without the list "
                "no host key is trusted.",
            ) from error
        if revoked:
            raise LinkError(
                f"The host key of {name}, {fingerprint}, is revoked in {path}.",
                "Do not log in; ask the site's support.",
            )


def _revokes(path: Path, blob: bytes) -> bool:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("too large")
    return _in_krl(data, blob) if data.startswith(_MAGIC) else _in_list(data, blob)


def _in_list(data: bytes, blob: bytes) -> bool:
    """Read a list of public keys, one a line.

    As in OpenSSH, a line that is no key makes the list unusable, unless the key stands before it.
    """
    for line in data.split(b"\n"):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        key = base64.b64decode(words[1] if len(words) > 1 else b"", validate=True)
        kind, _ = _string(key)
        if kind != words[0]:
            raise ValueError("not a key")
        if key == blob:
            return True
    return False


def _in_krl(data: bytes, blob: bytes) -> bool:
    """Read a KRL to its end, so that one which is cut short revokes every key."""
    rest = data[len(_MAGIC) :]
    if struct.unpack_from(">I", rest) != (1,):
        raise ValueError("unknown version of the format")
    struct.unpack_from(">QQQ", rest, 4)  # number, date, flags
    _, rest = _string(rest[4 + 3 * 8 :])
    _, rest = _string(rest)
    forms = {
        _KEYS: blob,
        _SHA1: hashlib.sha1(blob, usedforsecurity=False).digest(),
        _SHA256: hashlib.sha256(blob).digest(),
    }
    found = False
    while rest:
        kind, (section, rest) = rest[0], _string(rest[1:])
        if kind == _SIGNATURE or kind not in (*forms, _CERTIFICATES, _EXTENSION):
            raise ValueError("unknown section")
        if kind == _EXTENSION:
            _, flag = _string(section)
            if flag[0]:  # critical, and OpenSSH knows none
                raise ValueError("unknown extension")
        while kind in forms and section:
            entry, section = _string(section)
            found = found or entry == forms[kind]
    return found


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of `data` and what follows it."""
    (size,) = struct.unpack_from(">I", data)
    if len(data) < 4 + size:
        raise ValueError("ends too early")
    return data[4 : 4 + size], data[4 + size :]
