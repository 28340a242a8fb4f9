"""The report on a script that became a job file, and its lines on a terminal. Pure."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.from_script.from_script import adopt, spec_of
from lumitui.app.launch.from_script.launcher_options import launcher_options
from lumitui.app.launch.from_script.notes import ImportNote, Notes, safe
from lumitui.app.launch.from_script.script_diff import differences
from lumitui.remote.site.profile import Site

_WIDTH = 100
_SHORT, _LONG = 70, 170
_MOST = 6
"""Most parts per reason on the terminal; the job file lists all."""


@dataclass(frozen=True)
class ImportReport:
    """A job file made from a script, and the fate of each part of the script."""

    keys: Mapping[str, object]
    """The job file's keys, in their order in the file."""
    spec: JobSpec
    kept: tuple[ImportNote, ...]
    derived: tuple[ImportNote, ...]
    changed: tuple[ImportNote, ...]
    lost: tuple[ImportNote, ...]


def import_report(before: ScriptJob, site: Site, name: str) -> ImportReport:
    """Return a script's job file, and how the script that lumitui writes differs.

    Raises:
        InputError: as `adopt`, or lumitui cannot compose the job.
    """
    notes = Notes()
    keys = adopt(before, site, name, notes)
    spec = spec_of(keys)
    after = read_script(plain_script(compose(spec, site), site, "job"), site=site)
    noted = {item.what for item in notes.changed}
    notes.changed += [item for item in differences(before, after) if item.what not in noted]
    launcher_options(before, after, notes)
    certain = {item.what for item in (*notes.kept, *notes.lost)}
    notes.derived = [item for item in notes.derived if item.what not in certain]
    parts = map(safe, (notes.kept, notes.derived, notes.changed, notes.lost))
    return ImportReport(MappingProxyType(keys), spec, *parts)


def import_lines(report: ImportReport) -> Iterator[str]:
    """Yield the report for a terminal: short lists of kept and derived parts, then the others."""
    if report.kept:
        names = dict.fromkeys(item.words.strip("`:") for item in report.kept)
        yield from _wrapped("kept", ", ".join(names))
    if report.derived:
        names = dict.fromkeys(_brief(item.what.split("=")[0], 30) for item in report.derived)
        yield from _wrapped("derived", ", ".join(names))
    for item in report.changed:
        yield from _wrapped("changed", _brief(f"{_flat(item.what)}: {item.words}", _LONG))
    by_reason: dict[str, list[str]] = {}
    for item in report.lost:
        by_reason.setdefault(item.words, []).append(_brief(item.what, _SHORT))
    for words, parts in by_reason.items():
        more = f" and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
        yield from _wrapped("lost", f"{'; '.join(parts[:_MOST])}{more}: {words}")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _brief(text: str, most: int) -> str:
    flat = _flat(text)
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _wrapped(title: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{title}: {text}", _WIDTH, subsequent_indent="  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
