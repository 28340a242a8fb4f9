"""Rules about a program as such: whether Python can read it, and what cannot work in a job."""

import posixpath
import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_LONG_SLEEP = 60  # seconds; shorter ones wait for a file or a neighbour
_ELSEWHERE = re.compile(r"^(?:[A-Za-z]:[\\/]\w|/Users/\w|/content/\w|/kaggle/\w|/mnt/c/)")
_SOURCE = "docs.python.org, the Python language reference"


@rule(
    "python-syntax",
    "error",
    "a Python file that Python cannot read",
    why="The job waits in the queue, starts all its ranks, and each of them ends at once with a "
    "SyntaxError.",
    source=_SOURCE,
)
def _syntax(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program in (run.program, *run.modules):
            if program.fault and not program.fault.python2:
                what = program.fault.message.rstrip("?.")
                always = posixpath.normpath(program.file) in run.needed
                then = "Every rank would end at once." if always else "It ends who imports it."
                yield Hit(
                    f"Python cannot read {program.file}: {what}. {then}",
                    f"Correct line {program.fault.at.line} of {program.file}; "
                    f"`python -m py_compile {program.file}` shows the place.",
                    program.fault.at,
                    severity=None if always else "warning",
                )


@rule(
    "python-2",
    "error",
    "a program written for Python 2",
    why="Python 3 reads `print x` and `except A, e` as syntax errors, and the clusters have no "
    "Python 2.",
    source="docs.python.org, What's New In Python 3.0",
)
def _python_2(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program in (run.program, *run.modules):
            if program.fault and program.fault.python2:
                yield Hit(
                    f"{program.file} is written for Python 2 (line {program.fault.at.line}), and "
                    "Python 3 cannot read it.",
                    f"Convert it with `2to3 -w {program.file}`, or write it anew for Python 3.",
                    program.fault.at,
                    severity=None if posixpath.normpath(program.file) in run.needed else "warning",
                )


@rule(
    "asks-for-input",
    "error",
    "a program that waits for a person",
    why="A job has no terminal: `input()` ends with EOFError, and the debugger ends the program.",
    source="docs.python.org, input(): EOFError; slurm.schedmd.com/sbatch.html: no terminal",
)
def _asks(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls("input", "breakpoint", "pdb.set_trace", "ipdb.set_trace"):
            named = call.name in ("input", "breakpoint", "pdb.set_trace", "ipdb.set_trace")
            if named and program.always(call):
                yield Hit(
                    f"{program.file} calls {call.name}(), and a job has no terminal to answer it: "
                    "the program ends there with an error.",
                    "Remove the call, or take the answer from an argument.",
                    call.at,
                )


@rule(
    "shows-plot",
    "note",
    "a plot that nobody can see",
    why="A node has no screen: matplotlib falls back to a file format, and `show()` does nothing.",
    source="matplotlib.org, Backends: Agg is not interactive",
)
def _plot(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls("matplotlib.pyplot.show"):
            yield Hit(
                f"{program.file} calls plt.show(), and a node has no screen: nothing is shown or "
                "kept.",
                'Write plt.savefig("plot.png") instead.',
                call.at,
            )


@rule(
    "other-machine-path",
    "warning",
    "a path of another machine",
    why="A path of a laptop, of Colab or of Kaggle does not exist on the cluster's nodes.",
    source="docs.csc.fi, Supercomputer storage: /users, /projappl, /scratch",
)
def _elsewhere(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for text in run.texts:
            if _ELSEWHERE.match(text.value) and "\n" not in text.value:
                yield Hit(
                    f"{text.at.file} names {text.value[:60]}, a path of a different machine.",
                    "Pass the path as an argument, and give it in the job.",
                    text.at,
                )


@rule(
    "sleeps",
    "warning",
    "a program that sleeps while its GPUs are billed",
    why="All nodes of a job are billed until its last rank ends, whether they compute or not.",
    source="docs.lumi-supercomputer.eu, Billing policy",
)
def _sleeps(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls("time.sleep"):
            seconds = run.value(call.get("", 0))
            if (
                isinstance(seconds, int | float)
                and seconds >= _LONG_SLEEP
                and not call.loops
                and (program.always(call))
            ):
                nodes = f"{job.nodes} nodes are" if job.nodes > 1 else "the node is"
                yield Hit(
                    f"{program.file} sleeps for {seconds:g} seconds, while {nodes} billed.",
                    "Remove the sleep; wait for other ranks with a barrier.",
                    call.at,
                )


@rule(
    "withdrawn-lightning",
    "error",
    "a release of Lightning that was withdrawn",
    why="2.6.2 and 2.6.3 were published by an attacker and taken back: pip no longer finds them, "
    "and an environment that has them is not safe.",
    source="github.com/Lightning-AI/pytorch-lightning/issues/21691",
)
def _withdrawn(job: Job, site: Site) -> Iterator[Hit]:
    pinned = re.compile(r"\b((?:pytorch-)?lightning)\s*==\s*(2\.6\.[23])\b")
    found = [
        (match, word.at)
        for command in job.commands
        for word in command.words
        if command.program.startswith(("pip", "python", "uv"))
        and (match := pinned.search(word.known))
    ]
    for file, text in job.files.items():
        if file.endswith(".txt"):
            found += [
                (match, Position(number, match.start() + 1, number, match.end() + 1, file))
                for number, line in enumerate(text.splitlines(), 1)
                if (match := pinned.search(line))
            ]
    for match, at in found:
        yield Hit(
            f"{match[1]} {match[2]} was withdrawn: it was published by an attacker.",
            f"Write {match[1]}==2.6.4, and change the credentials that were used with it.",
            at,
        )


RULES: tuple[Rule, ...] = (_syntax, _python_2, _asks, _plot, _elsewhere, _sleeps, _withdrawn)
"""Every rule of this subject."""
