"""What known_hosts files say of a host, and how a new key is added to one.

Markers, patterns, hashed names: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

import base64
import fnmatch
import hashlib
import hmac
import os
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.remote.errors import LinkError
from lumitui.remote.ssh.config import Trust


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
    """`file:line`, for a person."""


def keys_in_files(trust: Trust, name: str) -> list[KnownKey]:
    """Return all known and revoked keys of the host `name`, and those that sign its key.

    Raises:
        LinkError: a file exists and cannot be read.
    """
    found: list[KnownKey] = []
    for path in (*trust.files, *trust.global_files):
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LinkError(
                f"The file of known host keys {path} cannot be read: {error.strerror}.",
                "Make it readable, or name another with UserKnownHostsFile.",
            ) from error
        found += keys_in_text(text, name, str(path))
    return found


def keys_in_text(text: str, name: str, source: str) -> Iterator[KnownKey]:
    """Return the lines of `text` that are about the host `name`; `source` is for a person."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
            (size,) = struct.unpack_from(">I", blob)
        except (ValueError, struct.error):
            continue  # as OpenSSH: a line without a valid key is about no host
        if blob[4 : 4 + size] == words[1].encode() and _names(words[0], name):
            yield KnownKey(HostKey(words[1], blob), marker, f"{source}:{number}")


def _names(patterns: str, name: str) -> bool:
    """Whether `patterns` (comma list, `*` `?` `!`, or one hashed name) match `name`."""
    if patterns.startswith("|1|"):
        try:
            salt, digest = (base64.b64decode(part) for part in patterns[3:].split("|"))
        except ValueError:
            return False
        return hmac.compare_digest(_hashed(name, salt), digest)
    matched = False
    for pattern in patterns.lower().split(","):
        # In these files brackets are part of a name ([host]:port), not a choice of characters.
        literal = pattern.lstrip("!").replace("[", "[[]")
        if fnmatch.fnmatchcase(name.lower(), literal):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _hashed(name: str, salt: bytes) -> bytes:
    return hmac.new(salt, name.lower().encode(), hashlib.sha1).digest()


def remember(trust: Trust, key: HostKey) -> None:
    """Append the key to the person's first known_hosts file, where one is configured."""
    if not trust.files:
        return
    path, name = trust.files[0], trust.name
    if trust.hash_names:
        salt = secrets.token_bytes(20)
        parts = (base64.b64encode(part).decode() for part in (salt, _hashed(name, salt)))
        name = "|1|" + "|".join(parts)
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
