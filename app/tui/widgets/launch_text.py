"""A launch as the screens describe it before it is sent. Pure."""

from rich.console import Group
from rich.text import Text

from lumitui.app.explain import words
from lumitui.app.send.preview import Preview
from lumitui.app.tui.widgets import styled

SEVERITY = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def terms(preview: Preview) -> list[tuple[str, str]]:
    """Return what a person agrees to by sending it."""
    launch = preview.launch
    warnings = sum(finding.severity == "warning" for finding in preview.findings)
    lines = [
        ("asks for", words.layout_size(launch.layout)),
        ("time", f"at most {launch.spec.time}"),
        ("billed", words.price_limit(launch.price)),
    ]
    return [*lines, ("warnings", str(warnings))] if warnings else lines


def summary(preview: Preview) -> Group:
    """Return what the job asks for, and the findings of the adviser."""
    launch, site = preview.launch, preview.site
    lines = [
        *terms(preview)[:3],
        ("site", f"{site.title}, {launch.spec.partition}"),
        ("launcher", f"{launch.spec.launcher}, {launch.spec.strategy}"),
        ("project", str(preview.project)),
        ("command", preview.command),
    ]
    if launch.global_batch:
        lines.insert(2, ("global batch", f"{launch.global_batch} samples per step over all ranks"))
    return Group(styled.labelled(lines), Text(), *findings_text(preview))


def findings_text(preview: Preview) -> list[Text]:
    """Return the adviser's findings, errors first, each with what to do."""
    if not preview.findings:
        return [Text("The check found nothing to change.", style="green")]
    return [
        Text.assemble(
            (finding.severity, SEVERITY[finding.severity]),
            styled.plain(f"  {finding.message} "),
            styled.plain(finding.do),
        )
        for finding in preview.findings
    ]
