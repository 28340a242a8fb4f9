"""The questions of one login, and the user's answers, some of which are reused.

lumitui asks a question again only once after a wrong answer, since sites lock an account after some
wrong answers. Declining a question ends the login; an empty answer would count as wrong.
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
"""Maximum number of answers to a question: a wrong answer may be corrected once."""
_CODE = re.compile(r"one.?time|otp|token|code|verif|factor|second", re.IGNORECASE)


@dataclass
class Kept:
    """The user's answers that the program reuses while it runs; never a one-time code."""

    keys: dict[Path, paramiko.PKey] = field(default_factory=dict)
    """Keys that a passphrase has unlocked."""
    passwords: dict[tuple[str, str], str] = field(default_factory=dict)
    """Accepted passwords, by address and prompt."""
    distrusted: bool = False
    """Whether a stored password was refused: the site's `password` changes with each login."""
    needs: str = ""
    """The input that the next login needs from the user: `code`, `password` ...; "" if none."""


class Unanswered(Exception):
    """The user declined a question, or the server asked it too often."""


class Dialog:
    """The questions of one login at `host`, answered from `kept` if possible."""

    def __init__(self, host: HostConfig, ask: Ask, kept: Kept) -> None:
        """Ask new questions with `ask`, and add the answers to `kept`."""
        self.attended = is_attended()
        """Whether a user is waiting; read here, because another thread may ask questions."""
        self.tries = min(ANSWERS, host.prompts)
        """Maximum number of times to ask a question (NumberOfPasswordPrompts)."""
        self.declined = False
        self.messages: list[str] = []
        """The server's messages without a question, shown with the next question."""
        self._host, self._ask, self._kept = host, ask, kept
        self._asked: dict[str, int] = {}
        self._typed: dict[str, str] = {}
        self._reused = False

    @property
    def questions(self) -> int:
        """The number of different questions from the server."""
        return len(self._asked)

    def put(self, question: LoginQuestion) -> str:
        """Return the user's answer; Unanswered if they declined."""
        word = self._ask(question)
        if word is None:
            self.declined = True
            raise Unanswered
        return word

    def answer(self, heading: str, prompt: str, shown: bool) -> str:
        """Return the answer to one of the server's questions: the stored one, or the user's.

        Raises:
            Unanswered: the user declined, or the server asked too often.
            AnswerNeeded: no user is waiting.
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
        lines = [f"Question from {self._host.address}:", *self.messages, heading, prompt.strip()]
        if times > 1:
            lines.insert(1, "That answer was wrong; this is your last attempt.")
        self.messages.clear()
        word = self.put(LoginQuestion("\n".join(filter(None, lines)), secret=not shown, kind=kind))
        self._typed[prompt] = word
        return word

    def expect(self, what: str) -> None:
        """Raise AnswerNeeded if the server will ask for `what` without a user to answer."""
        known = any(address == self._host.address for address, _ in self._kept.passwords)
        if not self.attended and not known:
            raise self.absent(what)

    def absent(self, what: str) -> AnswerNeeded:
        """Return the error for a login that needs `what`, and record it for the next login."""
        self._kept.needs = what
        return answer_needed(what)

    def wrong(self) -> None:
        """Record that the server refused the answers, and drop stored passwords if one was reused.

        A stored password may be out of date, or valid only once, so no password is stored from here
        on.
        """
        if self._reused:
            self._kept.passwords.clear()
            self._kept.distrusted, self._reused = True, False

    def failed(self) -> None:
        """Record what input the next login needs, after a failed one."""
        if self._asked:
            self._kept.needs = self._needs()

    def accepted(self) -> None:
        """Record what input the next login needs after a successful one; store its passwords."""
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
    """Return the kind of a server's question: a password is reusable, anything else is not."""
    is_password = "password" in prompt.lower() and not _CODE.search(prompt)
    return "password" if is_password else "otp"
