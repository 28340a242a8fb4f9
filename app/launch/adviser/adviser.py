"""The adviser: a table of rules that find mistakes and bad choices in a launch. Pure.

Each rule is one function. The source in its finding is the document that backs it, named as in the
profiles.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping

from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import argument_value, batch_argument, is_batch_global, no_number
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.launch import deepspeed_batch, rank_memory
from lumitui.app.launch.adviser import lint_findings, trainer_arguments
from lumitui.app.launch.deepspeed_batch import MICRO, argument_words, sent_config, whole
from lumitui.app.launch.placement import Placement, placement_of
from lumitui.app.launch.rules import launcher_rules, mistakes, offline_rules, slurm_rules
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import RANK, Finding, Fix
from lumitui.remote.site.masked_text import masked
from lumitui.remote.site.profile import Site
from lumitui.remote.site.secret_shapes import marks_in, shape_of
from lumitui.remote.site.source_position import at_key


def _image(launch: Launch, place: Placement) -> Iterator[Finding]:
    choice = launch.spec.container
    patterns = {name: item.images for name, item in place.site.containers.items() if item.images}
    if choice.none or choice.image is None or not patterns:
        return
    homes = [name for name, pattern in patterns.items() if re.search(pattern, choice.image)]
    generation = choice.generation or place.site.default_container
    if homes and generation not in homes:
        yield hit(
            "image-generation",
            "container.image",
            f"The image belongs to the generation {homes[0]}, but the job uses {generation}, "
            "whose modules, command and torchrun options do not match it.",
            f"Set `container: {{generation: {homes[0]}}}`.",
            fix=Fix(f"use the generation {homes[0]}", at_key("container.generation"), homes[0]),
        )
    elif not homes and choice.generation is None:
        yield hit(
            "image-unknown",
            "container.image",
            "The image's name does not show its generation: the job uses the modules, the command "
            f"and the options of {generation}.",
            f"Set the image's generation: `container: {{generation: {' or '.join(patterns)}}}`.",
        )


def _lightning_name(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.name in ("bash", "interactive"):
        yield hit(
            "job-name",
            "name",
            f"The name {launch.spec.name!r} disables Lightning's Slurm detection.",
            "Choose another `name:`.",
        )


def _keys_in_words(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    words = [(f"env.{name}", f"{name}={value}") for name, value in spec.env.items()]
    words += [(key, " ".join(text)) for key, text in
              (("args", spec.args), ("resume", spec.resume), ("sbatch", spec.sbatch))]  # fmt: skip
    for key, text in words:
        shapes = [shape_of(mark) for mark in marks_in(text.encode("utf-8", "surrogateescape"))]
        found = [(shape.what, shape.source) for shape in shapes]
        text = re.sub(r"(?<=[=\s\"'])(?:~|\.{0,2})/[^\s\"']*", "$", text)  # a path is not one
        if not found and masked(text) != text:
            found = [("what looks like a password or token", "its name or address")]
        for what, source in found:
            yield hit(
                "secret-in-words",
                key,
                f"`{key}:` contains {what}, which would appear in the script, in the history and "
                "in the job's environment or command line.",
                "List the variable's name under `secrets:`, and read it in the program.",
                source=source,
                severity=None if shapes else "warning",
            )


def _strategy_stage(launch: Launch, place: Placement) -> Iterator[Finding]:
    zero = sent_config(launch).get("zero_optimization")
    configured = zero.get("stage") if isinstance(zero, dict) else None
    stage = STRATEGIES[launch.spec.strategy].zero_stage
    if configured is not None and stage and configured != stage:
        yield hit(
            "zero-stage",
            "strategy",
            f"The strategy is {launch.spec.strategy}, but its configuration has stage "
            f"{configured}.",
            "Use the same stage in both.",
        )


def _config_in_args(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    name, _places = argument_words(spec.args)
    if spec.deepspeed is None and spec.script and name and not name.startswith(("/", "$", "../")):
        path = posixpath.normpath(posixpath.join(spec.workdir, name))
        yield hit(
            "deepspeed-args",
            "args",
            f"`args:` names DeepSpeed's configuration {name}, so lumitui knows neither its global "
            "batch nor its ZeRO stage, and does not adapt it to other numbers of ranks.",
            f"Set `deepspeed: {{config: {path}}}` and `strategy: zero1`, or the stage it sets, "
            "and remove --deepspeed and --deepspeed_config from `args:`; lumitui passes both.",
        )


def _two_micro_batches(launch: Launch, place: Placement) -> Iterator[Finding]:
    name = launch.spec.scale.batch.arg if launch.spec.scale else None
    micro = sent_config(launch).get(MICRO)
    text = argument_value(launch.spec.args, name) if name else None
    if micro is not None and text is not None and whole(text) != micro:
        yield hit(
            "two-micro-batches",
            "args",
            f"{name} is {text}, but DeepSpeed's micro batch is {micro}: the script does not "
            f"train on the global batch of {launch.global_batch} shown here.",
            f"Set {name} to {micro}, or `{MICRO}` to {text}.",
            source=f"DeepSpeed configuration, {MICRO}",
        )


def _batch_split(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, layout, batch = launch.spec, launch.layout, launch.global_batch
    name = batch_argument(spec)
    text = argument_value(spec.args, name) if name else None
    number = place.trainer or re.fullmatch(r" *[+-]?[\d_]+ *", text or "")
    if name and text is not None and whole(text) is None and number:
        error = no_number(name, text)
    elif batch and is_batch_global(spec) and batch % layout.world_size:
        each, most = layout.ranks_per_node, place.partition.max_nodes
        error = deepspeed_batch.indivisible("The global batch", batch, each, layout.nodes, most)
    else:
        return
    yield hit("batch-split", "args", error.message, error.hint)


RULES: tuple[LaunchRule, ...] = (
    *slurm_rules.RULES, *launcher_rules.RULES, *offline_rules.RULES, *mistakes.RULES, _image,
    *rank_memory.RULES, _strategy_stage, _config_in_args, _two_micro_batches, _batch_split,
    _lightning_name, _keys_in_words, *trainer_arguments.RULES,
)  # fmt: skip
_ALSO = {"launcher": "launcher-of-site", "own-option": "option-twice"}
"""Rules of this module, each with the script rule that would repeat its finding."""


def _finishes(program: str) -> bool:
    """Return whether a Python program calls finish() of lumitui_run, which reports a stop."""
    calls = read_python(program, "program").calls
    return any(call.name == "lumitui_run.finish" for call in calls)


def findings(launch: Launch, site: Site, files: Mapping[str, str] | None = None) -> list[Finding]:
    """Return all findings on `launch`, errors first.

    Rules about job files run first; then rules about any script, without duplicates. `files` maps
    the project's paths to texts.
    """
    place = placement_of(launch.spec, site)
    hits = [finding for rule in RULES for finding in rule(launch, place)]
    if files and _finishes(files.get(launch.spec.script or "", "")):
        hits = [one for one in hits if one.rule not in ("chain-contract", "chain-exit")]
    rules = {_ALSO.get(finding.rule, finding.rule) for finding in hits} | {one.rule for one in hits}
    hits += [one for one in lint_findings.findings(launch, place, files) if one.rule not in rules]
    return sorted(hits, key=lambda finding: RANK[finding.severity])
