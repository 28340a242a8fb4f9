"""What known_hosts files say of a host, and how a new key is added to one.

Markers, patterns, hashed names: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Lines are read as OpenSSH
reads them (`hostkeys_foreach_file`, `sshkey_read`, `b64_pton`): only a line feed ends one, only
space and tab are blanks; whatever else Python takes for one belongs to a word.
"""

import base64
import fnmatch
import hashlib
import hmac
import os
import re
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Trust

_SALT = 20
"""Bytes of the salt of a hashed name: those of a SHA-1 digest."""


@dataclass(frozen=True)
class HostKey:
    """The public key of a host."""

    type: str
    """`ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256` ..."""
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as OpenSSH prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return "SHA256:" + digest.rstrip("=")


@dataclass(frozen=True)
class KnownKey:
    """One line of a known_hosts file that is about the host."""

    key: HostKey
    marker: str
    """`@revoked`, `@cert-authority` (a key that signs hosts' keys), or nothing."""
    place: str
    """`file:line`, for a user."""


def keys_in_files(trust: Trust, name: str) -> list[KnownKey]:
    """Return all known and revoked keys of the host `name`, and those that sign its key.

    Raises:
        LinkError: a file exists and cannot be read.
    """
    found: list[KnownKey] = []
    for path in (*trust.files, *trust.global_files):
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LinkError(
                f"The file of known host keys {path} cannot be read: {error.strerror}.",
                "Make it readable, or name another with UserKnownHostsFile.",
            ) from error
        found += _keys_in_lines(data, name, str(path))
    return found


def _keys_in_lines(data: bytes, name: str, source: str) -> Iterator[KnownKey]:
    """Return the lines of `data` that are about the host `name`; `source` is for a user."""
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.partition(b"\0")[0].strip(b" \t")  # in C a string ends at a NUL
        if not text or text.startswith(b"#"):
            continue
        words = re.split(rb"[ \t]+", text)
        marker = words.pop(0).decode("ascii", "replace") if words[0].startswith(b"@") else ""
        if len(words) < 3:
            continue
        try:
            blob = _decoded(words[2])
            (size,) = struct.unpack_from(">I", blob)
            kind = words[1].decode("ascii")
        except (ValueError, struct.error):
            continue  # as OpenSSH: a line without a valid key is about no host
        if blob[4 : 4 + size] == words[1] and _names(words[0], name):
            yield KnownKey(HostKey(kind, blob), marker, f"{source}:{number}")


def _decoded(word: bytes) -> bytes:
    """Return what a word in base64 says; a line end of Windows behind it is not part of it.

    Raises:
        ValueError: it is not base64, or not as an encoder writes it.
    """
    plain = word.translate(None, b" \t\n\v\f\r")
    found = base64.b64decode(plain, validate=True)
    if base64.b64encode(found) != plain:
        raise ValueError("not base64")
    return found


def _names(patterns: bytes, name: str) -> bool:
    """Whether `patterns` (comma list, `*` `?` `!`, or one hashed name) match `name`."""
    if patterns.startswith(b"|"):
        return _names_hashed(patterns, name)
    host, matched = name.encode().lower(), False
    for pattern in patterns.lower().split(b","):
        # In these files brackets are part of a name ([host]:port), not a choice of characters.
        literal = pattern.removeprefix(b"!").replace(b"[", b"[[]")
        if fnmatch.fnmatchcase(host, literal):
            if pattern.startswith(b"!"):
                return False
            matched = True
    return matched


def _names_hashed(pattern: bytes, name: str) -> bool:
    """Whether a hashed name is that of `name`, as OpenSSH would write it (`host_hash`)."""
    try:
        empty, version, word, _ = pattern.split(b"|")
        salt = _decoded(word)
    except ValueError:
        return False
    if empty or version != b"1" or len(salt) != _SALT:
        return False
    return hmac.compare_digest(_hashed_name(name, salt), pattern)


def _hashed_name(name: str, salt: bytes) -> bytes:
    digest = hmac.new(salt, name.lower().encode(), hashlib.sha1).digest()
    return b"|1|" + b"|".join(base64.b64encode(part) for part in (salt, digest))


def remember(trust: Trust, key: HostKey) -> None:
    """Append the key to the user's first known_hosts file, where one is configured."""
    if not trust.files:
        return
    path, name = trust.files[0], trust.name
    if trust.hash_names:
        name = _hashed_name(name, secrets.token_bytes(_SALT)).decode()
    line = f"{name} {key.type} {base64.b64encode(key.blob).decode()}\n".encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = path.read_bytes() if path.is_file() else b""
        if old and not old.endswith(b"\n"):
            line = b"\n" + line
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LinkError(
            f"The host key cannot be written to {path}: {error.strerror}.",
            "Make the file writable, or name another with UserKnownHostsFile.",
        ) from error
