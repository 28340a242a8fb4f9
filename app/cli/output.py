"""What the command line says: stdout is data, stderr is talk, and the exit code tells the rest."""

import dataclasses
import json
import os
import re
import sys
import termios
import time
import traceback
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

import click

from lumitui.app.explain.safe_text import LogFilter, spell_out
from lumitui.app.settings import version
from lumitui.remote.errors import InputError, LumiError

INTERRUPTED = 130
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW", re.IGNORECASE)


class ReaderGone(Exception):
    """Who reads stdout has gone (`| head`)."""


def terminal_state() -> Callable[[], None]:
    """Return what puts the terminal back as it is now.

    A login's question is asked in a thread of the connection; Ctrl-C leaves that thread where it
    is, with the echo switched off.
    """
    try:
        state = termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError, AttributeError):
        return lambda: None  # there is no terminal, or no stdin at all

    def restore() -> None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, state)

    return restore


def log_writer() -> Callable[[bytes], None]:
    """Return what writes a log's bytes to stdout: as they are, or made safe for a terminal.

    b"" ends the log.
    """
    if not sys.stdout.isatty():

        def raw(chunk: bytes) -> None:
            left = memoryview(chunk)
            while left:  # with PYTHONUNBUFFERED a write may take a part only
                left = left[sys.stdout.buffer.write(left) :]
            sys.stdout.buffer.flush()

        return raw
    colours = not os.environ.get("NO_COLOR")
    safe = LogFilter(colours=colours)

    def shown(chunk: bytes) -> None:
        # At the end a colour that the log left on is put out.
        off = "\x1b[0m" if colours and not chunk else ""
        sys.stdout.write(safe.feed(chunk, end=not chunk) + off)
        sys.stdout.flush()

    return shown


def as_data(value: object) -> Any:
    """Return `value` as what JSON knows: dataclasses and models become objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return {name: as_data(getattr(value, name)) for name in names}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_data(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


@dataclasses.dataclass
class Reply:
    """The answer of one call of the command line."""

    json: bool
    verb: str = ""
    data: Any = None

    def give(self, data: object, text: str = "") -> None:
        """Print `text`; with --json keep `data` for the one envelope at the end."""
        self.data = as_data(data)
        if not self.json and text:
            click.echo(text)

    def close(self, error: LumiError | None, exit_code: int) -> None:
        """Print the envelope, or the error's two sentences."""
        if error is not None:
            say_error(error)
        if self.json and (error is not None or self.data is not None):
            envelope: dict[str, object] = {"lumitui": version(), "verb": self.verb}
            if self.data is not None:
                envelope["data"] = self.data
            if error is not None:
                envelope["error"] = {
                    "message": error.message,
                    "hint": error.hint,
                    "exit_code": exit_code,
                }
            # ASCII: no character of a log or name can steer the terminal that shows it.
            click.echo(json.dumps(envelope, indent=1, default=str))


def say(text: str) -> None:
    """Tell the person something on stderr."""
    click.echo(spell_out(text, keep="\n"), err=True)


def say_error(error: LumiError) -> None:
    """Tell what happened and what to try, on stderr."""
    say(f"error: {error.message}")
    if error.hint:
        say(f"hint: {error.hint}")


def has_person() -> bool:
    """Whether somebody can be asked: stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Return when the person agrees, once; the default is No.

    Raises:
        InputError: there is nobody to ask and `yes` was not given.
        LumiError: they said no; `otherwise` says what that means.
    """
    if yes:
        return
    if not has_person():
        raise InputError(
            "This needs a confirmation, and there is no terminal to ask on.", "Add --yes."
        )
    if not click.confirm(spell_out(question, keep="\n"), default=False, err=True):
        raise LumiError(otherwise)


def crashed(error: Exception, verb: str, folder: Path) -> LumiError:
    """Return the sentence for a defect of the program, with the report written to `folder`."""
    if os.environ.get("LUMITUI_DEBUG"):
        click.echo(report(error, verb, os.environ), err=True)
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    what = f"lumitui has a defect ({type(error).__name__} in `{verb or 'lumitui'}`)."
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(report(error, verb, os.environ))
    except OSError as trouble:
        return LumiError(
            f"{what} No report could be written: {trouble.strerror}.",
            "LUMITUI_DEBUG=1 shows where it happened.",
        )
    return LumiError(what, f"Please send the report {path}; LUMITUI_DEBUG=1 shows it here.")


def report(error: Exception, verb: str, environ: Mapping[str, str]) -> str:
    """Return a crash report: where it happened, without arguments and values of secrets."""
    lines = [
        f"lumitui {version()}, verb {verb or '-'}",
        f"python {sys.version.split()[0]} on {sys.platform}",
        "",
        *traceback.format_exception(error),
    ]
    text = "\n".join(lines)
    for name, value in environ.items():
        named = _SECRET_NAME.search(name) and len(value) > 3
        # `secrets:` may name any variable: a long value that is no path is not shown either.
        if named or (len(value) > 11 and not value.startswith(("/", "~", "."))):
            text = text.replace(value, "<secret>")
    return text


def end_quietly() -> NoReturn:
    """End as a program does whose reader has gone (`| head`)."""
    # What is still buffered would raise once more while Python shuts down.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def width(text: str) -> int:
    """Return how many columns of a terminal `text` takes; emoji and CJK take two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
