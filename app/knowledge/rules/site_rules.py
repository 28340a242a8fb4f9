"""Rules that profiles contain as data, applied to a neutral job. Pure."""

import re
from collections.abc import Callable, Iterator

from lumitui.app.knowledge.script_job import CommandOptions, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import has_unknown_sources, whole_nodes
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.profile import Site, SiteRule
from lumitui.remote.site.source_position import NOWHERE, Position

ABSENT = "absent"
"""Under `when:` of a rule: the field must not be set."""
_INTO_CONTAINERS = ("", "SINGULARITYENV_", "APPTAINERENV_")
_Texts = list[tuple[str, Position]]


def findings(job: ScriptJob, site: Site) -> Iterator[Finding]:
    """Yield the findings of the site's own rules: at most one per rule, at its first position."""
    for rule in site.rules:
        place = _place(rule, job, site)
        if place is not None:
            text, at = place
            yield Finding(
                rule.id,
                rule.severity,
                rule.message.format(value=text, nodes=job.nodes),
                rule.do,
                rule.source,
                at,
                _edit(rule, at),
            )


def _place(rule: SiteRule, job: ScriptJob, site: Site) -> tuple[str, Position] | None:
    """Return the text that a rule reports, and its position; None if the rule does not apply."""
    if job.nodes < rule.nodes_from or not _is_about(rule, job, site):
        return None
    if not all(_holds(field, pattern, job) for field, pattern in rule.when.items()):
        return None
    if any(_holds(field, pattern, job) for field, pattern in rule.unless.items()):
        return None
    if rule.absent:
        return ("", NOWHERE) if _holds(rule.field, ABSENT, job) else None
    return _first(rule.matches or "", texts(rule.field, job))


def _is_about(rule: SiteRule, job: ScriptJob, site: Site) -> bool:
    """Return whether a rule applies to jobs with this image, launcher and allocation."""
    if rule.images and not any(re.search(rule.images, image) for image in job.images):
        return False
    launchers = {name for name, _ in _launchers(job)}
    if rule.launchers and not launchers & set(rule.launchers):
        return False
    if rule.allocation is None:
        return True
    return whole_nodes(job, site) is (rule.allocation == "whole")


def _holds(field: str, pattern: str, job: ScriptJob) -> bool:
    found = texts(field, job)
    if pattern == ABSENT:  # an unavailable script may set it
        return not found and not has_unknown_sources(job)
    return _first(pattern, found) is not None


def _first(pattern: str, found: _Texts) -> tuple[str, Position] | None:
    fitting = (item for item in found if re.search(pattern, item[0], re.MULTILINE))
    return next(fitting, None)


def _edit(rule: SiteRule, at: Position) -> Fix | None:
    name = rule.field.removeprefix("env.")
    if rule.cure is None or not at.line:
        return None
    return Fix(f"set {name} to {rule.cure}", at, f"{name}={rule.cure}")


def texts(field: str, job: ScriptJob) -> _Texts:
    """Return the job's texts for a field of a profile's rule, with their positions."""
    head, _, name = field.partition(".")
    if head == "env":
        return _values(name, job)
    read = FIELDS.get(field)
    return read(job) if read else []


def _values(name: str, job: ScriptJob) -> _Texts:
    """Return the values of a variable, whichever way the program receives it."""
    found = [job.variable(f"{prefix}{name}") for prefix in _INTO_CONTAINERS]
    values = [(item.value, item.at) for item in found if item is not None]
    for step in job.steps:
        for option in step.container.options.all if step.container else ():
            key, _, value = (option.value or "").partition("=")
            if option.name == "env" and key == name:
                values.append((value, option.at))
    return values


def _lines(options: CommandOptions) -> _Texts:
    return [
        (f"--{option.name}" + ("" if option.value is None else f"={option.value}"), option.at)
        for option in options.all
    ]


def _partition(job: ScriptJob) -> _Texts:
    option = job.options.get("partition")
    name = job.resources.partition
    return [(name, option.at if option else NOWHERE)] if name else []


