"""One login at one host: keys first, then what the person types; nothing is tried twice."""

import base64
import binascii
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumitui.remote.errors import LinkError
from lumitui.remote.login import Ask, Question, Settings

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a connection or a request over it fails."""

_TRIES = 5  # sshd ends the connection at the sixth refused key (MaxAuthTries 6)


class LogIn:
    """The attempt to log in over one connection whose host key has been checked."""

    def __init__(self, host: Settings, ask: Ask, unlocked: dict[Path, paramiko.PKey]) -> None:
        """`unlocked` keeps keys whose passphrase was given, for the next connection."""
        self._host, self._ask, self._unlocked = host, ask, unlocked
        self._offered: list[str] = []
        self._unusable: list[str] = []
        self._prompts: list[str] = []
        self._declined = False
        self._trouble: Exception | None = None

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in.

        Raises:
            LinkError: refused; names what was offered.
        """
        ways = {
            "publickey": self._by_key,
            "keyboard-interactive": self._by_dialog,
            "password": self._by_password,
        }
        allowed: Sequence[str] = []
        try:
            allowed = _allowed(lambda: transport.auth_none(self._host.user)) or []
            for way, attempt in ways.items():
                if transport.is_authenticated() or (way == "password" and self._prompts):
                    break
                if way in allowed:
                    allowed = attempt(transport) or allowed
        except BROKEN as error:
            if self._trouble is None:
                self._trouble = error
        if self._trouble is not None and not isinstance(self._trouble, BROKEN):
            raise self._trouble  # from `ask` itself, which runs in the connection's thread
        if not transport.is_authenticated():
            raise self._refused(allowed)

    def _by_key(self, transport: paramiko.Transport) -> Sequence[str] | None:
        """Offer keys until one is taken; the methods still wanted after it, None: all refused."""
        for label, key in self._keys():
            if len(self._offered) == _TRIES:
                break
            self._offered.append(f"{label} ({_fingerprint(key)})")
            rest = _allowed(lambda key=key: transport.auth_publickey(self._host.user, key))  # type: ignore[misc]
            if rest is not None or transport.is_authenticated():
                return rest
        return None

    def _by_dialog(self, transport: paramiko.Transport) -> Sequence[str] | None:
        """Let the server ask what it wants (keyboard-interactive: passwords, one-time codes)."""

        def answer(title: str, text: str, prompts: list[tuple[str, bool]]) -> list[str]:
            heading = "\n".join(part.strip() for part in (title, text) if part.strip())
            return [self._answer(heading, prompt, shown) for prompt, shown in prompts]

        return _allowed(lambda: transport.auth_interactive(self._host.user, answer))

    def _by_password(self, transport: paramiko.Transport) -> Sequence[str] | None:
        word = self._answer("", f"Password of {self._host.address}:", False)
        if self._declined:
            return None
        return _allowed(lambda: transport.auth_password(self._host.user, word, fallback=False))

    def _answer(self, heading: str, prompt: str, shown: bool) -> str:
        """The person's answer; empty, which servers refuse, once declined or asked again."""
        if self._declined or self._trouble or prompt in self._prompts:
            return ""
        self._prompts.append(prompt)
        text = "\n".join(filter(None, (f"{self._host.address} asks:", heading, prompt.strip())))
        kind = "password" if "password" in prompt.lower() else "otp"
        try:
            word = self._ask(Question(text, secret=not shown, kind=kind))  # type: ignore[arg-type]
        except Exception as error:  # raised again by `authenticate`, in the caller's thread
            self._trouble = error
            return ""
        self._declined = word is None
        return word or ""

    def _keys(self) -> Iterator[tuple[str, paramiko.PKey]]:
        """Keys in the order they are offered: configured and open, the agent's others, locked."""
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
            key = self._unlocked.get(path) or self._load(path, None)
            if key is not None:
                yield from self._with_certificates(str(path), key, path)
            elif str(path) not in self._unusable:
                locked.append(path)
        if not self._host.identities_only:
            yield from ((f"{key.comment or 'a key'} (agent)", key) for key in held.values())
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
                self._unusable.append(str(certificate))
                continue
            if blob.key_type.startswith(key.get_name()):
                key.public_blob = blob
                yield f"{label} with {certificate.name}", key
        key.public_blob = None
        yield label, key

    def _load(self, path: Path, passphrase: bytes | None) -> paramiko.PKey | None:
        """The key in `path`; None: it is locked, or noted as unusable."""
        try:
            key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # wants bytes
        except TypeError:  # the cryptography library's word for a missing passphrase
            return None
        except (*BROKEN, ValueError, UnknownKeyType):
            self._unusable.append(str(path))
            return None
        return key

    def _unlock(self, path: Path) -> paramiko.PKey | None:
        if self._declined:
            return None
        question = Question(f"Passphrase of the key {path}:", secret=True, kind="passphrase")
        word = self._ask(question)
        self._declined = word is None
        key = self._load(path, word.encode()) if word else None
        if key is not None:
            self._unlocked[path] = key
        return key

    def _agent_keys(self) -> tuple[AgentKey, ...]:
        """The keys of the agent; none when there is no agent, or it does not answer."""
        place = self._host.agent
        if place == "none":
            return ()
        try:
            return paramiko.Agent().get_keys() if place is None else _AgentAt(place).get_keys()
        except BROKEN:
            self._unusable.append(f"the agent {place or ''}".strip())
            return ()

    def _refused(self, allowed: Sequence[str]) -> LinkError:
        """The sentence for a refused login."""
        offered = ", ".join(self._offered) or "no key"
        unusable = f" Not usable: {', '.join(self._unusable)}." if self._unusable else ""
        if self._declined:
            why = f"was not completed: a question was not answered; offered: {offered}"
            hint = "Register one of these public keys at the site, or connect again and answer."
        elif self._prompts:
            why, hint = "was refused: the answers were not accepted", "Connect again."
        else:
            why = f"was refused; offered: {offered}"
            hint = "Register one of these public keys at the site, or set User and IdentityFile."
        if self._trouble is not None:
            why += f" ({self._trouble})"
        elif allowed and not self._declined:
            hint += f" The site accepts: {', '.join(allowed)}."
        return LinkError(f"The login as {self._host.address} {why}.{unusable}", hint)


class _AgentAt(AgentSSH):
    """The agent behind a given socket (IdentityAgent); paramiko's own reads SSH_AUTH_SOCK only."""

    def __init__(self, place: str) -> None:
        super().__init__()
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(place)
        self._connect(conn)  # type: ignore[attr-defined]  # what paramiko.Agent calls as well


def _allowed(attempt: Callable[[], list[str]]) -> list[str] | None:
    """Methods the server wants next after an `attempt`; empty: none, None: refused with no list."""
    try:
        return attempt()
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    except paramiko.AuthenticationException as error:
        if "timeout" in str(error).lower() or "transport shut down" in str(error):
            raise
        return None


def _fingerprint(key: paramiko.PKey) -> str:
    return str(key.fingerprint)


def _public_blob(path: Path) -> bytes:
    """The public half of the key in `path`, from the file beside it; empty when there is none."""
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        return base64.b64decode(public.read_text("utf-8", "replace").split()[1])
    except (OSError, IndexError, binascii.Error):
        return b""
