"""Findings for the programs of a CI: GitHub's workflow commands, and SARIF 2.1.0."""

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from lumitui.app.knowledge.report.finding_text import CheckedScript
from lumitui.app.knowledge.rule import Rule
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
    checked: tuple[CheckedScript, ...], rules: tuple[Rule, ...], version: str
) -> dict[str, Any]:
    """Return a log in SARIF 2.1.0 (OASIS)."""
    known = {item.id: _rule(item) for item in rules}
    for one in checked:
        for found in one.findings:
            known.setdefault(found.rule, _rule_of(found))
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


def _rule(item: Rule) -> dict[str, Any]:
    return _descriptor(item.id, item.title, item.why, item.source, item.severity)


def _rule_of(item: Finding) -> dict[str, Any]:
    """Describe a rule of a site's own profile, which no table has."""
    return _descriptor(item.rule, item.rule, item.message, item.source, item.severity)


def _descriptor(name: str, title: str, why: str, source: str, level: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{why} (Source: {source})" if source else why},
        "helpUri": _address(source),
        "defaultConfiguration": {"level": level},
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
