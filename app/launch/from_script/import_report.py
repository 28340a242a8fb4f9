"""The result of an import: the job file's text, the changes, and the report. Pure."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType

import yaml

from lumitui.app.job.edit import UNSEEN
from lumitui.app.job.fields.text_fields import check_environment_name, is_taken
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.adviser import lint_findings
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.from_script.from_script import adopt, spec_of
from lumitui.app.launch.from_script.notes import ImportNote, Notes, safe
from lumitui.app.launch.from_script.program_keys import directives, launcher_options
from lumitui.app.launch.placement import placement_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.writer import marked
from lumitui.remote.site.safe_text import comment, spell_out

_CARRIED = {
    "qos", "signal", "constraint", "hint", "nodelist", "exclude", "reservation", "dependency",
}  # fmt: skip
"""Options that the new script keeps; the report lists those whose value changed."""


def differences(before: ScriptJob, after: ScriptJob) -> tuple[ImportNote, ...]:
    """Return the differences of two jobs: a directive, the ranks, the program, a variable."""
    notes = [
        ImportNote(what, f"{_shown(old)} → {_shown(new)}")
        for what, old, new in _compared(before, after)
        if old != new
    ]
    options = _CARRIED if after.options.has("qos") else _CARRIED - {"qos"}
    return (*notes, *directives(before.options, after.options, options))


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def _compared(before: ScriptJob, after: ScriptJob) -> Iterator[tuple[str, object, object]]:
    old, new = before.resources, after.resources
    yield "first line", _first_line(before), _first_line(after)
    yield "working folder", before.options.value("chdir") or "where sbatch is called", _FOLDER
    mode = before.options.value("open-mode")
    yield "--open-mode" + (f"={mode}" if mode else ""), mode, "append"
    yield "account", old.account, new.account
    # A script without one gets the site's, which a note about lost parts mentions.
    if old.partition is not None:
        yield "partition", old.partition, new.partition
    yield "nodes", before.nodes, after.nodes
    yield "GPUs per node", old.gpus_per_node, new.gpus_per_node
    if old.gpu_type and new.gpu_type:
        yield "GPU type", old.gpu_type, new.gpu_type
    yield "tasks per node", _tasks(before), _tasks(after)
    yield "cores per task", old.cpus_per_task, new.cpus_per_task
    yield "memory per node", _memory(old.memory_gib), _memory(new.memory_gib)
    yield "seconds", old.seconds, new.seconds
    yield "ranks", before.rank.world_size, after.rank.world_size
    if before.rank.cores is not None and before.rank.cores != old.cpus_per_task:
        yield "cores per rank", before.rank.cores, after.rank.cores or new.cpus_per_task
    if before.rank.visible_gpus == "one":
        yield "GPUs that a rank sees", before.rank.visible_gpus, after.rank.visible_gpus
    first, second = (job.training[-1] if job.training else None for job in (before, after))
    yield "launcher", first and first.launcher, second and second.launcher
    added = _added_options(first, second)
    yield "srun's options", None, added or None
    yield "srun", bool(first and first.srun), bool(second and second.srun)
    cores = first.srun.number("cpus-per-task") if first and first.srun else None
    if cores is not None:
        yield "srun --cpus-per-task", cores, new.cpus_per_task
    yield "image", _image(first), _image(second)
    yield from _arguments(first, second)
    names = {
        item.name
        for item in before.variables
        if item.exported and item.shell == "batch" and not item.local
    }
    for name in sorted(name for name in names if not is_taken(name) and not _secret(name)):
        one, other = before.variable(name), after.variable(name)
        # Variables that the new script lacks are among the lost parts, with the reason.
        if one is not None and other is not None:
            yield name, one.value, other.value
    yield "variables of the site's profile", "not set", _added(before, after) or "not set"


_SHORT_VALUE = 20


def _added(before: ScriptJob, after: ScriptJob) -> str:
    """Return the variables that only the new job sets, with short values."""
    set_before = {item.name for item in before.variables if not item.local}
    set_before |= {re.sub(r"^(?:SINGULARITY|APPTAINER)ENV_", "", name) for name in set_before}
    starts = [before.options, *(step.srun for step in before.training if step.srun)]
    exports = (options.value("export") or "" for options in starts)
    set_before |= {part.partition("=")[0] for text in exports for part in text.split(",")}
    words = dict.fromkeys(
        item.name if "$" in item.value or len(item.value) > _SHORT_VALUE
        else f"{item.name}={item.value}"
        for item in after.variables
        if item.exported and item.shell == "batch" and not is_taken(item.name)
        and item.name not in set_before
    )  # fmt: skip
    return ", ".join(words)


def _first_line(job: ScriptJob) -> str:
    return job.text.split("\n", 1)[0].strip()


_FOLDER = "$RUN_DIR/code, this run's own copy of the project, so relative output paths point there"
_QUIET = ("kill-on-bad-exit", "label", "unbuffered", "overlap")
"""srun's options that change how a step ends or writes, not its ranks."""


