"""One login at one host: keys first, then what the person types.

What a person types goes once to the server, and a second time only when the first was refused:
sites lock an account after a few wrong answers. A question that is declined ends the connection
instead of answering it with nothing, which would count as a wrong answer.
"""

import base64
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumitui.remote.errors import AnswerNeeded, LinkError
from lumitui.remote.ssh.certificates import read_certificate
from lumitui.remote.ssh.config import Settings
from lumitui.remote.ssh.prompts import Ask, Question, is_attended

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a connection or a request over it fails."""

_KEYS = 5  # sshd ends the connection at the sixth refused key (MaxAuthTries 6)
_ANSWERS = 2  # a wrong answer may be mended once
_CODE = re.compile(r"one.?time|otp|token|code|verif|factor|second", re.IGNORECASE)


@dataclass
class Kept:
    """What a person gave that serves again while the program runs. A one-time code never does."""

    keys: dict[Path, paramiko.PKey] = field(default_factory=dict)
    """Keys that a passphrase has opened."""
    passwords: dict[tuple[str, str], str] = field(default_factory=dict)
    """Passwords that were accepted, by address and prompt."""
    distrusted: bool = False
    """A kept password was refused: the site calls something a password that is not."""
    needs: str = ""
    """What the next login cannot do without: `code`, `password` ...; empty: nobody."""


class Unanswered(Exception):
    """A question was declined, or put too often."""


class LogIn:
    """The attempt to log in over one connection whose host key has been checked."""

    def __init__(self, host: Settings, ask: Ask, kept: Kept) -> None:
        """`kept` has what a person gave before, and gets what they give now."""
        self._host, self._ask, self._kept = host, ask, kept
        self._attended = is_attended()  # of this thread; some questions come in another
        self._keyring = self._keys()
        self._offered: list[str] = []
        self._unusable: list[str] = []
        self._objections: list[str] = []
        self._wanted: Sequence[str] = ()
        self._prompts: dict[str, int] = {}
        self._typed: dict[str, str] = {}
        self._told: list[str] = []
        self._reused = self._declined = False
        self._trouble: Exception | None = None

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in; what the next login will need of a person is noted in `kept`.

        Raises:
            AnswerNeeded: it cannot be done without a person, and none waits.
            LinkError: refused; names what was offered.
        """
        try:
            self._in_turn(transport)
        except Unanswered:
            pass
        except BROKEN as error:
            self._trouble = error
        if not transport.is_authenticated():
            if self._prompts:
                self._kept.needs = self._needs()
            raise self._refused()
        self._kept.needs = self._needs() if self._codes() else ""
        if not self._kept.distrusted:
            for prompt, word in self._typed.items():
                if _kind(prompt) == "password":
                    self._kept.passwords[self._host.address, prompt] = word

    def _in_turn(self, transport: paramiko.Transport) -> None:
        """Use what the server accepts, in our order, until nothing is left that may help."""
        ways = {
            "publickey": self._by_key,
            "keyboard-interactive": self._by_dialog,
            "password": self._by_password,
        }
        self._try(lambda: transport.auth_none(self._host.user))
        refused: set[str] = set()
        while not transport.is_authenticated():
            usable = [way for way in ways if way in self._wanted and way not in refused]
            if not usable or ("keyboard-interactive" in refused and self._prompts):
                return
            if not ways[usable[0]](transport):
                refused.add(usable[0])

    def _try(self, attempt: Callable[[], list[str]]) -> bool:
        """Whether the server took the `attempt`; what it wants next is noted."""
        try:
            self._wanted = attempt()
        except paramiko.BadAuthenticationType as error:
            self._wanted = list(error.allowed_types)
            return False
        except paramiko.AuthenticationException as error:
            if "timeout" in str(error).lower() or "transport shut down" in str(error):
                raise
            return False
        return True

    def _by_key(self, transport: paramiko.Transport) -> bool:
        """Offer keys, from where the last round ended, until one is taken."""
        for label, key in self._keyring:
            if len(self._offered) == _KEYS:
                break
            self._offered.append(f"{label} ({_fingerprint(key)})")
            if self._try(lambda key=key: transport.auth_publickey(self._host.user, key)):  # type: ignore[misc]
                return True
        return False

    def _by_dialog(self, transport: paramiko.Transport) -> bool:
        """Let the server ask what it wants (keyboard-interactive: passwords, one-time codes)."""
        if not self._attended and not self._has_password():
            raise self._absent("code")  # before the server begins to ask

        def answer(title: str, text: str, prompts: list[tuple[str, bool]]) -> list[str]:
            heading = [part.strip() for part in (title, text) if part.strip()]
            if not prompts:
                self._told += heading
            return [self._answer("\n".join(heading), prompt, shown) for prompt, shown in prompts]

        for _ in range(_ANSWERS):
            asked = len(self._prompts)
            if self._try(lambda: transport.auth_interactive(self._host.user, answer)):
                return True
            self._forget()
            if len(self._prompts) == asked == 0:
                break  # it has no question: sshd without PAM
        return False

    def _by_password(self, transport: paramiko.Transport) -> bool:
        if not self._attended and not self._has_password():
            raise self._absent("password")
        for _ in range(_ANSWERS):
            word = self._answer("", f"Password of {self._host.address}:", False)
            if self._try(
                lambda word=word: transport.auth_password(  # type: ignore[misc]
                    self._host.user, word, fallback=False
                )
            ):
                return True
            self._forget()
        return False

    def _answer(self, heading: str, prompt: str, shown: bool) -> str:
        """The answer to one question of the server, kept or the person's.

        Raises:
            Unanswered: declined, or asked once too often.
            AnswerNeeded: nobody is there to be asked.
        """
        times = self._prompts[prompt] = self._prompts.get(prompt, 0) + 1
        kept = self._kept.passwords.get((self._host.address, prompt))
        if kept is not None and times == 1:
            self._reused = True
            return kept
        kind = _kind(prompt)
        if not self._attended:
            raise self._absent("password" if kind == "password" else "code")
        if times > _ANSWERS:
            raise Unanswered
        lines = [f"{self._host.address} asks:", *self._told, heading, prompt.strip()]
        if times > 1:
            lines.insert(1, "The last answer was not accepted; this is the last try.")
        self._told.clear()
        word = self._ask(Question("\n".join(filter(None, lines)), secret=not shown, kind=kind))
        if word is None:
            self._declined = True
            raise Unanswered
        self._typed[prompt] = word
        return word

    def _has_password(self) -> bool:
        return any(address == self._host.address for address, _ in self._kept.passwords)

    def _forget(self) -> None:
        """A refusal: a kept password is not right, or not one; none is kept any more."""
        if self._reused:
            self._kept.passwords.clear()
            self._kept.distrusted, self._reused = True, False

    def _codes(self) -> bool:
        """Whether something was typed that a next login will ask for again."""
        return any(self._kept.distrusted or _kind(prompt) != "password" for prompt in self._typed)

    def _needs(self) -> str:
        return "code" if any(_kind(prompt) == "otp" for prompt in self._prompts) else "password"

    def _absent(self, what: str) -> AnswerNeeded:
        self._kept.needs = what
        return answer_needed(what)

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
            key = self._kept.keys.get(path) or self._load(path, None)
            if key is not None:
                yield from self._with_certificates(str(path), key, path)
            elif str(path) not in self._unusable:
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
                self._unusable.append(str(certificate))
                continue
            if blob.key_type.startswith(key.get_name()):
                key.public_blob = blob
                self._examine(str(certificate), blob.key_blob)
                yield f"{label} with {certificate.name}", key
        key.public_blob = None
        yield label, key

    def _examine(self, name: str, blob: bytes) -> None:
        """Note why the certificate in `blob` will not do; the server judges by its own clock."""
        found = read_certificate(blob)
        if found and (objection := found.objection(self._host.user, time.time())):
            self._objections.append(f"the certificate {name} {objection}")

    def _load(self, path: Path, passphrase: bytes | None) -> paramiko.PKey | None:
        """The key in `path`; None: it is locked, or noted as unusable."""
        try:
            key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # wants bytes
        except TypeError:  # the cryptography library's word for a missing passphrase
            return None
        except (*BROKEN, ValueError, UnknownKeyType, UnsupportedAlgorithm):
            self._unusable.append(str(path))
            return None
        return key

    def _unlock(self, path: Path) -> paramiko.PKey | None:
        """The key in `path`, opened by the person; None: not by two passphrases."""
        if not self._attended:
            raise self._absent("passphrase")
        text = f"Passphrase of the key {path}:"
        for again in ("", "That did not open it; this is the last try.\n"):
            word = self._ask(Question(again + text, secret=True, kind="passphrase"))
            if word is None:
                self._declined = True
                self._kept.needs = "passphrase"
                raise Unanswered
            key = self._load(path, word.encode())
            if key is not None:
                self._kept.keys[path] = key
                return key
        self._unusable.append(f"{path}, which neither passphrase opened")
        self._kept.needs = "passphrase"
        return None

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

    def _refused(self) -> LinkError:
        """The sentence for a login that did not come about."""
        offered = ", ".join(self._offered) or "no key"
        unusable = f" Not usable: {', '.join(self._unusable)}." if self._unusable else ""
        accepts = f" The site accepts: {', '.join(self._wanted)}." if self._wanted else ""
        if self._declined:
            why = f"was not completed: a question was not answered; offered: {offered}"
            hint = "Register one of these public keys at the site, or connect again and answer."
        elif self._trouble is not None:
            words = str(self._trouble)
            if not words or "shut down" in words:  # how the library puts it
                words = "the site ended the connection"
            why = f"was not completed: {words}"
            hint = "Connect again."
            if self._prompts:
                hint += " A site waits a minute or two for an answer, no longer."
            elif self._offered:
                hint = (
                    "It may allow fewer tries than there are keys: name the right one with "
                    "IdentityFile, and set IdentitiesOnly."
                )
        elif self._prompts:
            why = "was refused: the answers were not accepted"
            hint = "Connect again, but not often: sites lock an account after a few wrong answers."
        elif self._objections:
            why = f"was refused: {'; '.join(self._objections)}"
            hint = "Get a new certificate where the site gives them out, and connect again."
        else:
            why = f"was refused; offered: {offered}"
            hint = "Register one of these public keys at the site, or set User and IdentityFile."
            hint += accepts
        said = f" It said: {' '.join(self._told)}." if self._told else ""
        return LinkError(f"The login as {self._host.address} {why}.{said}{unusable}", hint)


def answer_needed(what: str) -> AnswerNeeded:
    """The error of a login that waits for a person; `what` is what only they have."""
    return AnswerNeeded(
        f"Needs your {what}.", "Press r in the list of runs, or run `lumitui status`."
    )


def _kind(prompt: str) -> Literal["password", "otp"]:
    """What a server asks for: a password may serve again, anything else is for once."""
    is_password = "password" in prompt.lower() and not _CODE.search(prompt)
    return "password" if is_password else "otp"


class _AgentAt(AgentSSH):
    """The agent behind a given socket (IdentityAgent); paramiko's own reads SSH_AUTH_SOCK only."""

    def __init__(self, place: str) -> None:
        super().__init__()
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(place)
        self._connect(conn)  # type: ignore[attr-defined]  # what paramiko.Agent calls as well


def _fingerprint(key: paramiko.PKey) -> str:
    return str(key.fingerprint)


def _public_blob(path: Path) -> bytes:
    """The public half of the key in `path`, from the file beside it; empty when there is none."""
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        return base64.b64decode(public.read_text("utf-8", "replace").split()[1])
    except (OSError, IndexError, ValueError):
        return b""
