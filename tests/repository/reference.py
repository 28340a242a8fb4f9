"""`make reference`: the pages that are made from the program, and its manual page.

`tests/repository/test_reference.py` compares each of them with the program.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from lumitui.app.cli.main import lumitui
from lumitui.app.explain.doc_pages import headings
from lumitui.app.job.json_schema import described_schema
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.causes import meanings
from lumitui.app.knowledge.causes.cause_table import EVERY
from lumitui.app.knowledge.causes.library_causes import IMPORT_OF_ONE
from lumitui.app.knowledge.causes.meanings import Meaning
from lumitui.app.knowledge.failure.hangs import HANG
from tests.repository import rules_page
from tests.repository.markdown_text import plain_markdown
from tests.support.places import ROOT

DOCS = ROOT / "docs"
MANUAL = DOCS / "lumitui.1"
CAUSES = "\n## Causes\n"
"""Where the generated part of docs/why.md begins; what is above it is written as any page is."""
DATE = "2026-11-26"
"""The manual page's date: that of the last change of a verb, or of a release."""
_WIDTH = 110
_COMMANDS = """# Verbs and options

Look up what each verb does. `lumitui VERB --help` and `man lumitui` print the same.
`make reference` writes this page.

- RUN is a run's id (or its beginning or end), the job's number in Slurm, the name of a job or grid
  (its newest run) or `last`.
- `--json` prints one JSON object on stdout.
- `-y`, `--yes` skips the confirmation.
- [Exit codes](exit_codes.md) are the same for all verbs.
"""
_RANGE = r"(?:[01]<=)?x(?:<=\d{7,}|>=[01])"
_WIDE_RANGE = re.compile(rf"; {_RANGE}(?=\])| +\[{_RANGE}\]")
"""A range that click adds to a help and that no reader would leave: `[1<=x<=1000000000]`."""
_ALIKE = ("--json", "--yes")
"""Options that mean the same in every verb."""
_JOB_FILE = """# The job file

Look up what a key of a job file means. A job file is YAML:

    name: vit
    site: lumi
    account: project_462000000
    partition: standard-g
    nodes: 2
    time: "02:00:00"
    script: train.py

`name`, `site`, `partition` and `time` are required, as is either `script` or `trainer`.
`lumitui new` writes a job file that explains its keys. `lumitui schema` prints a JSON Schema for
your editor. `make reference` writes this page.
"""


def commands_page() -> str:
    """Return docs/commands.md."""
    lines = [_COMMANDS]
    own = lumitui.every()
    for group, verbs in lumitui.groups.items():
        lines.append(f"## {group}\n")
        for name, verb in own.items():
            if name.split()[0] in verbs:
                lines += _verb_lines(name, verb)
    return _page(lines)


def _verb_lines(name: str, verb: click.Command) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"    {_usage(name, verb)}\n"
    for paragraph in _paragraphs(verb):
        yield f"{paragraph}\n"
    rows = [
        _wrapped(f"- `{term}`: {plain_markdown(words)}", "  ")
        for term, words in _options(name, verb)
        if not term.endswith(_ALIKE)
    ]
    if rows:
        yield "\n".join(rows) + "\n"


def _usage(name: str, verb: click.Command) -> str:
    with click.Context(verb, info_name=name, **lumitui.context_settings) as context:
        pieces = [word for word in verb.collect_usage_pieces(context) if word != "[OPTIONS]"]
    options = [one for one in verb.params if isinstance(one, click.Option)]
    json = ["[--json]"] if any("--json" in one.opts for one in options) else []
    more = ["[OPTIONS]"] if any("--json" not in one.opts for one in options) else []
    return " ".join(["lumitui", name, *more, *json, *pieces])


