"""The keys of one login, from files, the agent and certificates, in the order to offer them."""

import base64
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob

from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.dialog import ANSWERS, Dialog, Kept, Unanswered
from lumitui.remote.ssh.key_files import Locked, Unusable, load_key
from lumitui.remote.ssh.link import BROKEN
from lumitui.remote.ssh.prompts import LoginQuestion


class Keyring:
    """The keys for `host`, and why some are unusable."""

    def __init__(self, host: HostConfig, dialog: Dialog, kept: Kept) -> None:
        """Ask for passphrases in `dialog`; `kept` has unlocked keys."""
        self._host, self._dialog, self._kept = host, dialog, kept
        self.unusable: list[str] = []
        """Unusable keys, certificates and agents, as texts for the user."""
        self.objections: list[str] = []
        """Problems of certificates, as parts of a sentence."""

    def keys(self) -> Iterator[tuple[str, paramiko.PKey]]:
        """Yield the label and the key of those that the configuration allows.

        First come configured and unlocked keys, then the agent's others, then locked ones.

        Raises:
            AnswerNeeded: a locked key is next, and no user is waiting.
            Unanswered: the user declined to enter its passphrase.
        """
        for label, key in self._all_keys():
            kind = key.public_blob.key_type if key.public_blob else key.get_name()
            bits = _rsa_bits(key.asbytes())
            if not signatures(kind, self._host.algorithms.public_keys):
                self.unusable.append(f"{label}, whose type PubkeyAcceptedAlgorithms excludes")
            elif bits and bits < self._host.algorithms.rsa_bits:
                self.unusable.append(f"{label}, which is shorter than RequiredRSASize")
            else:
                yield label, key

    def _all_keys(self) -> Iterator[tuple[str, paramiko.PKey]]:
        held = {key.asbytes(): key for key in self._agent_keys()}
        files: list[Path] = []
        for path in dict.fromkeys(self._host.identities):
            blob = _public_blob(path)
            if blob in held:
                yield from self._with_certificates(f"{path} (agent)", held.pop(blob), path)
            elif path.is_file() and path.suffix != ".pub":
                files.append(path)
        locked = []
        for path in files:
            try:
                key = self._kept.keys.get(path) or self._load(path)
            except Locked:
                locked.append(path)
                continue
            if key is not None:
                yield from self._with_certificates(str(path), key, path)
        if not self._host.identities_only:
            for key in held.values():
                self._examine(f"{key.comment or 'a key'} of the agent", key.blob)
                yield f"{key.comment or 'a key'} (agent)", key
        for path in locked:
            key = self._unlock(path)
            if key is not None:
                yield from self._with_certificates(str(path), key, path)

    def _with_certificates(
        self, label: str, key: paramiko.PKey, path: Path
    ) -> Iterator[tuple[str, paramiko.PKey]]:
        beside = Path(f"{path}-cert.pub")
        for certificate in dict.fromkeys((*self._host.certificates, beside)):
            if not certificate.is_file():
                continue
            try:
                blob = PublicBlob.from_file(certificate)
            except (*BROKEN, ValueError):
                self.unusable.append(str(certificate))
                continue
            if blob.key_type.startswith(key.get_name()):
                key.public_blob = blob
                self._examine(str(certificate), blob.key_blob)
                yield f"{label} with {certificate.name}", key
        key.public_blob = None
        yield label, key

    def _examine(self, name: str, blob: bytes) -> None:
        """Note a problem of the certificate in `blob`; the key is offered anyway.

        The server decides by its own clock.
        """
        if objection := certificate_objection(blob, self._host.user):
            self.objections.append(f"the certificate {name} {objection}")

    def _load(self, path: Path) -> paramiko.PKey | None:
        """Return the key in `path`; None if it is unusable, which is noted.

        Raises:
            Locked: it has a passphrase.
        """
        try:
            return load_key(path, None)
        except Unusable as error:
            self.unusable.append(f"{path} ({error})" if str(error) else str(path))
            return None

    def _unlock(self, path: Path) -> paramiko.PKey | None:
        """Return the key in `path`, unlocked by the user; None if no passphrase was right."""
        if self._host.batch or not self._host.prompts:
            self.unusable.append(f"{path}, since the configuration forbids asking its passphrase")
            return None
        if not self._dialog.attended:
            raise self._dialog.absent("passphrase")
        text, tries = f"Passphrase of the key {path}:", min(ANSWERS, self._host.prompts)
        for number in range(tries):
            again = "That passphrase was wrong; this is the last attempt.\n" if number else ""
            try:
                word = self._dialog.put(LoginQuestion(again + text, secret=True, kind="passphrase"))
            except Unanswered:
                self._kept.needs = "passphrase"
                raise
            with suppress(Locked):
                self._kept.keys[path] = load_key(path, word.encode())
                return self._kept.keys[path]
        self.unusable.append(f"{path}, since both passphrases were wrong")
        self._kept.needs = "passphrase"
        return None

    def _agent_keys(self) -> tuple[AgentKey, ...]:
        """Return the agent's keys; () if there is no agent or it does not answer."""
        place = self._host.agent
        if place == "none":
            return ()
        try:
            return paramiko.Agent().get_keys() if place is None else _AgentAt(place).get_keys()
        except BROKEN:
            self.unusable.append(f"the agent {place or ''}".strip())
            return ()


