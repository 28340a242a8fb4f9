"""One configuration, two clients: OpenSSH's `ssh` and lumitui, against the same server.

A person's answers reach `ssh` through SSH_ASKPASS, which keeps the questions that it was asked.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import LoginQuestion

_ASKPASS = """#!/bin/sh
printf '%s\\n' "$1" | tr '\\n' ' ' >> "$ASKED"; echo >> "$ASKED"
case $1 in
*"(yes/no"* | "Please type"*) [ "$TRUSTS" = yes ] && echo yes || echo no ;;
*) [ -n "$SECRET" ] || exit 1; printf '%s\\n' "$SECRET" ;;
esac
"""


@dataclass(frozen=True)
class Person:
    """What a person answers: whether they trust a new host key, and their password."""

    trusts: bool = False
    secret: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a login ended: whether it worked, what was asked before, and the last words."""

    accepted: bool
    asked: tuple[str, ...]
    said: str = ""


def by_openssh(
    config: Path, person: Person, host: str = "site", environ: Mapping[str, str] | None = None
) -> Outcome:
    """Log in with OpenSSH."""
    with tempfile.TemporaryDirectory() as folder:
        program, asked = Path(folder, "askpass"), Path(folder, "asked")
        program.write_text(_ASKPASS)
        program.chmod(0o700)
        asked.touch()
        more = {
            "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "ASKED": str(asked),
            "TRUSTS": "yes" if person.trusts else "no", "SECRET": person.secret,
        }  # fmt: skip
        done = subprocess.run(
            ["ssh", "-T", "-F", str(config), "--", host, "echo in"],
            env={**os.environ, **(environ or {}), **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            start_new_session=True,
        )
        questions = asked.read_text().splitlines()
    kinds = tuple(_kind(question) for question in questions)
    said = done.stderr.decode("utf-8", "replace")
    return Outcome(done.stdout == b"in\n" and done.returncode == 0, kinds, said)


def by_lumitui(config: Path, person: Person, host: str = "site") -> Outcome:
    """Log in with lumitui."""
    asked: list[str] = []

    def ask(question: LoginQuestion) -> str | None:
        asked.append("host-key" if question.kind == "host-key" else "secret")
        if question.kind == "host-key":
            return "yes" if person.trusts else "no"
        return person.secret or None

    connection = Ssh(Login(host, config=config), ask)
    try:
        accepted = connection.run("echo in").text == "in\n"
        return Outcome(accepted, tuple(asked))
    except LinkError as error:
        return Outcome(False, tuple(asked), f"{error.message} {error.hint}")
    finally:
        connection.close()


def _kind(question: str) -> str:
    return "host-key" if "yes/no" in question or "Please type" in question else "secret"


def command_line(config: Path) -> str:
    """What a person types to repeat the login."""
    return shlex.join(["ssh", "-vF", str(config), "site"])
