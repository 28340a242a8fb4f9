"""How the adviser does on job descriptions and scripts of other people: `make exam`.

SCRIPTS=<folder> reads the public scripts' texts from there; --held-out takes those put aside.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.job.spec import parse_job
from lumitui.app.knowledge.bash.script_reader import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.adviser import adviser
from lumitui.app.launch.compose import compose
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.exam.jobs.cases import Case, Script, bad, good, scripts, scripts_folder

SITES = Sites([BUILT_IN])
NO_PROFILE = "laptop"
"""The profile with which a script of a machine without one is read; what is found is not scored."""


SHORT = 60
"""Characters: a longer line says many things."""


@dataclass(frozen=True)
class Said:
    """An error or a warning about a job."""

    rule: str
    severity: str
    words: str
    """Its message and what to do."""
    place: str
    """The line, or the key of the job file."""

    def __str__(self) -> str:
        return f"{self.place}: {self.severity} {self.rule}: {self.words}"


def said_of_script(text: str, site: str, files: dict[str, str] | None = None) -> list[Said]:
    """Return the errors and warnings about a script."""
    profile = SITES.load(site)
    return [
        Said(item.rule, item.severity, f"{item.message} {item.do}", str(item.at.line))
        for item in findings(read_script(text, site=profile, files=files or {}), profile)
        if item.severity != "note"
    ]


def said_of_job_file(text: str, site: str) -> list[Said]:
    """Return the errors and warnings about a job file; one that cannot be composed is refused."""
    profile = SITES.load(site)
    try:
        found = adviser.findings(compose(parse_job(text, "job.yaml"), profile), profile)
    except InputError as refused:
        return [Said("refused", "error", str(refused), "")]
    return [
        Said(item.rule, item.severity, f"{item.message} {item.do}", item.at.field)
        for item in found
        if item.severity != "note"
    ]


def said_of(case: Case) -> list[Said]:
    """Return the errors and warnings about a description of the exam."""
    if case.job_file:
        return said_of_job_file(case.text, case.site)
    return said_of_script(case.text, case.site, case.files)


def caught(case: Case) -> bool:
    """Return whether an error or a warning names the mistake.

    It stands in the output under its line, so that a short line says what it is about.
    """
    lines = case.text.splitlines()
    return any(
        case.named_by(f"{item.rule} {item.words} {_short_line(lines, item.place)}")
        for item in said_of(case)
    )


def _short_line(lines: Sequence[str], place: str) -> str:
    line = lines[int(place) - 1] if place.isdecimal() and 0 < int(place) <= len(lines) else place
    return line if len(line) < SHORT else ""


def missed(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return the bad descriptions whose mistake nothing names."""
    return tuple(case for case in cases if not caught(case))


def false_alarms(cases: Sequence[Case]) -> tuple[tuple[Case, Said], ...]:
    """Return what is said about good descriptions."""
    return tuple((case, item) for case in cases for item in said_of(case))


_READ: dict[str, Callable[[ScriptJob], object]] = {
    "nodes": lambda job: job.resources.nodes or 1,
    "tasks": lambda job: job.resources.tasks,
    "per_node": lambda job: job.resources.tasks_per_node,
    "cpus": lambda job: job.resources.cpus_per_task,
    "gpus": lambda job: job.resources.gpus_per_node,
    "launcher": lambda job: _launcher(job),
    "srun": lambda job: job.training[0].srun is not None,
    "container": lambda job: _container(job),
    "program": lambda job: _program(job),
}


def _launcher(job: ScriptJob) -> str:
    step = job.training[0]
    return "srun" if step.launcher == "plain" and step.srun is not None else step.launcher


def _container(job: ScriptJob) -> str:
    call = job.training[0].container
    return f"{call.program} {call.verb}".strip() if call else ""


def _program(job: ScriptJob) -> str:
    program = job.training[0].program
    return program.known if program else ""


def misread(script: Script, text: str) -> Iterator[str]:
    """Yield where the reader takes a script for something else than a person did."""
    job = read_script(text, site=SITES.load(script.site or NO_PROFILE))
    for key, right in script.says.items():
        read = _READ[key](job) if job.training or key in list(_READ)[:5] else "no program"
        same = str(read).endswith(str(right)) if key == "program" else read == right
        if not same:
            yield f"{key} is {right}, read {read}"


@dataclass(frozen=True)
class Read:
    """What came of a public script."""

    script: Script
    wrong: tuple[str, ...]
    """Where the reader differs from a person."""
    found: tuple[Said, ...]

    @classmethod
    def of(cls, script: Script, folder: Path) -> "Read":
        """Read and judge it."""
        text = script.text(folder)
        found = said_of_script(text, script.site) if script.site else []
        return cls(script, tuple(misread(script, text)), tuple(found))


def main(arguments: Sequence[str]) -> None:
    """Print the figures, and what they leave out."""
    silent, alarms = missed(bad()), false_alarms(good())
    files = sum(case.job_file for case in bad())
    print(f"bad job descriptions: {len(bad()) - len(silent)} of {len(bad())} caught "
          f"({len(bad()) - files} scripts, {files} job files)")  # fmt: skip
    for case in silent:
        print(
            f"  {case.id}: {case.mistake}; said: {'; '.join(map(str, said_of(case))) or 'nothing'}"
        )
    print(f"good job descriptions: {len(alarms)} false alarms on {len(good())}")
    for case, item in alarms:
        print(f"  {case.id}: {item}")
    _print_scripts(held_out="--held-out" in arguments, long="--all" in arguments)


def _print_scripts(*, held_out: bool, long: bool) -> None:
    folder = scripts_folder()
    if folder is None:
        print("public scripts: not read, SCRIPTS names no folder")
        return
    read = [Read.of(script, folder) for script in scripts() if script.held_out == held_out]
    known = [item for item in read if item.script.site]
    judged = [item for item in read if item.script.says]
    wrong = sum(bool(item.wrong) for item in judged)
    print(f"public scripts: {len(read)}; of {len(judged)} that a person read {wrong} are misread")
    count = sum(len(item.found) for item in known)
    print(f"  {count} errors and warnings on the {len(known)} of sites with a profile")
    for item in read if long else ():
        print(f"  {item.script.key} ({item.script.site or 'no profile'})")
        for line in (*item.wrong, *map(str, item.found)):
            print(f"    {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
