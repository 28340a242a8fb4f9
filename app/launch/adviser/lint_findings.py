"""The findings of the neutral rules on a launch, in terms of its job file. Pure.

A shell script that each rank runs may start ranks itself. For an sbatch script, the reader opens
such a file, and the rule `launcher-tasks` applies.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import MOST_LIMITS, JobSpec
from lumitui.app.knowledge import rule_table
from lumitui.app.knowledge.bash.script_reader import read_script
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.adviser.job_model import job_of
from lumitui.app.launch.option_keys import KEY_OF_OPTION
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Cure, Finding, Fix
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import at_key

_ONE_TASK = re.compile(r"SLURM_(?:LOCALID|PROCID)|LOCAL_RANK|(?<![A-Z_])RANK\b|flock|mkdir .*lock")
"""Signs of a script that checks its task number and may start ranks in one task only."""


def nested_findings(job: ScriptJob, site: Site) -> Iterator[Finding]:
    """Yield a finding if each rank runs a shell script that starts ranks itself."""
    for step in job.training:
        ranks = step.rank.per_node or 1
        name = step.program.known if step.program else ""
        text = _text(job, name)
        if not text or step.python or ranks < 2 or _ONE_TASK.search(text):
            continue
        inner = next(_launches(text, site), None)
        if inner is None:
            continue
        starter = "srun" if inner.launcher in ("srun", "plain") else inner.launcher
        program = inner.program.known if inner.program else "the program"
        launcher = starter if starter in site.launchers else "srun"
        yield hit(
            "launcher-in-each-task",
            "script",
            f"{name} starts ranks with {starter}, but each of a node's {ranks} ranks runs it, so "
            "each starts all ranks again.",
            f"Start {program} from the job file: `launcher: {launcher}` and `script: {program}`.",
        )


def _text(job: ScriptJob, name: str) -> str:
    """Return the text of a shell script in the project; "" for any other program."""
    plain = name.removeprefix("./")
    shells = {file: text for file, text in job.files.items() if not file.endswith(".py")}
    scripts = [text for file, text in shells.items() if file == plain or plain.endswith(f"/{file}")]
    return scripts[0] if len(scripts) == 1 and "\0" not in scripts[0] else ""


def _launches(text: str, site: Site) -> Iterator[JobStep]:
    """Yield the steps of a script that start several ranks."""
    for step in read_script(text, site=site).steps:
        options = step.launcher_options
        single = options.value("nproc-per-node", "np", "num-processes", "num-gpus") == "1"
        if step.trains and (step.srun is not None or step.launcher != "plain") and not single:
            yield step


_OPTIONS = (
    "account", "partition", "nodes", "time", "cpus-per-task", "mem", "mem-per-gpu",
    "gpus-per-node", "job-name", "local-disk", "exclusive",
)  # fmt: skip
"""Options with the same value as their key, so that a hint can name the key."""
_OPTION = re.compile(rf"(?:#SBATCH )?--({'|'.join(_OPTIONS)})=([^\s,]*[^\s,.])")
_SHARES = ("cpus_per_task", "memory")
"""Keys to omit so that the job gets the site's share per GPU."""
_WRITTEN = ("gpus_per_node", "sbatch", "exclusive")  # their hint says more than the value
_FIELDS = {
    "account": "account", "retired": "site", "local-disk-missing": "local_disk",
    "shared-cores": "exclusive",
}  # fmt: skip
"""The keys of findings without an option, or with an option that several keys set."""


def findings(
    launch: Launch, place: Placement, files: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return the rules' findings; `files` maps the project's paths to texts."""
    job = job_of(launch, place, files)
    absent = {rule.id: rule.field for rule in place.site.rules if rule.absent}
    hits = [
        _of_job_file(finding, place.spec, _FIELDS.get(finding.rule) or finding.at.field
                     or absent.get(finding.rule, ""))
        for finding in rule_table.findings(job, place.site)
    ]  # fmt: skip
    return [*hits, *nested_findings(job, place.site)]


def _of_job_file(finding: Finding, spec: JobSpec, field: str) -> Finding:
    fix = _cured(finding.cure, field, spec) if finding.cure else None
    fix = fix or (_fix(finding.fix, field) if finding.fix else None)
    do = _named(finding.do, field)
    if fix and fix.at.field == "partition":
        do = f"Use {fix.value}."
    elif fix and fix.at.field not in _WRITTEN and "." not in fix.at.field:
        key = f"`{fix.at.field}:" + ("`" if fix.value is None else f" {fix.value}`")
        do = f"{'Omit' if fix.value is None else 'Set'} {key}.{_in_parts(fix, spec)}"
    where = f"{finding.at.file}, line {finding.at.line}: " if finding.at.file else ""
    return replace(finding, message=f"{where}{finding.message}", do=do,
                   at=replace(finding.at, field=field), fix=fix)  # fmt: skip


def _in_parts(fix: Fix, spec: JobSpec) -> str:
    """Return the hint to split a training run over several time limits, if that is possible."""
    if fix.at.field != "time" or not fix.value:
        return ""
    limits = math.ceil(walltime.seconds_of(spec.time) / walltime.seconds_of(str(fix.value)))
    if not 1 < limits <= MOST_LIMITS:
        return ""
    return f" If the program saves and resumes, `chain: {limits}` gives it the same time in total."


def _cured(cure: Cure, field: str, spec: JobSpec) -> Fix | None:
    """Return the job-file change for a rule's cure; None if no key corresponds."""
    if field == "sbatch":
        name = re.compile(rf"--{re.escape(cure.option)}(?:[=\s]|$)")
        return Fix(f"remove --{cure.option}", at_key(field),
                   tuple(text for text in spec.sbatch if not name.match(text)) or None)  # fmt: skip
    if field == f"env.{cure.option}":
        return Fix(f"remove {cure.option}", at_key(field), cure.value)
    key = KEY_OF_OPTION[cure.option] if cure.option in _OPTIONS else ""
    if key in _SHARES:
        return Fix("use the site's default", at_key(key), None)
    what = cure.value if key != "exclusive" else key
    return Fix(f"use {what}", at_key(key), cure.value) if key else None


def _named(do: str, field: str) -> str:
    """Return a script rule's hint with the job file's key instead of the script's option."""
    do = _OPTION.sub(lambda match: f"`{KEY_OF_OPTION[match[1]]}: {match[2]}`", do)
    do = do.replace("--exclusive", "`exclusive: true`")
    key, _, name = field.partition(".")
    tail = re.sub(rf"^Remove (?:it|the variable|{re.escape(name or 'it')})\b", "", do)
    if tail == do or not field or tail[:1] not in ".;,:":
        return do
    if name and key in ("env", "links"):
        return f"Remove {name} from `{key}:`{tail}"
    if key in ("args", "sbatch"):
        return f"Remove it from `{key}:`{tail}"
    return f"Remove `{field}:`{tail}"


def _fix(edit: Fix, field: str) -> Fix | None:
    """Return the job-file change for an edit of its script, if lumitui can make it."""
    if not field.startswith("env."):
        return None
    text = str(edit.value).strip()
    if not text:
        return Fix(edit.words, at_key(field), None)
    name, equals, value = text.removeprefix("export ").partition("=")
    if not equals or field != f"env.{name}":
        return None
    return Fix(edit.words, at_key(field), value.strip("'\""))