def _added_options(before: JobStep | None, after: JobStep | None) -> str:
    """Return the options of srun that only the new script has."""
    ours = after.srun if after else None
    theirs = before.srun if before else None
    new = [one for one in (ours.all if ours else ()) if one.name in _QUIET]
    return " ".join(one.raw.strip() for one in new if not (theirs and theirs.has(one.name)))


def _memory(gib: float | None) -> str:
    return "the site's default" if gib is None else f"{gib:g} GiB"


def _image(step: JobStep | None) -> str | None:
    image = step.container.image if step and step.container else None
    return image.known if image else None


def _arguments(
    first: JobStep | None, second: JobStep | None
) -> Iterator[tuple[str, object, object]]:
    one, other = (step.arguments if step else () for step in (first, second))
    if len(one) != len(other):
        yield "arguments", " ".join(w.known for w in one), " ".join(w.known for w in other)
        return
    for before, after in zip_longest(one, other):
        # Arguments with variables that only the site knows are among the lost parts.
        if "$" not in after.known:
            yield "argument", before.known, after.known


def _secret(name: str) -> bool:
    """Return whether a variable's value must never be shown."""
    try:
        check_environment_name(name)
    except ValueError:
        return True
    return False


def _tasks(job: ScriptJob) -> int | None:
    request = job.resources
    if request.tasks_per_node is not None:
        return request.tasks_per_node
    return None if request.tasks is None else -(-request.tasks // job.nodes)


_WIDTH = 100
_SHORT, _LONG = 70, 170
_MOST = 6
"""Maximum number of parts per reason on the terminal; the job file lists all."""


@dataclass(frozen=True)
class ImportReport:
    """A job file from a script, and the fate of each part of the script."""

    keys: Mapping[str, object]
    """The job file's keys, in their order in the file."""
    spec: JobSpec
    kept: tuple[ImportNote, ...]
    derived: tuple[ImportNote, ...]
    changed: tuple[ImportNote, ...]
    lost: tuple[ImportNote, ...]


def import_report(
    before: ScriptJob, site: Site, name: str, requirements: str = "", home: str = ""
) -> ImportReport:
    """Return a script's job file, and the differences of the script that lumitui writes.

    `requirements` and `home`: see `adopt`.

    Raises:
        InputError: as for `adopt`, or lumitui cannot compose the job.
    """
    notes = Notes()
    keys = adopt(before, site, name, notes, requirements, home)
    spec = spec_of(keys)
    composed = compose(composable(spec), site)
    after = read_script(plain_script(composed, site, "job"), site=site)
    if before.rank.visible_gpus == "one":
        advice = lint_findings.findings(composed, placement_of(spec, site), before.files)
        notes.lost += [
            ImportNote("one GPU per rank", f"{one.message} {one.do}")
            for one in advice
            if one.rule in ("no-own-gpu", "one-gpu-for-all")
        ]
    for item in [*notes.kept]:
        if item.words.strip("`:").partition(".")[0] not in keys:
            notes.kept.remove(item)
            notes.derive(item.what, f"the default of {item.words.rstrip('`:')}`")
    noted = {item.what for item in notes.changed}
    notes.changed += [item for item in differences(before, after) if item.what not in noted]
    launcher_options(before, after, placement_of(spec, site).torchrun_binding, notes)
    certain = {item.what for item in (*notes.kept, *notes.changed, *notes.lost)}
    notes.derived = [item for item in notes.derived if item.what not in certain]
    parts = map(safe, (notes.kept, notes.derived, notes.changed, notes.lost))
    return ImportReport(MappingProxyType(keys), spec, *parts)


def composable(spec: JobSpec) -> JobSpec:
    """Return a job that can be composed before its requirements and batch sizes are right."""
    changes: dict[str, object] = {"venv": None}
    if spec.deepspeed:  # as arguments, which lumitui would add itself
        words = ("--deepspeed", "--deepspeed_config", spec.deepspeed.config)
        changes |= {"args": (*spec.args, *words), "deepspeed": None, "strategy": "ddp"}
    return spec.model_copy(update=changes)


def import_parts(report: ImportReport) -> dict[str, tuple[str, ...]]:
    """Return the report's sentences by fate; lost parts first, since the user must check them."""
    by_reason: dict[str, list[str]] = {}
    for item in report.lost:
        by_reason.setdefault(item.words, []).append(_brief(item.what, _SHORT))
    lost = []
    for words, parts in by_reason.items():
        more = f" and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
        lost.append(f"{'; '.join(parts[:_MOST])}{more}: {words}")
    kept = dict.fromkeys(item.words.strip("`:") for item in report.kept)
    derived = dict.fromkeys(_brief(item.what.split("=")[0], 30) for item in report.derived)
    return {
        "lost": tuple(lost),
        "changed": tuple(map(_change, report.changed)),
        "kept": (", ".join(kept),) if kept else (),
        "derived": (", ".join(derived),) if derived else (),
    }


def import_lines(report: ImportReport) -> Iterator[str]:
    """Yield the report for a terminal: lost parts last, just above the prompt."""
    parts = import_parts(report)
    for title in ("kept", "derived", "changed", "lost"):
        for text in parts[title]:
            yield from _wrapped(f"{title}: {text}", _WIDTH)


def _change(item: ImportNote) -> str:
    """Return the change in words; the old value is cut shorter than the new one."""
    old, arrow, new = item.words.rpartition(" → ")
    words = f"{_brief(old, _SHORT)}{arrow}{_brief(new, _LONG)}" if arrow else _brief(new, _LONG)
    return f"{_brief(item.what, _SHORT)}: {words}"


def _brief(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


_TEXT_WIDTH = 96


class _Keys(dict[str, object]):
    """The keys of a job file, each on its own line."""


class _Dumper(yaml.SafeDumper):
    """Puts texts with invisible characters into double quotes, so that they are escaped."""

    def represent_keys(self, data: _Keys) -> yaml.MappingNode:
        """Return the YAML node of an entire job file."""
        return self.represent_mapping("tag:yaml.org,2002:map", data, flow_style=False)

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)
_Dumper.add_representer(_Keys, _Dumper.represent_keys)


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
        _Keys(report.keys), Dumper=_Dumper, sort_keys=False, allow_unicode=True,
        width=_TEXT_WIDTH, default_flow_style=None,
    )  # fmt: skip
    lines += ["", UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", body.rstrip("\n"))]
    if report.derived:
        lines += ["", "# Omitted, because lumitui derives it:"]
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
            yield from _wrapped(comment(f"{parts[0].strip()}: {words}"), _TEXT_WIDTH, "#   ")
            continue
        yield from _wrapped(comment(f"{words}:"), _TEXT_WIDTH, "#   ")
        for part in parts:
            for line in part.strip("\n").split("\n"):
                shown = spell_out(line, keep="\t")
                yield f"#     {shown}".rstrip()