class _AgentAt(AgentSSH):
    """The agent behind a given socket (IdentityAgent); paramiko's own reads SSH_AUTH_SOCK only."""

    def __init__(self, place: str) -> None:
        super().__init__()
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(place)
        self._connect(conn)  # type: ignore[attr-defined]  # what paramiko.Agent calls too


def _public_blob(path: Path) -> bytes:
    """Return the public key of the key in `path`, from the file beside it; b"" without one."""
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        return base64.b64decode(public.read_text("utf-8", "replace").split()[1])
    except (OSError, IndexError, ValueError):
        return b""


def signatures(kind: str, allowed: Sequence[str]) -> list[str]:
    """Return the signatures in `allowed` that a key or certificate of the type `kind` can make.

    An RSA key can make two; its type's name stands for SHA-1 and does not count.
    """
    if not kind.startswith("ssh-rsa"):
        return [name for name in allowed if name == kind]
    end = kind.removeprefix("ssh-rsa")
    return [name for name in allowed if name in (f"rsa-sha2-512{end}", f"rsa-sha2-256{end}")]


def certificate_objection(blob: bytes, user: str) -> str:
    """Return why a server will refuse the certificate in `blob`, as the end of a sentence.

    "" if there is no reason, or it is not a certificate. Unlike cryptography 50, `ssh-keygen` also
    reads certificates for hardware keys and by authorities on one.
    """
    kind = blob[4 : 4 + int.from_bytes(blob[:4], "big")]
    if b"-cert-" not in kind:
        return ""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            ["ssh-keygen", "-L", "-f", "-"],
            input=kind + b" " + base64.b64encode(blob) + b"\n",
            capture_output=True,
            timeout=20,
        )
        text, now = done.stdout.decode("utf-8", "replace"), time.strftime("%Y-%m-%dT%H:%M:%S")
        valid = re.search(r"Valid:(?:.*(?:from|after) (\S+))?(?:.*(?:to|before) (\S+))?", text)
        names = re.search(r"Principals: *\n((?: +\S.*\n)*?) +Critical", text)
        after, before = valid.groups() if valid else (None, None)
        if before and now >= before:
            return f"expired on {before[:16].replace('T', ' ')}"
        if after and now < after:
            return f"is not valid before {after[:16].replace('T', ' ')}"
        if names and user not in (users := [line.strip() for line in names[1].splitlines()]):
            return f"is for {', '.join(users)}, not for {user}"
    return ""


def _rsa_bits(blob: bytes) -> int:
    """Return the length of an RSA key or of a certificate for one; 0 for another type.

    Format: RFC 4253, 6.6: name, exponent, modulus; a certificate has a nonce after its name.
    """
    fields, rest = list[bytes](), blob
    while len(rest) >= 4 and len(fields) < 4:
        (size,) = struct.unpack_from(">I", rest)
        fields.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    place = {b"ssh-rsa": 2, b"ssh-rsa-cert-v01@openssh.com": 3}.get(fields[0] if fields else b"")
    if place is None or place >= len(fields):
        return 0
    return int.from_bytes(fields[place], "big").bit_length()
