"""Rules about the shell that expands a variable: the batch script's, or that of each task."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.model.steps import Step
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.site_facts.expansions import (
    escaped_in,
    names_in,
    outside_single_quotes,
    source_at,
)
from lumitui.app.knowledge.site_facts.process_counts import RANK_VARIABLES, loses_ranks
from lumitui.app.knowledge.site_facts.site_places import generation_of
from lumitui.remote.site.profile import Site

_RANKS = "csc-user-guide, ml-multi.md; LUMI-AI-Guide ea60bc1, multi-gpu-and-node"
_NODE_RANK = re.compile(r"--(?:node|machine)[_-]rank[= ](?<!\\)\$\{?(SLURM_(?:NODEID|PROCID))\b")
_GIVEN = re.compile(r"--(?:node|machine)[_-]rank[= ][\"']?\$\{?([A-Za-z_]\w*)")
"""The variable that a launcher is given as the rank of its node."""
_OF_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "MACHINE_RANK")


@rule(
    "rank-set-in-batch",
    "error",
    "a rank that the batch script sets for all",
    why="The batch script is one process on the first node. Every task gets its 0, takes itself "
    "for rank 0, and waits for ranks that never come.",
    source=_RANKS,
)
def rank_set_in_batch(job: Job, site: Site) -> Iterator[Hit]:
    """Find `export RANK=$SLURM_PROCID` before srun."""
    if not any(step.srun for step in job.training):
        return
    for variable in job.settings(*_OF_RANKS, *_GIVEN.findall(job.text)):
        of_task = [name for name in names_in(variable.value) if name in RANK_VARIABLES]
        if variable.shell == "batch" and of_task and loses_ranks(job, of_task[0]):
            yield Hit(
                f"{variable.name} is set in the batch script, where ${of_task[0]} is 0 for all "
                "tasks.",
                f"Set it behind srun: srun bash -c 'export {variable.name}=${of_task[0]}; …'.",
                variable.at,
            )


def _outer_words(step: Step) -> list[tuple[str, Position]]:
    """Return the texts behind srun whose variables the batch script may expand."""
    words = [(word.text, word.at) for word in step.shells[:1]]
    if not step.shells:
        words += [(word.text, word.at) for word in step.arguments if word.expanded_in == "batch"]
        words += [(item.value or "", item.at) for item in step.launcher_options.all]
    return words


@rule(
    "rank-expanded-in-batch",
    "error",
    "a rank in the launch line that the batch script expands",
    why="In double quotes or without quotes the variable gets its value before srun starts, "
    "which is 0 for all tasks: every task takes itself for the first.",
    source=_RANKS,
)
def rank_expanded_in_batch(job: Job, site: Site) -> Iterator[Hit]:
    """Find `srun bash -c "RANK=$SLURM_PROCID …"` and `srun torchrun --node_rank $SLURM_NODEID`."""
    said = set[str]()
    for variable in job.variables:
        source = source_at(job, variable.at) or variable.value
        found = _NODE_RANK.search(outside_single_quotes(source))
        if variable.shell == "batch" and found and loses_ranks(job, found[1]):
            said.add(found[1])
            yield Hit(
                f"${found[1]} gets its value in the batch script, where it is 0, and not in each "
                "task.",
                f"Write \\${found[1]}, or put the text in single quotes.",
                variable.at,
            )
    for step in job.training:
        if step.srun is None:
            continue
        for text, at in _outer_words(step):
            source = source_at(job, at) or text
            names = names_in(outside_single_quotes(source))
            early = [n for n in names if n in RANK_VARIABLES and loses_ranks(job, n)]
            if early and early[0] in said and _is_setting(job, at):
                continue
            if early:
                yield Hit(
                    f"${early[0]} gets its value in the batch script, where it is 0, and not in "
                    "each task.",
                    f"Put the command in single quotes, bash -c '…', or write \\${early[0]}.",
                    at if at.line else step.at,
                )
                break


def _is_setting(job: Job, at: Position) -> bool:
    """Whether a place is in a line that sets a variable: what it takes over was said there."""
    return any(each.at.line <= at.line <= each.at.end_line for each in job.variables)


@rule(
    "backslash-in-single-quotes",
    "warning",
    "a backslash before a variable in single quotes",
    why="Single quotes keep the backslash, so that the inner shell takes the variable's name for "
    "its value.",
    source="LUMI-AI-Guide pull request 115; bash(1), quoting",
)
def backslash_in_single_quotes(job: Job, site: Site) -> Iterator[Hit]:
    r"""Find `bash -c 'echo \$RANK'`."""
    for step in job.steps:
        for text in step.shells[:1]:
            if text.quotes != "'":
                continue
            names = escaped_in(text.text)
            if names:
                only_id = all(
                    re.search(rf"rdzv[_-]id[= ]\\\$\{{?{re.escape(name)}", text.text)
                    for name in names
                )
                yield Hit(
                    f"\\${names[0]} in single quotes stays as it is written: the program gets the "
                    "name, and not the value.",
                    f"Write ${names[0]} without the backslash.",
                    text.at,
                    severity="note" if only_id else None,  # the same id on all nodes is enough
                )


@rule(
    "container-variable-outside",
    "error",
    "a variable of the image that is expanded outside it",
    why="Only the image sets it. The batch script puts nothing in its place, so that the "
    "environment is never activated, and `&&` behind it is a syntax error.",
    source="LUMI-training-materials, 205-Containers; the site's profile, containers",
)
def container_variable_outside(job: Job, site: Site) -> Iterator[Hit]:
    """Find `bash -c "$WITH_CONDA; python …"`."""
    own = {name for item in site.containers.values() for name in names_in(item.activate)}
    for step in job.steps:
        for text in step.shells[:1]:
            if not step.container:
                continue
            source = source_at(job, text.at) or text.text
            early = [name for name in names_in(outside_single_quotes(source)) if name in own]
            if early and text.expanded_in == "batch" and text.quotes != "'":
                yield Hit(
                    f"${early[0]} is set only in the image, and the batch script expands it to "
                    "nothing.",
                    f"Write \\${early[0]}, or put the command in single quotes.",
                    text.at,
                )


@rule(
    "activation-of-other-image",
    "warning",
    "an activation that this generation of images does not have",
    why="Images of this generation have their environment in PATH and do not set the variable: "
    "the command is empty, and with `&&` behind it nothing starts.",
    source="the site's profile, containers; LUMI-training-materials, 205-Containers",
)
def activation_of_other_image(job: Job, site: Site) -> Iterator[Hit]:
    """Find `$WITH_CONDA` with an image that does not set it."""
    all_of_them = {name for item in site.containers.values() for name in names_in(item.activate)}
    for step in job.steps:
        image = step.container.image.known if step.container and step.container.image else ""
        generation = generation_of(image, site)
        if generation is None:
            continue
        name, container = generation
        others = all_of_them - set(names_in(container.activate))
        for text in step.shells:
            used = [word for word in names_in(text.text) if word in others]
            if used:
                yield Hit(
                    f"Images of the generation {name} do not set ${used[0]}.",
                    f"Remove ${used[0]}: their Python is in PATH.",
                    text.at,
                )
                break


@rule(
    "ranks-of-other-launcher",
    "error",
    "a rank variable of another launcher than the job's",
    why="Only mpirun sets OMPI_* and PMI_*, only Slurm SLURM_PROCID. The program gets an empty "
    "text, or ends with a KeyError.",
    source="Open MPI, mpirun(1), environment; IT4Innovations, Multi-GPU and Multi-Node, 2023-09-13",
)
def ranks_of_other_launcher(job: Job, site: Site) -> Iterator[Hit]:
    """Find `$OMPI_COMM_WORLD_RANK` in a step that srun starts."""
    for step in job.training:
        texts = [*step.shells, *step.arguments]
        for word in texts:
            mpi = [name for name in names_in(word.text) if name.startswith("OMPI_COMM_WORLD")]
            if mpi and step.srun and not step.mpirun:
                yield Hit(
                    f"${mpi[0]} is set only by mpirun, and srun starts this step.",
                    "Take $SLURM_PROCID, $SLURM_LOCALID and $SLURM_NTASKS.",
                    word.at,
                )
                break


RULES: tuple[Rule, ...] = (
    rank_set_in_batch,
    rank_expanded_in_batch,
    backslash_in_single_quotes,
    container_variable_outside,
    activation_of_other_image,
    ranks_of_other_launcher,
)