def _launchers(job: ScriptJob) -> _Texts:
    """Return the launchers by their job-file names: srun if it starts the ranks itself."""
    return [
        ("srun" if step.launcher == "plain" and step.srun else step.launcher, step.at)
        for step in job.training
    ]


def _arguments(job: ScriptJob) -> _Texts:
    return [(word.known, word.at) for step in job.training for word in step.arguments]


def _modules(job: ScriptJob) -> _Texts:
    loads = [
        (word.known, word.at)
        for command in job.commands
        if command.program in ("module", "ml")
        for word in command.words
    ]
    places = dict(loads)
    return [(name, places.get(name, NOWHERE)) for name in job.modules]


def _words(job: ScriptJob) -> _Texts:
    found = [(command.program, command.at) for command in job.commands]
    found += [
        (text, word.at)
        for command in job.commands
        for word in command.words
        for text in dict.fromkeys((word.text, word.known))
    ]
    return found + [(item.value, item.at) for item in job.variables] + _arguments(job)


def _images(job: ScriptJob) -> _Texts:
    calls = (step.container for step in job.steps)
    return [(call.image.known, call.image.at) for call in calls if call and call.image]


def _calls(job: ScriptJob) -> _Texts:
    calls = (step.container for step in job.steps)
    return [(f"{call.program} {call.verb}".strip(), call.at) for call in calls if call]


def _binds(job: ScriptJob) -> _Texts:
    """Return the binds of each call, together with those that variables add."""
    names = [f"{program}_{kind}" for program in ("SINGULARITY", "APPTAINER")
             for kind in ("BIND", "BINDPATH")]  # fmt: skip
    common = [value for name in names for value, _ in _values(name, job)]
    calls = (step.container for step in job.steps)
    return [
        (",".join([*common, *(word.known for word in call.binds)]), call.at)
        for call in calls
        if call and (common or call.binds)
    ]


def _links(job: ScriptJob) -> _Texts:
    """Return the targets of the job's links."""
    return [
        (word.known, word.at)
        for command in job.commands
        if command.program == "ln"
        for word in command.words
    ]


def _folders(job: ScriptJob) -> _Texts:
    """Return the folders in which the job works."""
    found = [(option.value or "", option.at) for option in job.options.all
             if option.name == "chdir"]  # fmt: skip
    return found + [
        (command.words[0].known, command.words[0].at)
        for command in job.commands
        if command.program == "cd" and command.shell == "batch" and command.words
    ]


def _divided(job: ScriptJob) -> _Texts:
    """Return the GPUs that simultaneous programs divide without overlap."""
    if not any(step.background for step in job.training):
        return []
    beside = {
        number for number, step in enumerate(job.steps) if step.background and step.trains
    } | {None}
    lists = [
        item
        for item in job.variables
        if item.name.endswith("_VISIBLE_DEVICES") and item.step in beside
    ]
    texts_of = sorted({item.value.replace(" ", "") for item in lists})
    named = sorted(part for text in texts_of for part in text.split(","))
    most = job.resources.gpus_per_node or 0
    apart = len(texts_of) > 1 and len(set(named)) == len(named)
    if not apart or not all(part.isdecimal() and int(part) < most for part in named):
        return []
    return [(",".join(named), lists[0].at)]


FIELDS: dict[str, Callable[[ScriptJob], _Texts]] = {
    "sbatch": lambda job: _lines(job.options),
    "srun": lambda job: [line for step in job.steps if step.srun for line in _lines(step.srun)],
    "partition": _partition,
    "launcher": _launchers,
    "args": _words,
    "module": _modules,
    "words": _words,
    "container.image": _images,
    "container.call": _calls,
    "container.binds": _binds,
    "gpus.divided": _divided,
    "links": _links,
    "workdir": _folders,
}
"""Functions that read the fields of profile rules, and `env.NAME`, from the neutral job."""
