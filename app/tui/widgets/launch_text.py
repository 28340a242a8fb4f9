"""Descriptions of a launch that the screens show before sending it."""

import time
from collections.abc import Sequence

from rich.text import Text

from lumitui.app.explain import run_phrases, words
from lumitui.app.explain.run_phrases import Outlook, price_outlook
from lumitui.app.runs import Preview
from lumitui.app.tui.widgets import styled

_MOST_RUNS = 6  # maximum runs listed in a dialog: a grid may have a hundred
SEVERITY = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def terms(preview: Preview, price: Outlook | None = None) -> list[tuple[str, str]]:
    """Return the terms of sending a launch; `price` replaces the price's upper bound."""
    launch = preview.launch
    outlook = price or Outlook(launch.price)
    lines = [
        ("requests", f"{words.layout_size(launch.layout)} of {launch.spec.partition}"),
        *[("GPU memory", f"{words.rank_memory(one)} per rank") for one in (launch.memory,) if one],
        ("time", f"at most {run_phrases.time_limit(launch)}"),
        ("billed", price_outlook(outlook, time.time())),
        *rate([preview]),
    ]
    if launch.spec.account != "none":
        lines.append(("account", launch.spec.account))
    if preview.files.weight:
        lines.append(("code", preview.files.weight))
    return [*lines, *words.finding_rows(preview.findings)]


def rate(previews: Sequence[Preview]) -> list[tuple[str, str]]:
    """Return how the sites count what they bill, a row for each; empty if nothing is billed."""
    notes = words.billing_notes((one.launch.price, one.site) for one in previews)
    return [("rate", note) for note in notes]


def series_terms(previews: tuple[Preview, ...]) -> list[tuple[str, str]]:
    """Return the terms of sending the runs of a grid: what each requests, and the prices."""
    each = [dict(terms(one)) for one in previews]
    lines = [
        (label, "; ".join(dict.fromkeys(one.get(label, "none") for one in each)))
        for label in each[0]
        if label not in ("billed", "rate", "warning", "note", "")
    ]
    lines += words.finding_rows(found for one in previews for found in one.findings)
    lines += rate(previews)
    lines += [
        (f"run {number}", f"{item.cell}, {words.amount(item.launch.price)}")
        for number, item in enumerate(previews[:_MOST_RUNS], 1)
    ]
    if len(previews) > _MOST_RUNS:
        lines.append(("", f"… and {len(previews) - _MOST_RUNS} more"))
    return [*lines, ("all", f"{words.count(len(previews), 'run')}, {whole_price(previews)}")]


def error_terms(previews: tuple[Preview, ...]) -> list[tuple[str, str]]:
    """Return the errors that the user accepts by sending launches, each message once."""
    found = dict.fromkeys(error.message for preview in previews for error in preview.errors)
    return [("error", message) for message in found]


def whole_price(previews: tuple[Preview, ...]) -> str:
    """Return the maximum bill of all runs: `at most 32 GPU-hours`, `nothing`."""
    from lumitui.app.runs import total_price

    return ", ".join(words.price_limit(price) for price in total_price(previews))


def cost_line(previews: tuple[Preview, ...], price: Outlook | None, width: int) -> Text:
    """Return the requested resources and their price in one line, as many parts as fit `width`.

    `price` details the price of one run; for several runs only the sum is shown.
    """
    first = previews[0].launch
    layout = words.layout_size(first.layout)
    alone = price if len(previews) == 1 else None
    most = whole_price(previews)
    billed = price_outlook(alone, time.time()) if alone else most
    parts = [("requests ", layout), ("billed ", billed)]
    if len(previews) > 1:  # the size of one of many says less than the price of all
        parts = [("sends ", f"{len(previews)} runs"), parts[1], ("the first ", layout)]
    parts.append(("time ", run_phrases.time_limit(first)))
    if first.memory:
        parts.append(("GPU memory ", words.rank_memory(first.memory)))
    if len(f"{''.join(parts[0])}  billed {most}") > width:
        parts[0] = ("", parts[0][1])  # the price needs its label more
    if len(f"{parts[0][1]}  billed {most}") > width:
        parts[:2] = parts[1::-1]
    text = Text(no_wrap=True, overflow="ellipsis")
    for label, value in parts:
        options = (value, most) if label == "billed " else (value,)
        for shown in options:
            part = Text.assemble(("  " if text else "") + label, styled.plain(shown))
            part.stylize("dim", 0, part.cell_len - len(shown))
            last = not text and shown == options[-1]
            if last or text.cell_len + part.cell_len <= width:
                text.append_text(part)
                break
    return text


def findings_text(preview: Preview) -> list[Text]:
    """Return the adviser's findings, errors first, each with its fix."""
    if not preview.findings:
        return [Text("The check found nothing to change.", style="green")]
    return [
        Text.assemble(
            (one.severity, SEVERITY[one.severity]), styled.plain(f"  {one.message} {one.do}")
        )
        for one in preview.findings
    ]
