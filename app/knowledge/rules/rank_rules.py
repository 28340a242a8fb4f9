"""A rule about a program that never learns which rank it is."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site


@rule(
    "ranks-unused",
    "warning",
    "several ranks of a program that never asks for its rank",
    why="Each rank does the whole work, on all data, and writes the same files: the GPUs are "
    "paid for, and nothing is faster.",
    source="docs.csc.fi, Multi-GPU and multi-node machine learning",
)
def _unused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        told = any(
            re.search(r"RANK|PROCID|LOCALID|NODEID", word.text) for word in run.step.arguments
        )
        if run.world > 1 and not run.knows_ranks and not told and not run.program.fault:
            yield Hit(
                f"The job starts {run.world} ranks of {run.program.file}, which never asks for its "
                "rank: each does the whole work.",
                "Start it once, on one GPU, or share the work with DistributedDataParallel.",
                run.step.at,
            )