def _paragraphs(verb: click.Command) -> Iterator[str]:
    """Yield the paragraphs of a help; one that click leaves unwrapped becomes a block of code."""
    for paragraph in inspect.cleandoc(verb.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield textwrap.indent(textwrap.dedent(paragraph[2:]), "    ")
        else:
            yield _wrapped(plain_markdown(paragraph))


def _options(name: str, verb: click.Command) -> Iterator[tuple[str, str]]:
    """Yield the options with their help, without `--json` and `--help`."""
    with click.Context(verb, info_name=name, **lumitui.context_settings) as context:
        for one in verb.params:
            record = one.get_help_record(context)
            if record and isinstance(one, click.Option) and "--json" not in one.opts:
                yield record[0], _WIDE_RANGE.sub("", record[1])


def job_file_page() -> str:
    """Return docs/job_file.md."""
    schema = described_schema(JobSpec)
    lines = [_JOB_FILE]
    for name, key in schema["properties"].items():
        lines += [f"## {name}\n", _wrapped(plain_markdown(_of_key(key, schema))) + "\n"]
        rows = [
            _wrapped(f"- `{name}.{below}`: {plain_markdown(_of_key(one, schema))}", "  ")
            for below, one in _below(key, schema)
            if not below.startswith("sent.")  # lumitui writes what is below `venv.sent`
        ]
        if rows:
            lines.append("\n".join(rows) + "\n")
    return _page(lines)


def _of_key(key: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return a key's description, its choices and its default."""
    said = key["description"]
    kinds = list(_kinds(key, schema))
    choices = [f"`{value}`" for kind in kinds for value in kind.get("enum", ())]
    one_of = f" One of {', '.join(choices)}." if choices else ""
    default = key.get("default")
    shown = isinstance(default, str | int) and "Omit it" not in said
    words = str(default).lower() if isinstance(default, bool) else default
    return f"{said}{one_of}" + (f" [default: `{words}`]" if shown else "")


def _below(
    key: Mapping[str, Any], schema: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the keys below a key, those below them after them: `batch.arg`."""
    for kind in _kinds(key, schema):
        for name, one in kind.get("properties", {}).items():
            yield above + name, one
            yield from _below(one, schema, f"{above}{name}.")


def _kinds(key: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what a key may be, each `$ref` and each choice resolved."""
    for kind in (*key.get("anyOf", ()), *([key] if "anyOf" not in key else [])):
        yield schema["$defs"][kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind


_UNRULED = (
    HANG,
    IMPORT_OF_ONE,
    Meaning(
        "chain-late",
        "The attempt did not end before its time limit, so no other attempt followed.",
        "Give the program more time to stop: for your own program, increase the seconds in "
        "`signal:`.",
    ),
    Meaning(
        "exception",
        "The program raised an exception that no rule knows.",
        "Inspect the line of the code; in the log, the traceback shows how it was reached.",
    ),
    Meaning(
        "unknown",
        "The end of the log does not show why the job failed.",
        "Read the whole log from the start of the program.",
    ),
)
"""Causes that come from no table; `diagnose.py` has their sentences, with what it found."""
SEE = {
    "chain-late": "chain.md", "chain-refused": "chain.md",
    "chain-no-progress": "chain.md", "chain-unsaved": "scripts.md#the-contract",
    "chain-used-up": "chain.md", "diverged": "trainers.md#when-something-breaks",
    "gpu-memory": "trainers.md#does-it-fit",
    "hung": "reliability.md#a-rank-that-hangs", "no-internet": "offline.md",
    "numa-binding": "launchers.md", "overtaken": "trainers.md#when-something-breaks",
    "preempted": "chain.md", "proof-strict": "masks.md", "refused": "troubleshooting.md#refused",
    "rendezvous": "launchers.md", "stopped-early": "chain.md", "time-limit": "chain.md",
    "unknown-end": "troubleshooting.md#unknown",
    "venv-build": "environments.md",
}  # fmt: skip
"""The page that has more about a cause."""


def causes() -> list[Meaning]:
    """Return all causes that `lumitui why` names, each id once."""
    tables = (
        meanings.STATE_RULES, meanings.EXIT_CODES, meanings.CHAIN_ENDS, meanings.OF_THE_FIRST
    )  # fmt: skip
    every = [*_UNRULED, *EVERY, *(one for table in tables for one in table.values())]
    found = {one.id: one for one in reversed(every)}
    return sorted(found.values(), key=lambda one: one.id)


def why_page(before: str) -> str:
    """Return docs/why.md: what is above the causes stays as it is in `before`."""
    lines = [before.partition(CAUSES)[0].rstrip("\n"), CAUSES]
    lines.append(
        "`make reference` writes this list from the program. `…` stands for words from the log.\n"
    )
    for one in causes():
        said = re.sub(r"\{\w+\}", "…", f"{one.sentence} {one.do}")
        more = f" More: {_link(SEE[one.id])}." if one.id in SEE else ""
        lines.append(f"### {one.id}\n\n{_wrapped(plain_markdown(said) + more)}\n")
    return _page(lines)


def _link(target: str) -> str:
    """Return a link to a page or a section, with its title."""
    page, _, anchor = target.partition("#")
    text = (DOCS / (page or "why.md")).read_text(encoding="utf-8")
    title = next(one.text for one in headings(text) if not anchor or one.anchor == anchor)
    return f"[{title}]({target})"


def _page(lines: list[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def manual() -> str:
    """Return the manual page lumitui(1)."""
    lines = [
        f'.TH LUMITUI 1 {DATE} "lumitui"',
        ".SH NAME",
        r"lumitui \- compose, prove and scale multi-GPU training jobs on Slurm supercomputers",
        ".SH SYNOPSIS",
        ".B lumitui",
        r"[\fIVERB\fR] [\fIOPTIONS\fR] [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        *_roff_paragraphs(lumitui),
    ]
    for group, verbs in lumitui.groups.items():
        lines.append(f".SH {group.upper()}")
        for name, verb in lumitui.every().items():
            if name.split()[0] in verbs:
                lines += [f".SS {_roff(_usage(name, verb))}", *_roff_paragraphs(verb)]
                for term, words in _options(name, verb):
                    lines += [".TP", rf"\fB{_roff(term)}\fR", *_roff_lines(words)]
    more = "`lumitui docs` lists the pages of the documentation, and prints each of them."
    lines += [".SH SEE ALSO", *_roff_lines(more)]
    return "\n".join(lines) + "\n"


def _roff_paragraphs(verb: click.Command) -> Iterator[str]:
    first, *others = inspect.cleandoc(verb.help or "").split("\n\n")
    yield from _roff_lines(first)
    for paragraph in others:
        if paragraph.startswith("\b"):
            yield from (".PP", ".nf", *map(_roff, paragraph[2:].splitlines()), ".fi")
        else:
            yield from (".PP", *_roff_lines(paragraph))


def _roff_lines(text: str) -> list[str]:
    """Return a paragraph in lines that are short also when they are escaped."""
    words = " ".join(text.split())
    return [_roff(line) for line in textwrap.wrap(words, 60, break_on_hyphens=False)]


def _roff(text: str) -> str:
    """Return a text as roff: nothing in it is a request, and a hyphen stays one when copied."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    text = text.replace("`", r"\(ga").replace("…", "...")
    return rf"\&{text}" if text.startswith(".") else text


def written() -> dict[str, str]:
    """Return each file that `make reference` writes, by its name in docs/."""
    before = (DOCS / "why.md").read_text(encoding="utf-8")
    return {
        "commands.md": commands_page(),
        "job_file.md": job_file_page(),
        "why.md": why_page(before),
        "rules.md": rules_page.page_text(),
        MANUAL.name: manual(),
    }


def main() -> None:
    """Write all of them, and the examples of the rules."""
    for name, text in written().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    rules_page.main()
    print(f"wrote {', '.join(written())} in docs/")


if __name__ == "__main__":
    main()
