"""Notes the words of the program's command line that no key of a job file keeps. Pure."""

import re
from collections.abc import Iterator, Sequence

from lumitui.app.knowledge.script_job import Command, CommandWord, JobStep, ScriptJob
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.plain_values import within, written_at
from lumitui.remote.site.source_position import Position

_NOTHING = {
    "srun", "torchrun", "deepspeed", "accelerate", "launch", "mpirun", "mpiexec", "python",
    "python3", "exec", "--", "env", "-m", "torch.distributed.run", "torch.distributed.launch",
    "accelerate.commands.launch", "deepspeed.launcher.runner", "command", "nohup",
}  # fmt: skip
"""Words that only start the program."""
_SHELL = re.compile(
    r"^(?:(?:/usr)?/bin/)?(?:ba|da)?sh$|^-[elx]*c$|^-[el]+$|^--login$|^/usr/bin/env$"
)
_QUIET = {"export", "exec", "set", "wait", ":", "true", "exit", "echo", "printf", "unset"}


def line_of(job: ScriptJob, step: JobStep, activate: str, notes: Notes) -> None:
    """Note the words of the program's command line that the job file lacks.

    `activate` is the command that the profile runs in its containers before the program.
    """
    index = job.steps.index(step)
    explained = [item.at for item in job.variables if item.step == index]
    explained += _explained(step)
    outer = [item for item in job.commands if item.at == step.at][:1]
    inner = [item for item in job.commands if item.step == index and item.at != step.at]
    texts = [word.at for word in step.shells]
    for command in (*outer, *inner):
        if command in outer or (step.program and within(step.program.at, command.at)):
            places = explained + texts if command in outer else explained
            for words in _left(job, command, places, shells=bool(step.shells)):
                if words == "-u":
                    notes.derive("python -u", "the launch sets PYTHONUNBUFFERED")
                else:
                    notes.lose(words, "the new launch lacks it")
        elif activate and _text(job, command) == activate:
            notes.derive(activate, "the launch also runs it")
        elif command.program in ("cd", "pushd"):
            notes.lose(_text(job, command), "the program starts in `workdir:`")
        elif command.program not in _QUIET:
            notes.lose(_text(job, command), "the job runs only the program")
        elif command.program in ("echo", "printf"):
            notes.lose(_text(job, command), "it only prints")


def _text(job: ScriptJob, command: Command) -> str:
    words = " ".join(word.text for word in command.words)
    return written_at(job.text, command.at) or f"{command.program} {words}".strip()


def _explained(step: JobStep) -> list[Position]:
    options = [*(step.srun.all if step.srun else ()), *step.launcher_options.all]
    words = [*step.arguments]
    places = []
    if step.program is not None:
        words.append(step.program)
    if step.container is not None:
        options += step.container.options.all
        words += [step.container.image] if step.container.image else []
        places.append(step.container.at)
    return [*places, *(option.at for option in options), *(word.at for word in words)]


def _left(
    job: ScriptJob, command: Command, explained: Sequence[Position], *, shells: bool
) -> Iterator[str]:
    """Yield the unexplained words of a command, with consecutive words joined."""
    first = CommandWord(_program(job, command), command.at)
    words: list[str] = []
    for word in (first, *command.words):
        place = command.at if word is first else word.at
        plain = word.text in _NOTHING or (word is first and _is_plain(word.text))
        plain = plain or (shells and bool(_SHELL.match(word.text)))
        plain = plain or (word.text in ("exec", "run", "shell") and bool(explained))
        if plain or (word is not first and any(within(place, each) for each in explained)):
            if words:
                yield " ".join(words)
            words = []
        else:
            words.append(word.text)
    if words:
        yield " ".join(words)


def _program(job: ScriptJob, command: Command) -> str:
    """Return a command's program as written, with its folder."""
    written = written_at(job.text, command.at)
    for word in re.findall(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+", written):
        if word.strip("\"'").rstrip("/").rsplit("/", 1)[-1] == command.program:
            return str(word.strip("\"'"))
    return command.program


def _is_plain(text: str) -> bool:
    return text in _NOTHING or "singularity" in text or "apptainer" in text
