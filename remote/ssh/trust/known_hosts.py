"""Reads the keys of a host in known_hosts files, and adds new ones.

Markers, patterns, hashed names: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Lines are parsed like
OpenSSH's (`hostkeys_foreach_file`, `sshkey_read`, `b64_pton`): only a line feed ends a line, and
only space and tab are blanks; Python's other blanks belong to a word.
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
"""Bytes of the salt of a hashed name, as many as a SHA-1 digest has."""


@dataclass(frozen=True)
class HostKey:
    """The public key of a host."""

    type: str
    """`ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256` ..."""
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, in OpenSSH's form."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return "SHA256:" + digest.rstrip("=")


@dataclass(frozen=True)
class KnownKey:
    """A line of a known_hosts file for the host."""

    key: HostKey
    marker: str
    """`@revoked`, `@cert-authority` (a key that signs hosts' keys), or nothing."""
    place: str
    """`file:line`, for messages."""


def keys_in_files(trust: Trust, name: str) -> list[KnownKey]:
    """Return all known and revoked keys of the host `name`, and those that sign its key.

    Raises:
        LinkError: a file exists but cannot be read.
    """
    known: list[KnownKey] = []
    for path in (*trust.files, *trust.global_files):
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LinkError(
                f"Cannot read the known host keys in {path}: {error.strerror}.",
                "Make it readable, or choose another file with UserKnownHostsFile.",
            ) from error
        known += _keys_in_lines(data, name, str(path))
    return known


def _keys_in_lines(data: bytes, name: str, source: str) -> Iterator[KnownKey]:
    """Yield the keys in `data` for the host `name`; `source` is for messages."""
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
            continue  # like OpenSSH, ignore a line without a valid key
        if blob[4 : 4 + size] == words[1] and _names(words[0], name):
            yield KnownKey(HostKey(kind, blob), marker, f"{source}:{number}")


def _decoded(word: bytes) -> bytes:
    """Decode a word in base64, with or without a Windows newline; ValueError if it is none."""
    plain = word.translate(None, b" \t\n\v\f\r")
    data = base64.b64decode(plain, validate=True)
    if base64.b64encode(data) != plain:
        raise ValueError("not base64")
    return data


def _names(patterns: bytes, name: str) -> bool:
    """Return whether `patterns` (comma list, `*` `?` `!`, or one hashed name) match `name`."""
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
    """Return whether a hashed name is OpenSSH's hash of `name` (`host_hash`)."""
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
    """Append the key to the user's first known_hosts file, if one is configured."""
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
            f"Cannot add the host key to {path}: {error.strerror}.",
            "Make the file writable, or choose another file with UserKnownHostsFile.",
        ) from error
