"""Whether a host's key may be trusted: known_hosts, what the site publishes, the person.

Markers, patterns, hashed names: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Host certificates
(`@cert-authority`) are not used, since the SSH library offers none in its key exchange.
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
    """A public key as hosts show it."""

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
    """One line of a known_hosts file that speaks of the host."""

    key: HostKey
    marker: str
    """`@revoked`, `@cert-authority` (a key that signs hosts' keys), or nothing."""
    place: str
    """`file:line`, for a person."""


def known_keys(settings: HostConfig) -> list[KnownKey]:
    """All known and revoked keys of the host, and those that sign its key.

    Raises:
        LinkError: a file exists and cannot be read.
    """
    found: list[KnownKey] = []
    for path in (*settings.known_hosts, *settings.global_known_hosts):
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LinkError(
                f"The file of known host keys {path} cannot be read: {error.strerror}.",
                "Make it readable, or name another with UserKnownHostsFile.",
            ) from error
        found += _matching(text, settings.key_name, path)
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
            continue  # as OpenSSH: a line that is no key speaks of no host
        if _names(words[0], name):
            key = HostKey(words[1], blob)
            yield KnownKey(key, marker, f"{path}:{number}")


def _names(patterns: str, name: str) -> bool:
    """Whether `patterns` (comma list, `*` `?` `!`, or one hashed name) mean `name`."""
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


def wanted_types(settings: HostConfig, published: Mapping[str, str]) -> list[str]:
    """Key types to ask the host for first: those known, else those published."""
    known = [item.key.type for item in known_keys(settings) if not item.marker]
    return list(dict.fromkeys(known or published))


def check(settings: HostConfig, shown: HostKey, published: Mapping[str, str], ask: Ask) -> None:
    """Return when `shown` may be trusted; a key trusted for the first time is written down.

    Raises:
        LinkError: it is revoked, differs from the known or the published one, or the person
            did not say yes.
    """
    name, known = settings.key_name, known_keys(settings)
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
                "It is the one the site publishes now; forget the old one with: "
                if renewed
                else "Somebody may stand in between. Only if the site announces the new one, "
                "forget the old one with: "
            )
            + f"ssh-keygen -R {shlex.quote(name)} -f {shlex.quote(old.place.rpartition(':')[0])}",
        )
    if expected and expected != shown.fingerprint:
        raise LinkError(
            f"{name} shows the host key {shown.fingerprint}, but the site publishes {expected}.",
            "Somebody may stand in between, or the profile is old; compare with the site's pages.",
        )
    if not expected:
        _ask(settings, shown, ask, _remarks(known))
    _remember(settings, shown)


def _remarks(known: list[KnownKey]) -> list[str]:
    """What a person should know who is asked about a key that is not among `known`."""
    remarks = []
    for item in known:
        if item.marker == "@cert-authority":
            remarks.append(
                f"An authority vouches for this host ({item.place}, @cert-authority), but lumitui "
                "cannot check hosts' certificates: its own key is needed."
            )
        elif not item.marker:
            remarks.append(f"Another key of it is known: {item.key.type} ({item.place}).")
    return remarks


def _ask(settings: HostConfig, shown: HostKey, ask: Ask, remarks: list[str]) -> None:
    lines = [
        f"{settings.key_name} is not known yet. Its {shown.type} host key is",
        shown.fingerprint,
        *remarks,
        "Is it the one the site publishes? (yes/no)",
    ]
    answer = ask(Question("\n".join(lines), secret=False, kind="host-key"))
    if (answer or "").strip().lower() not in ("yes", "y"):
        words = f"The host key of {settings.key_name}, {shown.fingerprint}, was not accepted."
        raise LinkError(
            " ".join([words, *remarks]),
            "Compare it with the one the site publishes and connect again.",
        )


def _remember(settings: HostConfig, key: HostKey) -> None:
    """Append the key to the person's first known_hosts file; none is configured: do nothing."""
    if not settings.known_hosts:
        return
    path, name = settings.known_hosts[0], settings.key_name
    if settings.hash_names:
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
