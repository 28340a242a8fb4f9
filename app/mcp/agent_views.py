"""Data shown to agents, with external text in `untrusted_text`. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from lumitui.app.explain import words
from lumitui.app.mcp.allowance import hours_of_preview
from lumitui.app.runs import (
    AGENT_TAG,
    Finding,
    LogFilter,
    Preview,
    Run,
    State,
    spell_out,
    total_price,
)

Data = dict[str, Any]
_UNSEEN = re.compile("[\u200b-\u200d\u2060\ufeff\U000e0000-\U000e007f]")
"""Zero-width characters: a model reads them, but a user checking the text cannot see them."""


def untrusted(value: object) -> Data:
    """Return text from a site, a job or a project under the name that marks it as untrusted."""
    return {"untrusted_text": value}


def plain_data(value: object) -> Any:
    """Return `value` as JSON types, without control characters in any text."""
    return _clean(to_jsonable_python(value, inf_nan_mode="strings", fallback=str))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return _UNSEEN.sub("", spell_out(value, keep="\n\t"))
    if isinstance(value, Mapping):
        return {str(_clean(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def log_text(data: bytes) -> str:
    """Return the bytes of a log as text, without escape sequences."""
    text = LogFilter(colours=False).feed(data, end=True)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def run_view(run: Run) -> Data:
    """Return an agent's view of a run."""
    layout = run.layout
    return {
        "id": run.id,
        "state": run.state,
        "exit_code": run.rc,
        "site": run.site,
        "partition": run.brief.partition,
        "parent": run.parent,
        "nodes": layout.nodes,
        "ranks": layout.world_size,
        "gpus": 0 if layout.on_cpu else layout.nodes * layout.gpus_per_node,
        "time_limit": run.brief.time,
        "chain": run.brief.chain,
        "price": run.price,
        "attempt": run.attempt,
        "submitted": run.submitted,
        "started": run.started,
        "ended": run.ended,
        "expected_start": run.expected_start if run.state is State.QUEUED else None,
        "expected_end": run.latest_end,
        "sent_by_agent": is_of_agent(run),
        **untrusted(
            {
                "name": run.name,
                "job_id": run.job_id,
                "reason": run.reason,
                "cause": run.cause,
                "nodes": run.nodes_used,
                "note": run.note,
            }
        ),
    }


def is_of_agent(run: Run) -> bool:
    """Return whether an agent sent a run."""
    return AGENT_TAG in run.note.split(" ")


def finding_view(finding: Finding) -> Data:
    """Return an agent's view of a finding."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "key": finding.at.field,
        "message": finding.message,
        "do": finding.do,
    }


def previews_view(previews: Sequence[Preview]) -> Data:
    """Return the job to send: the script of the first run, and each run's maximum price."""
    first = previews[0]
    findings = dict.fromkeys(item for one in previews for item in one.findings)
    return {
        "runs": [
            {
                "name": one.name,
                "settings": one.cell,
                "nodes": one.launch.layout.nodes,
                "time_limit": one.launch.spec.time,
                "chain": one.launch.spec.chain,
                "gpu_hours": hours_of_preview(one),
                "price": words.price_sentence(one.launch.price),
                **({"script": one.launch.script} if one.follows else {}),
            }
            for one in previews
        ],
        "site": words.site_names(one.site for one in previews),
        "price": ", ".join(words.price_sentence(price) for price in total_price(tuple(previews))),
        "rate": " ".join(words.billing_notes((one.launch.price, one.site) for one in previews)),
        "gpu_hours": sum(map(hours_of_preview, previews)),
        "findings": [finding_view(item) for item in findings],
        "command": first.command,
        "script": first.launch.script,
        "code": {"files": first.files.count, "bytes": first.files.bytes},
        **untrusted({"kept_back": first.files.kept_back}),
    }
