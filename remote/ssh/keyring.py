"""The keys of one login: files, the agent and certificates, in the order they are offered."""

import base64
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumitui.remote.ssh.certificates import read_certificate
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.dialog import Dialog, Kept, Unanswered
from lumitui.remote.ssh.link import BROKEN
from lumitui.remote.ssh.prompts import Question


class Keyring:
    """The keys for `host`, and why some of them are of no use."""

    def __init__(self, host: HostConfig, dialog: Dialog, kept: Kept) -> None:
        """Ask for passphrases in `dialog`; `kept` has the keys that one has opened."""
        self._host, self._dialog, self._kept = host, dialog, kept
        self.unusable: list[str] = []
        """Keys, certificates and agents that cannot be used, for a person."""
        self.objections: list[str] = []
        """What is wrong with certificates, as parts of a sentence."""

    def keys(self) -> Iterator[tuple[str, paramiko.PKey]]:
        """Yield label and key: configured and open, the agent's others, locked ones last.

        Raises:
            AnswerNeeded: a locked key is next, and no person waits.
            Unanswered: the person declined to give its passphrase.
        """
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
            key = self._kept.keys.get(path) or self._load(path, None)
            if key is not None:
                yield from self._with_certificates(str(path), key, path)
            elif str(path) not in self.unusable:
                locked.append(path)
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
        """Note what is wrong with the certificate in `blob`; it is offered nevertheless.

        The server decides, and by its own clock.
        """
        found = read_certificate(blob)
        if found and (objection := found.objection(self._host.user, time.time())):
            self.objections.append(f"the certificate {name} {objection}")

    def _load(self, path: Path, passphrase: bytes | None) -> paramiko.PKey | None:
        """Return the key in `path`; None: it is locked, or noted as unusable."""
        try:
            key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # wants bytes
        except TypeError:  # how the cryptography library reports a missing passphrase
            return None
        except (*BROKEN, ValueError, UnknownKeyType, UnsupportedAlgorithm):
            self.unusable.append(str(path))
            return None
        return key

    def _unlock(self, path: Path) -> paramiko.PKey | None:
        """Return the key in `path`, opened by the person; None: two passphrases did not open it."""
        if not self._dialog.attended:
            raise self._dialog.absent("passphrase")
        text = f"Passphrase of the key {path}:"
        for again in ("", "That did not open it; this is the last try.\n"):
            try:
                word = self._dialog.put(Question(again + text, secret=True, kind="passphrase"))
            except Unanswered:
                self._kept.needs = "passphrase"
                raise
            key = self._load(path, word.encode())
            if key is not None:
                self._kept.keys[path] = key
                return key
        self.unusable.append(f"{path}, which neither passphrase opened")
        self._kept.needs = "passphrase"
        return None

    def _agent_keys(self) -> tuple[AgentKey, ...]:
        """Return the agent's keys; none where there is no agent or it does not answer."""
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
    """Return the public half of the key in `path`, from the file beside it; empty: no such file."""
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        return base64.b64decode(public.read_text("utf-8", "replace").split()[1])
    except (OSError, IndexError, ValueError):
        return b""
