"""Findings for the programs of a CI: GitHub's workflow commands, and SARIF 2.1.0."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from lumitui.app.knowledge.report.finding_text import CheckedScript
from lumitui.app.knowledge.rule_catalogue import Topic
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.safe_text import spell_out

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MANUAL = {
    "sbatch": "https://slurm.schedmd.com/sbatch.html",
    "srun": "https://slurm.schedmd.com/srun.html",
    "torchrun": "https://docs.pytorch.org/docs/stable/elastic/run.html",
    "apptainer": "https://apptainer.org/docs/user/latest/",
    "bash": "https://www.gnu.org/software/bash/manual/bash.html",
}
_ELSEWHERE = "https://slurm.schedmd.com/quickstart.html"
"""For a rule whose source has no address: its `fullDescription` says what it is."""


def github_lines(checked: CheckedScript) -> Iterator[str]:
    """Yield a workflow command for each finding; GitHub shows them beside the lines."""
    for item in checked.findings:
        at = item.at
        values = {
            "file": checked.path_of(at),
            "line": str(max(at.line, 1)),
            "col": str(max(at.column, 1)),
        }
        if at.end_line > at.line:
            values["endLine"] = str(at.end_line)
        elif at.end_column > at.column:
            values["endColumn"] = str(at.end_column)
        values["title"] = item.rule
        named = ",".join(f"{key}={_property(value)}" for key, value in values.items())
        yield f"::{_LEVELS[item.severity]} {named}::{_data(f'{item.message} {item.do}')}"


def _data(text: str) -> str:
    """Escape a message: GitHub's toolkit, `escapeData`; what steers a terminal is spelled out."""
    text = spell_out(text, keep="\r\n")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(
    checked: tuple[CheckedScript, ...], rules: Sequence[Topic], version: str
) -> dict[str, Any]:
    """Return a log in SARIF 2.1.0 (OASIS)."""
    known = {rule.id: _described(rule) for rule in rules}
    for one in checked:
        for item in one.findings:  # those of a site's own rules have no row in the table
            topic = Topic(item.rule, item.severity, item.rule, item.message, item.source)
            known.setdefault(item.rule, _described(topic))
    order = {name: number for number, name in enumerate(known)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "lumitui", "version": version, "rules": [*known.values()]}
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(one, item, order[item.rule]) for one in checked for item in one.findings
                ],
            }
        ],
    }


def _described(topic: Topic) -> dict[str, Any]:
    source = f" (Source: {topic.source})" if topic.source else ""
    return {
        "id": topic.id,
        "shortDescription": {"text": topic.title},
        "fullDescription": {"text": f"{topic.why}{source}"},
        "helpUri": _address(topic.source),
        "defaultConfiguration": {"level": topic.severity},
    }


def _address(source: str) -> str:
    """Return where to read on: the address in a rule's source, or the manual it names."""
    if found := re.search(r"https?://[^\s)>,;]+", source):
        return found[0].rstrip(".")
    named = (address for word, address in _MANUAL.items() if word in source.lower())
    return next(named, _ELSEWHERE)


def _result(checked: CheckedScript, item: Finding, index: int) -> dict[str, Any]:
    at = item.at
    region: dict[str, int] = {"startLine": max(at.line, 1), "startColumn": max(at.column, 1)}
    if (at.end_line, at.end_column) > (at.line, at.column) and at.end_line:
        region |= {"endLine": at.end_line, "endColumn": at.end_column}
    place = {"uri": quote(os.fsencode(checked.path_of(at)))}
    return {
        "ruleId": item.rule,
        "ruleIndex": index,
        "level": item.severity,
        "message": {"text": f"{item.message} {item.do}"},
        "locations": [{"physicalLocation": {"artifactLocation": place, "region": region}}],
    }
