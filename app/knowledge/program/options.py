"""The options that a program reads from its command line with argparse, where all are known."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import StepProgram

_OTHER_READERS = (
    "absl", "click", "configargparse", "docopt", "draccus", "fire", "gflags", "hydra",
    "jsonargparse", "simple_parsing", "tap", "typer", "tyro",
)  # fmt: skip
"""Packages that read the command line in their own way."""
_SILENT = (
    "parse_known_args", "parse_known_intermixed_args", "add_subparsers",
    "parse_args_into_dataclasses", "parse_intermixed_args", "LightningCLI", "HfArgumentParser",
    "TrlParser",
)  # fmt: skip
"""Calls after which other options may be right, too."""
_DEEPSPEED = ("--deepspeed", "--deepspeed_config", "--deepscale", "--deepscale_config",
              "--deepspeed_mpi")  # fmt: skip
"""What `deepspeed.add_config_arguments(parser)` adds (deepspeed/__init__.py)."""
_WHOLE_LINE = ("", "None", "args", "argv", "arguments", "sys.argv[1:]")
"""How `parse_args` is called to read the command line."""


@dataclass(frozen=True)
class ParserOptions:
    """All options of a program."""

    file: str
    flags: tuple[str, ...]
    abbreviated: bool = True
    """Whether the beginning of an option is enough (argparse's `allow_abbrev`)."""

    def knows(self, word: str) -> bool:
        """Return whether argparse takes a word that begins with a dash for one of them."""
        flag = word.partition("=")[0]
        if flag in self.flags or flag in ("-h", "--help"):
            return True
        if flag.startswith("--"):
            return self.abbreviated and any(one.startswith(flag) for one in self.flags)
        short = [one for one in self.flags if not one.startswith("--")]
        return any(word.startswith(one) or one.startswith(flag) for one in short)

    def near(self, word: str) -> str:
        """Return the option that was probably meant; "": none is near."""
        flag = word.partition("=")[0]
        plain = {one.lstrip("-").replace("_", "-").lower(): one for one in self.flags}
        name = flag.lstrip("-").replace("_", "-").lower()
        short = [one for one in plain if name == _initials(one) or _initials(name) == one]
        begun = [one for one in plain if f"{name}-".startswith(f"{one}-") or one in name.split("-")]
        found = short or begun or difflib.get_close_matches(name, plain, n=1, cutoff=0.7)
        return plain[found[0]] if found else ""


def _initials(name: str) -> str:
    parts = [part for part in name.split("-") if part]
    return "".join(part[0] for part in parts) if len(parts) > 1 else ""


def options_of(run: StepProgram) -> ParserOptions | None:
    """Return the program's options; None: not all are known, or argparse reads none."""
    if run.uses(*_OTHER_READERS) or run.has(*_SILENT) or not run.files:
        return None
    if not run.has("argparse.ArgumentParser") or not _reads_the_line(run):
        return None
    parsers = {call.target for _file, call in run.calls("argparse.ArgumentParser")}
    groups = run.calls("add_argument_group", "add_mutually_exclusive_group")
    parsers |= {call.target for _file, call in groups}
    flags: list[str] = []
    for program in run.files:
        for call in program.calls:
            if call.last == "add_argument":
                own = _flags(call)
                if own is None:
                    return None
                flags += own
            elif any(one.text in parsers or one.text == "parser" for one in call.arguments):
                if call.name == "deepspeed.add_config_arguments":
                    flags += _DEEPSPEED
                elif not any(call.last in file.functions for file in run.files):
                    return None  # somebody else may add options
            if call.name == "argparse.ArgumentParser" and _is_odd(call):
                return None
    short = [call for _file, call in run.calls("argparse.ArgumentParser")
             if (word := call.get("allow_abbrev")) and word.value is False]  # fmt: skip
    return (
        ParserOptions(run.program.file, tuple(dict.fromkeys(flags)), not short) if flags else None
    )


def _is_odd(call: Call) -> bool:
    names = ("parents", "prefix_chars", "fromfile_prefix_chars")
    return call.open or any(call.get(name) is not None for name in names)


def _flags(call: Call) -> list[str] | None:
    """Return the names in a call of add_argument; None: not all are known."""
    if call.open or not call.arguments:
        return None
    plain = [one for one in call.arguments if not one.name]
    if not plain or any(not isinstance(one.value, str) for one in plain):
        return None
    nargs, action = call.get("nargs"), call.get("action")
    if nargs is not None and (nargs.text.endswith("REMAINDER") or nargs.value == "..."):
        return None
    flags = [str(one.value) for one in plain if str(one.value).startswith("-")]
    if action is not None and action.text.endswith("BooleanOptionalAction"):
        flags += [f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")]
    return flags


def _reads_the_line(run: StepProgram) -> bool:
    """Return whether the program hands its command line to argparse, and reads it nowhere else."""
    reading = [
        (file, call)
        for file, call in run.calls("parse_args")
        if len(call.arguments) < 2 and _first(call) in _WHOLE_LINE
    ]
    own = [call for file, call in reading if file is run.program or run.program.has(call.function)]
    words = sum(1 for _file, call in reading if _first(call) == "sys.argv[1:]")
    named = sum(run.job.files.get(one.file, "").count("sys.argv") for one in run.files)
    return bool(own) and named <= words and len(reading) == len([*run.calls("parse_args")])


def _first(call: Call) -> str:
    given = call.get("args", 0)
    return given.text if given is not None else ""


def given_options(run: StepProgram) -> Iterator[int]:
    """Yield the places of the words on the command line that argparse takes for options."""
    for number, word in enumerate(run.step.arguments):
        text = word.known
        if text == "--":
            return
        if len(text) > 1 and text.startswith("-") and not _is_number(text):
            yield number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
