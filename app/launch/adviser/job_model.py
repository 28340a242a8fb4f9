"""A launch as the neutral job that the adviser's rules read, with the job file's fields. Pure.

The rules read the launch's script for plain Slurm like any other script, so only the templates
describe what a launcher does. This module adds the key of the job file to each part.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.script_job import (
    Command,
    CommandOptions,
    CommandWord,
    ContainerCall,
    JobStep,
    Option,
    ScriptJob,
    Variable,
)
from lumitui.app.launch.compose import plain_script
from lumitui.app.launch.option_keys import KEY_OF_OPTION
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.program_call import BUNDLED
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG
from lumitui.remote.site.source_position import Position

_NAME = "job"
"""Placeholder for the job's name, which may contain any character."""


def job_of(launch: Launch, place: Placement, files: Mapping[str, str] | None = None) -> ScriptJob:
    """Return the launch, of `place` at its site, as a neutral job; InputError as for `compose`.

    `files` has the texts of the project by path, if they are available.
    """
    spec, site = place.spec, place.site
    script = plain_script(launch, site, _NAME)
    job = read_script(script, site=site)
    lines = enumerate(script.splitlines(), 1)
    own = {number for number, line in lines if line.removeprefix("#SBATCH ") in spec.sbatch}
    texts = dict(files or {})
    if config := launch.texts.get(DEEPSPEED_CONFIG):
        texts[_config_name(spec)] = config  # as sent, with the batch of these ranks
    return replace(
        job,
        origin="job file",
        name=spec.name,
        troubles=tuple(
            replace(one, at=_at(one.at, "sbatch")) if one.at.line in own else one
            for one in job.troubles
        ),
        options=CommandOptions(tuple(_option(option, spec) for option in job.options.all)),
        variables=tuple(_variable(item, spec) for item in job.variables),
        commands=(*job.commands, *_links(spec)),
        steps=tuple(_steps(job.steps, place)),
        files=MappingProxyType(texts),
    )


def _links(spec: JobSpec) -> Iterator[Command]:
    """Yield `links:` as commands: lumitui creates them before the job starts."""
    for name, target in spec.links.items():
        at = Position(field=f"links.{name}")
        yield Command(
            "ln", (CommandWord("-s", at), CommandWord(target, at), CommandWord(name, at)), at
        )


def _config_name(spec: JobSpec) -> str:
    """Return the project path of DeepSpeed's configuration; the run gets a copy."""
    return spec.deepspeed.config if spec.deepspeed else DEEPSPEED_CONFIG


def _at(place: Position, field: str) -> Position:
    return replace(place, field=field)


def _option(option: Option, spec: JobSpec) -> Option:
    if option.name == "job-name":
        return replace(option, value=spec.name, at=_at(option.at, "name"))
    own = any(option.raw.strip() == text.strip() for text in spec.sbatch)
    field = "sbatch" if own else KEY_OF_OPTION.get(option.name, "")
    return replace(option, at=_at(option.at, field))


def _variable(variable: Variable, spec: JobSpec) -> Variable:
    if variable.name == "SIF" and spec.container.image:
        return replace(variable, at=_at(variable.at, "container.image"))
    own = variable.name in spec.env and variable.shell == "batch"
    if not own:
        return variable
    return replace(variable, at=_at(variable.at, f"env.{variable.name}"))


def _steps(steps: tuple[JobStep, ...], place: Placement) -> Iterator[JobStep]:
    """Yield the steps; only the job's own program counts as training, whatever its name."""
    trainer, spec = place.trainer, place.spec
    path = f"{BUNDLED}/{trainer.file}" if trainer else spec.script or ""
    for step in steps:
        if step.program is not None and step.program.known.endswith(f"/{path}"):
            yield _main(replace(step, trains=True), spec)
        elif step.program is not None and step.program.text == "$@" and spec.script:
            yield _main(_own_command(step, spec), spec)
        else:
            yield replace(step, trains=False)


def _own_command(step: JobStep, spec: JobSpec) -> JobStep:
    """Return the step of a script without an interpreter, which a shell starts as `"$@"`."""
    at = step.at
    words = tuple(CommandWord(text, at, value=text) for text in spec.args)
    resume = tuple(CommandWord(text, _at(at, "resume"), value=text) for text in spec.resume)
    program = CommandWord(spec.script or "", at, value=spec.script)
    return replace(step, trains=True, program=program, arguments=(*words, *resume))


def _main(step: JobStep, spec: JobSpec) -> JobStep:
    """Return the step of the job's program with the job file's fields and its script's name."""
    container = _container(step.container, spec) if step.container else None
    field = "trainer" if spec.trainer else "script"
    program = step.program
    if program is not None and spec.script and program.known.endswith(spec.script):
        program = replace(program, text=spec.script, value=spec.script)
    return replace(
        step,
        at=_at(step.at, "launcher"),
        container=container,
        srun=_launching(step.srun) if step.srun else None,
        launcher_options=_launching(step.launcher_options),
        program=replace(program, at=_at(program.at, field)) if program else None,
        arguments=tuple(_arguments(step.arguments, spec)),
    )


def _arguments(words: tuple[CommandWord, ...], spec: JobSpec) -> Iterator[CommandWord]:
    """Yield the program's arguments, with those of `resume:` in place of the script's variable."""
    for word in words:
        if word.at.field == "resume":
            yield word
        elif word.known.startswith("${resume["):
            at = _at(word.at, "resume")
            yield from (CommandWord(text, at, value=text) for text in spec.resume)
        else:
            yield _argument(word, spec)


def _argument(word: CommandWord, spec: JobSpec) -> CommandWord:
    if word.known.endswith(f"/{DEEPSPEED_CONFIG}"):
        name = _config_name(spec)
        return replace(word, text=name, value=name, at=_at(word.at, "deepspeed.config"))
    return _word(word, "args")


def _launching(options: CommandOptions) -> CommandOptions:
    return CommandOptions(tuple(replace(item, at=_at(item.at, "launcher")) for item in options.all))


def _container(call: ContainerCall, spec: JobSpec) -> ContainerCall:
    binds = tuple(
        _word(bind, "container.binds" if bind.known in spec.container.binds else "")
        for bind in call.binds
    )
    image = _word(call.image, "container.image") if call.image else None
    return replace(call, at=_at(call.at, "container.image"), image=image, binds=binds)


def _word(word: CommandWord, field: str) -> CommandWord:
    return replace(word, at=_at(word.at, field))
