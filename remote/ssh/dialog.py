"""The questions of one login, the user's answers, and which of them are used again.

An answer goes to the server once, and a second time only when the first was refused: sites lock an
account after a few wrong answers. A question that is declined ends the login; an empty answer
would count as a wrong one.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import paramiko

from lumitui.remote.site.errors import AnswerNeeded
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.prompts import Ask, LoginQuestion, answer_needed, is_attended

ANSWERS = 2
"""How often one question is answered: a wrong answer may be corrected once."""
_CODE = re.compile(r"one.?time|otp|token|code|verif|factor|second", re.IGNORECASE)


@dataclass
class Kept:
    """What a user gave that is used again while the program runs. A one-time code never is."""

    keys: dict[Path, paramiko.PKey] = field(default_factory=dict)
    """Keys that a passphrase has opened."""
    passwords: dict[tuple[str, str], str] = field(default_factory=dict)
    """Passwords that were accepted, by address and prompt."""
    distrusted: bool = False
    """A kept password was refused: what the site calls a password changes from login to login."""
    needs: str = ""
    """What the next login needs from a user: `code`, `password` ...; empty: nothing."""


class Unanswered(Exception):
    """A question was declined, or asked too often."""


class Dialog:
    """The questions of one login at `host`; answers are taken from `kept` where possible."""

    def __init__(self, host: HostConfig, ask: Ask, kept: Kept) -> None:
        """Put new questions to `ask`; what a user gives is added to `kept`."""
        self.attended = is_attended()
        """Whether a user waits: asked here, since some questions come in another thread."""
        self.tries = min(ANSWERS, host.prompts)
        """How often one question is put (NumberOfPasswordPrompts)."""
        self.declined = False
        self.messages: list[str] = []
        """What the server said without a question; shown with the next question."""
        self._host, self._ask, self._kept = host, ask, kept
        self._asked: dict[str, int] = {}
        self._typed: dict[str, str] = {}
        self._reused = False

    @property
    def questions(self) -> int:
        """How many different questions the server has asked."""
        return len(self._asked)

    def put(self, question: LoginQuestion) -> str:
        """Return the user's answer.

        Raises:
            Unanswered: they declined.
        """
        word = self._ask(question)
        if word is None:
            self.declined = True
            raise Unanswered
        return word

    def answer(self, heading: str, prompt: str, shown: bool) -> str:
        """Return the answer to one question of the server, kept or the user's.

        Raises:
            Unanswered: declined, or asked once too often.
            AnswerNeeded: no person waits.
        """
        times = self._asked[prompt] = self._asked.get(prompt, 0) + 1
        kept = self._kept.passwords.get((self._host.address, prompt))
        if kept is not None and times == 1:
            self._reused = True
            return kept
        kind = _kind(prompt)
        if not self.attended:
            raise self.absent("password" if kind == "password" else "code")
        if times > self.tries:
            raise Unanswered
        lines = [f"{self._host.address} asks:", *self.messages, heading, prompt.strip()]
        if times > 1:
            lines.insert(1, "The last answer was not accepted; this is the last try.")
        self.messages.clear()
        word = self.put(LoginQuestion("\n".join(filter(None, lines)), secret=not shown, kind=kind))
        self._typed[prompt] = word
        return word

    def expect(self, what: str) -> None:
        """Raise AnswerNeeded when the server will ask for `what` and nobody could answer."""
        known = any(address == self._host.address for address, _ in self._kept.passwords)
        if not self.attended and not known:
            raise self.absent(what)

    def absent(self, what: str) -> AnswerNeeded:
        """Return the error of a login that waits for `what`, and note it for the next login."""
        self._kept.needs = what
        return answer_needed(what)

    def wrong(self) -> None:
        """Note that the server refused the answers; a password that was reused is dropped.

        It may be out of date, or no password at all: from now on none is kept.
        """
        if self._reused:
            self._kept.passwords.clear()
            self._kept.distrusted, self._reused = True, False

    def failed(self) -> None:
        """Note, after a login that failed, what the next one needs."""
        if self._asked:
            self._kept.needs = self._needs()

    def accepted(self) -> None:
        """Note, after a login that worked, what the next one needs, and keep its passwords."""
        distrusted = self._kept.distrusted
        asks_again = any(distrusted or _kind(prompt) != "password" for prompt in self._typed)
        self._kept.needs = self._needs() if asks_again else ""
        if not distrusted:
            for prompt, word in self._typed.items():
                if _kind(prompt) == "password":
                    self._kept.passwords[self._host.address, prompt] = word

    def _needs(self) -> str:
        return "code" if any(_kind(prompt) == "otp" for prompt in self._asked) else "password"


def _kind(prompt: str) -> Literal["password", "otp"]:
    """Return what a server asks for: a password can be used again, anything else only once."""
    is_password = "password" in prompt.lower() and not _CODE.search(prompt)
    return "password" if is_password else "otp"
