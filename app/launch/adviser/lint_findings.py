"""What the neutral rules find in a launch, said of its job file. Pure."""

from collections.abc import Mapping

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge import rule_table
from lumitui.app.knowledge.rule import Edit
from lumitui.app.knowledge.rule import Finding as Found
from lumitui.app.launch.adviser import nested_launcher
from lumitui.app.launch.adviser.job_model import job_of
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.finding import Finding, Fix

_WRITTEN = {
    "account": "account", "partition": "partition", "nodes": "nodes", "time": "time",
    "cpus-per-task": "cpus_per_task", "mem": "memory", "gpus-per-node": "gpus_per_node",
    "job-name": "name",
}  # fmt: skip
"""The key of the job file that has the same value as an option of sbatch."""


def findings(
    launch: Launch, place: Placement, files: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return what the rules find; `files` has texts of the project by their paths in it."""
    job = job_of(launch, place, files)
    absent = {rule.id: rule.field for rule in place.site.rules if rule.absent}
    said = [
        _of_job_file(found, place.spec, found.at.field or absent.get(found.rule, ""))
        for found in rule_table.findings(job, place.site)
    ]
    return [*said, *nested_launcher.findings(job, place.site)]


def _of_job_file(found: Found, spec: JobSpec, field: str) -> Finding:
    fix = _fix(found.edit, field, spec) if found.edit else None
    do = f"{_set(fix)}." if fix and found.do.startswith("Write --") else found.do
    do = _named(do, field)
    if found.rule == "share-memory" and field == "memory":  # left out, it is the share
        fix = Fix("take the GPUs' share of the memory", field, None)
        do = "Leave `memory:` out, or ask for as many GPUs."
    where = f"{found.at.file}, line {found.at.line}: " if found.at.file else ""
    return Finding(
        found.rule, found.severity, f"{where}{found.message}", do, found.source, field, fix
    )


def _named(do: str, field: str) -> str:
    """Return what to do with its key: the words of a script say `it` of a line that they show."""
    rest = do.removeprefix("Remove it")
    if rest == do or not field or rest[:1] not in ".;,:":
        return do
    key, _, name = field.partition(".")
    if name and key in ("env", "links"):
        return f"Remove {name} from `{key}:`{rest}"
    if key in ("args", "sbatch"):
        return f"Remove it from `{key}:`{rest}"
    return f"Remove `{field}:`{rest}"


def _set(fix: Fix) -> str:
    if fix.value is None:
        return f"Leave out `{fix.field}:`"
    return f"Set `{fix.field}: {fix.value}`"


def _fix(edit: Edit, field: str, spec: JobSpec) -> Fix | None:
    """Return the change of the job file that an edit of its script stands for; None: none does."""
    text = edit.text.strip()
    if field.startswith("env."):
        name, equals, value = text.removeprefix("export ").partition("=")
        value = value.strip("'\"")
        if not text:
            return Fix(edit.words, field, None)
        return Fix(edit.words, field, value) if equals and field == f"env.{name}" else None
    if field == "sbatch":
        return None
    option, equals, value = text.removeprefix("#SBATCH").strip().removeprefix("--").partition("=")
    if equals and _WRITTEN.get(option) == field and value.strip() and "$" not in value:
        return Fix(edit.words, field, value.strip())
    return None
