"""Records of runs for tests that need no site."""

from lumitui.app.compose import compose
from lumitui.app.job import parse_job
from lumitui.app.records import Provenance, Run
from lumitui.remote.scheduler import State
from lumitui.remote.site import BUILT_IN, Sites

JOB = """
name: made
site: lumi
account: project_462000001
partition: standard-g
time: "01:00:00"
script: train.py
"""


def a_run() -> Run:
    """Return a run at LUMI that was composed and never sent."""
    spec = parse_job(JOB, "made")
    launch = compose(spec, Sites([BUILT_IN]).load("lumi"))
    return Run(
        id="made-000001",
        name=spec.name,
        site=spec.site,
        created=1.0,
        parent=None,
        spec=spec,
        script=launch.script,
        command="sbatch",
        layout=launch.layout,
        price=launch.price,
        global_batch=launch.global_batch,
        deepspeed_config=None,
        project="/nowhere",
        job_file=None,
        folder="/scratch/project_462000001/me/lumitui/p/runs/made-000001",
        root="/scratch/project_462000001/me/lumitui/p",
        token="0" * 16,
        provenance=Provenance(None, None, "", False),
        state=State.SENDING,
    )
