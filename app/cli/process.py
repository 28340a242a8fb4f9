"""Running a command line: its exit code, and a crash report after an internal error."""

import errno
import io
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click

from lumitui.app.cli.output import Reply, StdoutLost, say_error
from lumitui.app.cli.session import WAY_OUT, own_settings
from lumitui.app.job.settings import version
from lumitui.app.runs import InputError, InternalError, LumiError, unusable_path

INTERRUPTED = 130
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW", re.IGNORECASE)
_OF_SCRIPTS = ("import", "lint")
_TAKEN_BY = {
    (".yaml", ".yml"): ("preview", "tui"),
    (".sh", ".sbatch", ".slurm"): _OF_SCRIPTS,
    (".py",): ("new --script",),
}
"""The verbs that accept a file, by the end of its name."""


class _Stdout(io.FileIO):
    """Stdout as bytes; a failed write raises `StdoutLost`, which click and Python do not catch."""

    def write(self, data: Any) -> int:
        """Write bytes, and return how many were written."""
        try:
            return super().write(data)
        except OSError as error:
            raise StdoutLost from error


class Verbs(click.Group):
    """The verbs by group; a verb's module is imported on first use."""

    def __init__(
        self, *args: Any, groups: Mapping[str, Mapping[str, str]], **attributes: Any
    ) -> None:
        """Accept click's arguments, and for each group its verbs with their modules in `verbs`."""
        super().__init__(*args, **attributes)
        self.groups = groups
        self._modules = {
            name: module for verbs in groups.values() for name, module in verbs.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs' names."""
        return list(self._modules)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """Return the verb `cmd_name`, or None."""
        name = self._modules.get(cmd_name)
        if name is None:
            return None
        function = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        verb: click.Command = getattr(import_module(f"lumitui.app.cli.verbs.{name}"), function)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb.

        Raises:
            InputError: the word is not a verb. The hint names verbs that accept such a file, or
                similar verbs.
        """
        word, root = args[0], ctx.find_root().command
        if word in self._modules or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        takers = next((verbs for ends, verbs in _TAKEN_BY.items() if word.endswith(ends)), None)
        if takers or os.path.isfile(word):
            tries = " or ".join(f"`lumitui {verb} {word}`" for verb in takers or _OF_SCRIPTS)
            raise InputError(f"{word} is a file, not a command.", f"Try {tries}.")
        near = root.nearest(word) if isinstance(root, Verbs) else []
        guess = " or ".join(f"`lumitui {verb}`" for verb in near)
        raise InputError(
            f"{word!r} is not a command.", f"Did you mean {guess}?" if near else WAY_OUT
        )

    def nearest(self, word: str) -> list[str]:
        """Return the verbs most like `word`; those of a group also match by their last word."""
        names = {name.split()[-1]: name for name in reversed(self.every())}
        names |= {name: name for name in self.every()}
        return list(dict.fromkeys(names[one] for one in get_close_matches(word, names, 3, 0.7)))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in two columns, each group below its title."""
        own = self._own()
        width = max(map(len, own))
        for title, names in self.groups.items():
            with formatter.section(title):
                limit = formatter.width - width - 6  # the indent and the gap are 4
                formatter.write_dl(
                    [(name.ljust(width), own[name].get_short_help_str(limit)) for name in names]
                )

    def every(self) -> dict[str, click.Command]:
        """Return all verbs as typed; those of a group have two words: `site show`."""
        by_name: dict[str, click.Command] = {}
        for name, verb in self._own().items():
            if isinstance(verb, Verbs):
                by_name |= {f"{name} {below}": one for below, one in verb.every().items()}
            else:
                by_name[name] = verb
        return by_name

    def verb_of(self, arguments: Sequence[str]) -> str:
        """Return the verb of a command line, with both words if the first is a group."""
        words = [word for word in arguments if not word.startswith("-")][:2]
        verb = self.get_command(None, words[0]) if len(words) > 1 else None
        if isinstance(verb, Verbs) and words[1] in verb._modules:
            return " ".join(words)
        return words[0] if words else ""

    def _own(self) -> dict[str, click.Command]:
        verbs = {name: self.get_command(None, name) for name in self._modules}
        return {name: verb for name, verb in verbs.items() if verb is not None}


def run_verb(verbs: Verbs, arguments: list[str]) -> int:
    """Run one command line and return its exit code; print errors instead of raising them."""
    reply = Reply(json="--json" in list(takewhile(lambda word: word != "--", arguments)))
    error: LumiError | None = None
    code = 0
    try:
        reply.verb = verbs.verb_of(arguments)
        result = verbs.main(arguments, prog_name="lumitui", standalone_mode=False, obj=reply)
        code = result if isinstance(result, int) else 0
    except LumiError as problem:
        error, code = problem, problem.exit_code
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        hint = f"Run `{context.command_path} --help`." if context and context.parent else WAY_OUT
        error = InputError(problem.format_message(), hint)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        hint = "If a job was submitted, it keeps running: `lumitui status` lists it."
        error = LumiError("Interrupted.", hint)
        code = INTERRUPTED
    except StdoutLost as lost:
        reply.lost = lost
    except Exception as problem:  # internal error: a sentence for the user, traceback to a file
        error = unusable_path(problem) or _crashed(problem, reply.verb, own_settings().data)
        code = error.exit_code
    try:
        reply.close(error, code)
        sys.stdout.flush()
    except StdoutLost as lost:
        reply.lost = lost
    return code if reply.lost is None else _without_stdout(reply.lost, code)


def run_process(verbs: Verbs) -> None:
    """Run this process's command line."""
    os.umask(0o077)  # only the user can read lumitui's files: results, locks, SQLite's files
    _open_streams()
    try:
        code = run_verb(verbs, sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _open_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed.

    Otherwise, the next file that lumitui opens, the history, would get the closed stream's number.
    A closed stdout is opened for reading, so that writing fails as on a full disk.
    """
    for number, stream, flags in (
        (0, sys.stdin, os.O_RDONLY),
        (1, sys.stdout, os.O_RDONLY),
        (2, sys.stderr, os.O_WRONLY),
    ):
        if stream is None:
            null = os.open(os.devnull, flags)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    # Spell out characters that the terminal's encoding lacks instead of raising.
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    out = _Stdout(1, "w", closefd=False)
    encoding = sys.stdout.encoding if sys.stdout else "utf-8"
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(out), encoding, "backslashreplace", line_buffering=out.isatty()
    )


def _without_stdout(lost: StdoutLost, code: int) -> int:
    """Print why stdout was lost, unless its reader ended (`| head`); return the exit code."""
    # Buffered text would raise again while Python shuts down.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    error = lost.__cause__
    if isinstance(error, BrokenPipeError):
        return code
    reason = error.strerror if isinstance(error, OSError) else error
    reason = "it is closed" if getattr(error, "errno", 0) == errno.EBADF else reason
    say_error(
        LumiError(
            f"Cannot write to stdout: {reason}.",
            "Runs that were already sent are unaffected: `lumitui history` lists them.",
        )
    )
    return code or LumiError.exit_code


def _crashed(error: Exception, verb: str, folder: Path) -> InternalError:
    """Write the crash report to `folder`, and return the error for the user."""
    if os.environ.get("LUMITUI_DEBUG"):
        click.echo(crash_report(error, verb, os.environ), err=True)
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    message = f"Internal error in `{verb or 'lumitui'}`: {type(error).__name__}."
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(crash_report(error, verb, os.environ))
    except OSError as failure:
        return InternalError(
            f"{message} Could not write a report: {failure.strerror}.",
            "Set LUMITUI_DEBUG=1 to see the traceback.",
        )
    return InternalError(message, f"Please send the report {path}; LUMITUI_DEBUG=1 also prints it.")


def crash_report(error: Exception, verb: str, environ: Mapping[str, str]) -> str:
    """Return the traceback and versions, without arguments and without secrets' values."""
    import traceback

    lines = [
        f"lumitui {version()}, verb {verb or '-'}",
        f"python {sys.version.split()[0]} on {sys.platform}",
        "",
        *traceback.format_exception(error),
    ]
    text = "\n".join(lines)
    for name, value in environ.items():
        secret = _SECRET_NAME.search(name) and len(value) > 3
        # `secrets:` may name any variable, so long values that are not paths are hidden too.
        if secret or (len(value) > 11 and not value.startswith(("/", "~", "."))):
            text = text.replace(value, "<secret>")
    return text
