"""The text of a job file made from a script: its keys, with comments about the rest."""

import textwrap
from collections.abc import Iterator, Sequence

import yaml

from lumitui.app.job.yaml_marks import UNSEEN
from lumitui.app.launch.from_script.import_report import ImportReport
from lumitui.app.launch.from_script.notes import ImportNote
from lumitui.remote.site.reading.writer import marked
from lumitui.remote.site.safe_text import comment, spell_out

_WIDTH = 96


class _Dumper(yaml.SafeDumper):
    """Puts texts with invisible characters into double quotes, so that they are escaped."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Return the node of a text."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)


def job_file_text(report: ImportReport, script: str) -> str:
    """Return the job file; `script` is the script's name."""
    lines = [f"# Made from {comment(script)} by `lumitui import`."]
    if report.lost:
        lines.append("# Not carried over; check each:")
        lines += _listed(report.lost)
    if report.changed:
        lines.append("# Changed:")
        lines += _listed(report.changed)
    body = yaml.dump(
        dict(report.keys), Dumper=_Dumper, sort_keys=False, allow_unicode=True,
        width=_WIDTH, default_flow_style=None,
    )  # fmt: skip
    lines += ["", UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", body.rstrip("\n"))]
    if report.derived:
        lines += ["", "# Left out, since lumitui derives it:"]
        lines += _listed(report.derived)
    return marked("\n".join(lines))


def _listed(items: Sequence[ImportNote]) -> Iterator[str]:
    """Yield the parts by reason; parts of several lines keep their lines."""
    by_reason: dict[str, list[str]] = {}
    for item in items:
        by_reason.setdefault(item.words, []).append(item.what)
    for words, parts in by_reason.items():
        several = len(parts) > 1 or "\n" in parts[0].strip()
        if not several:
            yield from _wrapped(f"{parts[0].strip()}: {words}", "#   ")
            continue
        yield from _wrapped(f"{words}:", "#   ")
        for part in parts:
            for line in part.strip("\n").split("\n"):
                shown = spell_out(line, keep="\t")
                yield f"#     {shown}".rstrip()


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        comment(text), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
