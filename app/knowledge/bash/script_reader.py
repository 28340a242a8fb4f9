"""A script as a neutral job."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from lumitui.app.knowledge.bash.command_line import of_srun
from lumitui.app.knowledge.bash.directives import BYTE_ORDER_MARK, read_directives
from lumitui.app.knowledge.bash.interpreter import Interpreter
from lumitui.app.knowledge.bash.origins import File, ParsedSource
from lumitui.app.knowledge.bash.parsed_text import Tree
from lumitui.app.knowledge.bash.rank_shares import rank_of
from lumitui.app.knowledge.bash.resource_options import resources_of
from lumitui.app.knowledge.bash.scope import Scope
from lumitui.app.knowledge.bash.shell_state import Reading
from lumitui.app.knowledge.bash.syntax_mistakes import early_end, troubles_of
from lumitui.app.knowledge.script_job import ContainerCall, JobStep, ScriptJob, Trouble
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

_LARGEST = 262_144
"""Characters of a script that is read; Slurm itself takes 4 MiB (`max_script_size`)."""
_PREPARES = ("download", "prepare", "preprocess", "prefetch", "setup", "convert", "tokenize",
             "tokenise", "make_", "build_", "check_", "merge_", "plot", "collect_",
             "fetch", "preflight", "probe")  # fmt: skip


def read_script(
    text: str, *, site: Site, files: Mapping[str, str] | None = None, folder: str | None = None
) -> ScriptJob:
    """Return the job that a script is at `site`. Whatever the text is, this raises nothing.

    `files` has texts that the job names, by the paths it uses; `folder` is where it is submitted.
    """
    clean = (
        text.removeprefix(BYTE_ORDER_MARK)
        .replace("\r\n", "\n")
        .replace("\r", " ")
        .replace("\0", " ")
    )
    directives = read_directives(clean)
    reading = Reading(files or {})
    reading.troubles += [*_of_bytes(text), *directives.troubles]
    if not _is_odd(clean):
        tree = Tree(ParsedSource.of(File(clean)))
        reading.troubles += troubles_of(tree)
        reading.end = early_end(tree) or NOWHERE
        Interpreter(reading, tree, Scope()).walk()
    else:
        message = "The script is too long to be read; only its #SBATCH lines are."
        reading.troubles.append(Trouble("not-understood", message, File(clean).position(0, 1)))
    resources = resources_of(directives.options, site)
    variables = tuple(reading.variables)
    steps = tuple(_in_container(_with_roles(reading.steps), of_srun(directives.options)))
    main = next((step for step in reversed(steps) if step.trains), None)
    name = directives.options.value("job-name") or ""
    written = {name: source.text for name, source in reading.written.items()}
    return ScriptJob(
        origin="script",
        name=name,
        text=text,
        options=directives.options,
        resources=resources,
        variables=variables,
        commands=tuple(reading.commands),
        steps=steps,
        modules=tuple(reading.modules),
        rank=rank_of(
            main, resources, directives.options, variables, inherits=site.srun_inherits_cpus
        ),
        shebang=directives.shebang,
        troubles=tuple(dict.fromkeys(reading.troubles)),
        files=MappingProxyType({**(files or {}), **written}),
        written=MappingProxyType({name: _lines(each) for name, each in reading.written.items()}),
        folder=folder,
        strategy="deepspeed" if main is not None and main.launcher == "deepspeed" else "",
        end=reading.end,
    )


def _lines(source: ParsedSource) -> tuple[Position, ...]:
    """Return where each line of a written file stands."""
    positions, start = [], 0
    for line in source.text.split("\n"):
        positions.append(source.position(start, start + max(1, len(line))))
        start += len(line) + 1
    return tuple(positions)


def _is_odd(text: str) -> bool:
    """Whether parsing could take long: no person wrote that many operators in a row."""
    signs = sum(text.count(sign) for sign in "|<>(=")
    return len(text) > _LARGEST or (len(text) > 8_192 and signs * 6 > len(text))


def _of_bytes(text: str) -> Iterator[Trouble]:
    """Yield what is wrong with the characters of a text."""
    if text.startswith(BYTE_ORDER_MARK):
        message = "A byte order mark precedes its first line, so sbatch finds no `#!` and "
        message += "refuses the job."
        yield Trouble("bad-shebang", message, File(text).position(0, 1), "byte order mark")
    for what, sign, message in (
        (
            "windows-line-ends",
            "\r\n",
            "The lines end as on Windows (CR LF): sbatch refuses the job.",
        ),
        (
            "not-text",
            "\0",
            "The script is not UTF-8 (it has NUL characters): sbatch refuses the job.",
        ),
    ):
        place = text.find(sign)
        if place >= 0:
            yield Trouble(what, message, File(text).position(place, place + 1))


def _with_roles(steps: Sequence[JobStep]) -> Iterator[JobStep]:
    """Yield the steps; what one process prepares beside a launched training does not train."""
    launched = any(step.trains and (step.srun or step.launcher != "plain") for step in steps)
    for step in steps:
        program = step.program.known.rsplit("/", 1)[-1].lower() if step.program else ""
        alone = step.srun is None and step.launcher == "plain"
        prepares = program.startswith(_PREPARES) and step.launcher == "plain" and len(steps) > 1
        yield replace(step, trains=False) if (alone and launched) or prepares else step


def _in_container(steps: Iterable[JobStep], container: ContainerCall | None) -> Iterator[JobStep]:
    """Yield the steps; a container that sbatch enters by a plugin holds for those without one."""
    for step in steps:
        own = container is None or step.container is not None
        yield step if own else replace(step, container=container)
