"""Rules about the shell that expands a variable: the batch script's, or that of each task."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.expansions import names_in, outside_single_quotes, source_at
from lumitui.app.knowledge.site_facts.process_counts import RANK_VARIABLES, loses_ranks
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

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
def rank_set_in_batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
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


def _outer_words(step: JobStep) -> list[tuple[str, Position]]:
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
def rank_expanded_in_batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
            in_setting = any(v.at.line <= at.line <= v.at.end_line for v in job.variables)
            if early and early[0] in said and in_setting:
                continue  # what the line takes over was said there
            if early:
                yield Hit(
                    f"${early[0]} gets its value in the batch script, where it is 0, and not in "
                    "each task.",
                    f"Put the command in single quotes, bash -c '…', or write \\${early[0]}.",
                    at if at.line else step.at,
                )
                break


@rule(
    "container-variable-outside",
    "error",
    "a variable of the image that is expanded outside it",
    why="Only the image sets it. The batch script expands it to nothing, so the environment is "
    "never activated, and an `&&` after it is a syntax error.",
    source="LUMI-training-materials, 205-Containers; the site's profile, containers",
)
def container_variable_outside(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
