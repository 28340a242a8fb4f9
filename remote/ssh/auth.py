"""One login at one host: keys first, then the user's answers."""

import os
from collections.abc import Callable, Sequence

import paramiko

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.dialog import Dialog, Kept, Unanswered
from lumitui.remote.ssh.keyring import Keyring, signatures
from lumitui.remote.ssh.link import BROKEN
from lumitui.remote.ssh.prompts import Ask

METHODS = frozenset({"publickey", "keyboard-interactive", "password"})
"""The supported ways to log in."""
_KEYS = 5  # sshd ends the connection at the sixth refused key (MaxAuthTries 6)


class LogIn:
    """One login over a connection whose host key has been checked."""

    def __init__(self, host: HostConfig, ask: Ask, kept: Kept) -> None:
        """Reuse the user's earlier answers from `kept`, and add the new ones."""
        self._host = host
        self._dialog = Dialog(host, ask, kept)
        self._keyring = Keyring(host, self._dialog, kept)
        self._keys = self._keyring.keys()
        self._offered: list[str] = []
        self._accepted: Sequence[str] = ()
        """The methods that the server accepts next."""
        self._error: Exception | None = None

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in, and record in `kept` what the next login needs from the user.

        Raises:
            AnswerNeeded: the login needs a user, and none is waiting.
            LinkError: the server refused; the message lists what was offered.
        """
        try:
            self._in_turn(transport)
        except Unanswered:
            pass
        except BROKEN as error:
            self._error = error
        if not transport.is_authenticated():
            self._dialog.failed()
            raise self._refused()
        self._dialog.accepted()

    def _in_turn(self, transport: paramiko.Transport) -> None:
        """Try the methods that the server accepts, in the configured order."""
        ways = {
            "publickey": self._by_key,
            "keyboard-interactive": self._by_dialog,
            "password": self._by_password,
        }
        methods = {name: ways[name] for name in self._host.methods}
        self._try(lambda: transport.auth_none(self._host.user))
        refused: set[str] = set()
        while not transport.is_authenticated():
            usable = [name for name in methods if name in self._accepted and name not in refused]
            if not usable or ("keyboard-interactive" in refused and self._dialog.questions):
                return
            if not methods[usable[0]](transport):
                refused.add(usable[0])

    def _try(self, attempt: Callable[[], list[str]]) -> bool:
        """Return whether the server accepted the `attempt`; record its next methods."""
        try:
            self._accepted = attempt()
        except paramiko.BadAuthenticationType as error:
            self._accepted = list(error.allowed_types)
            return False
        except paramiko.AuthenticationException as error:
            if "timeout" in str(error).lower() or "transport shut down" in str(error):
                raise
            return False
        return True

    def _by_key(self, transport: paramiko.Transport) -> bool:
        """Offer the next keys until the server accepts one."""
        for label, key in self._keys:
            if len(self._offered) == _KEYS:
                break
            self._offered.append(f"{label} ({key.fingerprint})")
            self._limit_signatures(transport, key)
            if self._try(lambda key=key: transport.auth_publickey(self._host.user, key)):  # type: ignore[misc]
                return True
        return False

    def _limit_signatures(self, transport: paramiko.Transport, key: paramiko.PKey) -> None:
        """Let an RSA key sign only as configured; other keys have one way to sign."""
        kind = key.public_blob.key_type if key.public_blob else key.get_name()
        allowed = signatures(kind, self._host.algorithms.public_keys)
        plain = [name.removesuffix("-cert-v01@openssh.com") for name in allowed]
        rsa = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
        transport.disabled_algorithms = {"pubkeys": [name for name in rsa if name not in plain]}

    def _by_dialog(self, transport: paramiko.Transport) -> bool:
        """Answer the server's questions (keyboard-interactive: passwords, one-time codes)."""
        dialog = self._dialog
        dialog.expect("code")  # before the server's first prompt

        def answer(title: str, text: str, prompts: list[tuple[str, bool]]) -> list[str]:
            heading = [part.strip() for part in (title, text) if part.strip()]
            if not prompts:
                dialog.messages += heading
            return [dialog.answer("\n".join(heading), prompt, shown) for prompt, shown in prompts]

        for _ in range(dialog.tries):
            asked = dialog.questions
            if self._try(lambda: transport.auth_interactive(self._host.user, answer)):
                return True
            dialog.wrong()
            if dialog.questions == asked == 0:
                break  # sshd without PAM sends no prompts
        return False

    def _by_password(self, transport: paramiko.Transport) -> bool:
        self._dialog.expect("password")
        for _ in range(self._dialog.tries):
            word = self._dialog.answer("", f"Password for {self._host.address}:", False)
            if self._try(
                lambda word=word: transport.auth_password(  # type: ignore[misc]
                    self._host.user, word, fallback=False
                )
            ):
                return True
            self._dialog.wrong()
        return False

    def _refused(self) -> LinkError:
        offered = ", ".join(self._offered) or "no key"
        if self._dialog.declined:
            why = f"was not completed: you did not answer a question; offered: {offered}"
            hint = "Register one of these public keys at the site, or connect again and answer."
        elif self._error is not None:
            why, hint = self._broken_off(self._error)
        elif self._dialog.questions:
            why = "was refused: the answers were not accepted"
            hint = (
                "Connect again, but not often: sites lock an account after several wrong answers."
            )
        elif self._keyring.objections:
            why = f"was refused: {'; '.join(self._keyring.objections)}"
            hint = self._host.renew or ("Get a new certificate from your site, and connect again.")
        else:
            why = f"was refused; offered: {offered}"
            hint = "Register one of these public keys at the site, or set User and IdentityFile."
            files = self._host.identities
            if not self._offered and not any(map(os.path.isfile, files)):
                names = ", ".join(map(str, files[:3]))
                hint = f"No key was found at {names}: set IdentityFile to your key."
            hint += f" The site accepts: {', '.join(self._accepted)}." if self._accepted else ""
            hint += f" {self._host.renew}" if self._host.renew else ""
        off = [name for name in self._accepted if name in METHODS.difference(self._host.methods)]
        hint += f" Your ssh configuration disables: {', '.join(off)}." if off else ""
        messages, unusable = " ".join(self._dialog.messages), ", ".join(self._keyring.unusable)
        details = f" The site's message: {messages}." if messages else ""
        details += f" Not usable: {unusable}." if unusable else ""
        return LinkError(f"The login as {self._host.address} {why}.{details}", hint)

    def _broken_off(self, error: Exception) -> tuple[str, str]:
        """Return why a connection ended during the login, and a hint."""
        words = str(error)
        if not words or "shut down" in words:  # paramiko's words
            words = "the site ended the connection"
        hint = "Connect again."
        if self._dialog.questions:
            hint += " Sites wait only a minute or two for an answer."
        elif self._offered:
            hint = (
                "The site may allow fewer attempts than you have keys: set IdentityFile to the "
                "right key, and set IdentitiesOnly."
            )
        return f"was not completed: {words}", hint
