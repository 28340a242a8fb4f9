"""What the ranks of a correctly bound job on LUMI-G report to the proof of binding."""

import json

from lumitui.app.explain.proof.binding_proof import Verdict, verdict
from lumitui.app.job.launch import RankLayout

CORES = ("49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47")
"""The cores of each local rank."""
ALL_GPUS = "0,1,2,3,4,5,6,7"
EXACT = RankLayout(2, 8, 8, 7, 8, True, ("0xfe",) * 8, CORES)
"""Two nodes of eight ranks, each bound to its seven cores."""
Report = dict[str, object]
"""What one rank reports."""


def reports(layout: RankLayout, nodes: list[int] | None = None) -> list[Report]:
    """Return the reports of all ranks, or of the ranks on `nodes` (numbered from 0)."""
    return [
        {
            "rank": node * 8 + local,
            "local_rank": local,
            "host": f"nid{5001 + node:06d}",
            "cores": CORES[local],
            "gpus": ALL_GPUS,
        }
        for node in (range(layout.nodes) if nodes is None else nodes)
        for local in range(8)
    ]


def verdict_on(items: list[Report], layout: RankLayout = EXACT) -> Verdict:
    """Return the verdict on these reports of a job that has ended."""
    return verdict(json.dumps(items), layout, ended=True)
