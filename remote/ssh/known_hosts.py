"""Whether a host's key may be trusted: by known_hosts, by what the site publishes, by the person.

Markers, patterns, hashed names: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Host certificates
(`@cert-authority`) are not used, since paramiko offers none in its key exchange.
"""

import base64
import fnmatch
import hashlib
import hmac
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.errors import LinkError
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.prompts import Ask, Question


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


def known_keys(host: HostConfig) -> list[KnownKey]:
    """Return all known and revoked keys of the host, and those that sign its key.

    Raises:
        LinkError: a file exists and cannot be read.
    """
    found: list[KnownKey] = []
    for path in (*host.known_hosts, *host.global_known_hosts):
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LinkError(
                f"The file of known host keys {path} cannot be read: {error.strerror}.",
                "Make it readable, or name another with UserKnownHostsFile.",
            ) from error
        found += _matching(text, host.key_name, path)
    return found


def _matching(text: str, name: str, path: Path) -> Iterator[KnownKey]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except ValueError:
            continue  # as OpenSSH: a line without a valid key is about no host
        if _names(words[0], name):
            key = HostKey(words[1], blob)
            yield KnownKey(key, marker, f"{path}:{number}")


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


def wanted_types(host: HostConfig, published: Mapping[str, str]) -> list[str]:
    """Return the key types to request first: those known, else those published."""
    known = [item.key.type for item in known_keys(host) if not item.marker]
    return list(dict.fromkeys(known or published))


def check(host: HostConfig, shown: HostKey, published: Mapping[str, str], ask: Ask) -> None:
    """Return if `shown` may be trusted; a key that is trusted for the first time is recorded.

    Raises:
        LinkError: the key is revoked, differs from the known or the published one, or was not
            accepted by the person.
    """
    name, known = host.key_name, known_keys(host)
    for item in known:
        if item.marker == "@revoked" and item.key.blob == shown.blob:
            raise LinkError(
                f"The host key of {name}, {shown.fingerprint}, is revoked in {item.place}.",
                "Do not log in; ask the site's support.",
            )
    same_type = [item for item in known if not item.marker and item.key.type == shown.type]
    if any(item.key.blob == shown.blob for item in same_type):
        return
    expected = published.get(shown.type, "").rstrip("=")
    if same_type:
        old = same_type[0]
        renewed = expected == shown.fingerprint
        raise LinkError(
            f"The host key of {name} changed: {old.key.fingerprint} is known ({old.place}), "
            f"{shown.fingerprint} was shown.",
            (
                "The site now publishes the new key; remove the old one with: "
                if renewed
                else "Someone may be intercepting the connection. Only if the site has announced "
                "the new key, remove the old one with: "
            )
            + f"ssh-keygen -R {shlex.quote(name)} -f {shlex.quote(old.place.rpartition(':')[0])}",
        )
    if expected and expected != shown.fingerprint:
        raise LinkError(
            f"{name} shows the host key {shown.fingerprint}, but the site publishes {expected}.",
            "Someone may be intercepting the connection, or the profile is out of date: "
            "compare both with the site's web pages.",
        )
    if not expected:
        _ask(host, shown, ask, _remarks(known))
    _remember(host, shown)


def _remarks(known: list[KnownKey]) -> list[str]:
    """Return what a person should know before they accept a key that is not in `known`."""
    remarks = []
    for item in known:
        if item.marker == "@cert-authority":
            remarks.append(
                f"An authority vouches for this host ({item.place}, @cert-authority), but lumitui "
                "cannot check host certificates; it needs the host's own key."
            )
        elif not item.marker:
            remarks.append(f"Another key of this host is known: {item.key.type} ({item.place}).")
    return remarks


def _ask(host: HostConfig, shown: HostKey, ask: Ask, remarks: list[str]) -> None:
    lines = [
        f"{host.key_name} is not known yet. Its {shown.type} host key is",
        shown.fingerprint,
        *remarks,
        "Is this the key that the site publishes? (yes/no)",
    ]
    answer = ask(Question("\n".join(lines), secret=False, kind="host-key"))
    if (answer or "").strip().lower() not in ("yes", "y"):
        words = f"The host key of {host.key_name}, {shown.fingerprint}, was not accepted."
        raise LinkError(
            " ".join([words, *remarks]),
            "Compare it with the key that the site publishes, and connect again.",
        )


def _remember(host: HostConfig, key: HostKey) -> None:
    """Append the key to the person's first known_hosts file, where one is configured."""
    if not host.known_hosts:
        return
    path, name = host.known_hosts[0], host.key_name
    if host.hash_names:
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
