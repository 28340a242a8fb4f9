"""The keys of one login, from files, the agent and certificates, in the order to offer them."""

import base64
import io
import os
import re
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.dialog import ANSWERS, Dialog, Kept, Unanswered
from lumitui.remote.ssh.link import BROKEN
from lumitui.remote.ssh.prompts import LoginQuestion

_PKCS8 = (b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
_MOST_BYTES = 1 << 20


class Unusable(Exception):
    """The file has no usable key; the text is the reason, "" if it is not a key."""


class Locked(Exception):
    """The key needs a passphrase, or the passphrase is wrong."""


def load_key(path: Path, passphrase: bytes | None) -> paramiko.PKey:
    """Return the private key in the file `path`.

    Raises:
        Locked: the passphrase is missing or wrong.
        Unusable: it is not a key of a supported type, or other users may read the file.
    """
    _check_mode(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
        if any(head in data for head in _PKCS8):
            return _pkcs8(data, passphrase)
        return paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # wants bytes
    except TypeError as error:  # cryptography raises it for a missing passphrase
        raise Locked from error
    except OSError as error:
        raise Unusable(error.strerror or "") from error
    except (*BROKEN, ValueError, UnknownKeyType, UnsupportedAlgorithm) as error:
        if passphrase is not None:
            raise Locked from error
        raise Unusable("") from error


def _check_mode(path: Path) -> None:
    """Refuse a key that other users can read, as OpenSSH does (sshkey_perm_ok)."""
    try:
        status = path.stat()
    except OSError as error:
        raise Unusable(error.strerror or "") from error
    if not stat.S_ISREG(status.st_mode):
        raise Unusable("it is not a file")
    if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
        raise Unusable("other users may read it: run `chmod 600` on it")


def _pkcs8(data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    """Return the key in a PKCS#8 file, converted to OpenSSH's form, which paramiko reads."""
    key = serialization.load_pem_private_key(data, passphrase)
    kinds = (
        (rsa.RSAPrivateKey, paramiko.RSAKey),
        (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
        (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
    )
    for kind, reader in kinds:
        if isinstance(key, kind):
            text = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            ).decode()
            return reader.from_private_key(io.StringIO(text))
    raise UnsupportedAlgorithm("not an SSH key")


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
        """Yield the label and the key of each key that the configuration allows.

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
            elif path.suffix != ".pub" and _is_there(path):
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
                self._examine(f"{key.comment or 'a key'} in ssh-agent", key.blob)
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
            if not os.path.isfile(certificate):
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
        """Return the key in `path`, or None and record why; Locked if it has a passphrase."""
        try:
            return load_key(path, None)
        except Unusable as error:
            self.unusable.append(f"{path} ({error})" if str(error) else str(path))
            return None

    def _unlock(self, path: Path) -> paramiko.PKey | None:
        """Return the key in `path`, unlocked by the user; None if no passphrase was right."""
        if self._host.batch or not self._host.prompts:
            self.unusable.append(
                f"{path}, because the configuration forbids asking for its passphrase"
            )
            return None
        if not self._dialog.attended:
            raise self._dialog.absent("passphrase")
        text, tries = f"Passphrase for the key {path}:", min(ANSWERS, self._host.prompts)
        for number in range(tries):
            again = "That passphrase was wrong; this is your last attempt.\n" if number else ""
            try:
                word = self._dialog.put(LoginQuestion(again + text, secret=True, kind="passphrase"))
            except Unanswered:
                self._kept.needs = "passphrase"
                raise
            with suppress(Locked):
                self._kept.keys[path] = load_key(path, word.encode())
                return self._kept.keys[path]
        self.unusable.append(f"{path}, because both passphrases were wrong")
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


def _is_there(path: Path) -> bool:
    """Whether `path` exists, or the reason why it cannot be used is one to report."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _public_blob(path: Path) -> bytes:
    """Return the public key of the private key in `path`, from the file beside it; b"" if none."""
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
    reads certificates for hardware keys and those signed by one.
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
