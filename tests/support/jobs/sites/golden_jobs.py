"""The guide's sixteen jobs as job files of ours: what the golden files are composed from."""

from functools import cache
from pathlib import Path
from typing import Literal

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.send.code.project_files import deepspeed_config
from lumitui.remote.site.container import Mpi
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.guide.scripts import SCRIPTS, Script
from tests.support.places import GOLDEN

RESOURCES = "/scratch/project_462000001/resources"
_PACKAGES = "/user-software/lib/python3.12/site-packages/deepspeed/ops/csrc"

_JOB = """
name: {name}
site: lumi
account: project_462000001
partition: standard-g
nodes: {nodes}
time: "01:00:00"
launcher: {launcher}
strategy: {strategy}
trainer: {trainer}
args: [--model, vit, --steps, "3"{batch}]
container: {{generation: {generation}{container}}}
"""


def golden_path(script: Script) -> Path:
    """Return where the golden file of one of the guide's scripts is, if it has one."""
    generation = "legacy" if script.era == "seed" else "laif"
    return GOLDEN / generation / script.name


def job_of(script: Script) -> JobSpec:
    """Return the job file that asks for what one of the guide's scripts does."""
    deepspeed, legacy = script.strategy == "ds", script.era == "seed"
    container = ""
    if legacy:
        container = f", venv: {RESOURCES}/visualtransformer-env.sqsh"
        if deepspeed:
            binds = [
                f"{RESOURCES}/deepspeed_adam:{_PACKAGES}/adam",
                f"{RESOURCES}/deepspeed_includes:{_PACKAGES}/includes",
            ]
            container += f", binds: [{', '.join(binds)}]"
    text = _JOB.format(
        name=script.name.removesuffix(".sh"),
        nodes=script.nodes,
        launcher=script.launcher,
        strategy="zero1" if deepspeed else "ddp",
        trainer="deepspeed_zero" if deepspeed else "ddp",
        batch="" if deepspeed else ', --batch-size, "8"',
        generation="legacy" if legacy else "laif",
        container=container,
    )
    job = parse_job(text, script.name)
    # The legacy image's DeepSpeed compiles an op with the compiler that is there.
    return changed(job, {"env": {"CXX": "g++-12"}}, "env") if legacy and deepspeed else job


def launch_of(script: Script) -> Launch:
    """Return the launch of one of the guide's jobs at LUMI."""
    job = job_of(script)
    site = Sites([BUILT_IN]).load("lumi")
    return compose(job, site, deepspeed_config=deepspeed_config(job, Path(".")))


@cache
def golden_scripts() -> dict[Path, str]:
    """Return what is composed now, by its golden file; few are kept as text, all by their hash."""
    guide = {golden_path(script): launch_of(script).script for script in SCRIPTS}
    return guide | exported_scripts() | launcher_scripts()


def launcher_scripts() -> dict[Path, str]:
    """Return the golden files of the launchers that the guide has no script for."""
    lumi = Sites([BUILT_IN]).load("lumi")
    found = {}
    for launcher, nodes in _LAUNCHERS:
        job = changed(
            parse_job(_PLAIN, "plain"),
            {"partition": "standard-g", "launcher": launcher, "nodes": nodes, "script": "train.py"},
            launcher,
        )
        for kind in _KINDS if launcher == "mpirun" else (None,):
            site = lumi.model_copy(update={"mpi": Mpi(kind=kind)}) if kind else lumi
            path = GOLDEN / "launchers" / f"{kind or launcher}_{nodes}.sh"
            found[path] = compose(job, site).script
    return found


def exported_scripts() -> dict[Path, str]:
    """Return the golden files of `export`, with what is written now."""
    lumi = Sites([BUILT_IN]).load("lumi")
    by_name = {(script.name, script.era): script for script in SCRIPTS}
    launches = {
        "srun": launch_of(by_name["run_ddp_srun_4.sh", "current"]),
        "torchrun": launch_of(by_name["run_ds_torchrun_4.sh", "current"]),
        "plain": compose(parse_job(_PLAIN, "plain"), lumi),
    }
    return {
        GOLDEN / "exported" / f"{name}.sh": plain_script(launch, lumi, name)
        for name, launch in launches.items()
    }


_LAUNCHERS = (("deepspeed", 1), ("deepspeed", 2), ("accelerate", 2), ("mpirun", 2))
_KINDS: tuple[Literal["openmpi", "hydra"], ...] = ("openmpi", "hydra")
_PLAIN = """
name: plain
site: lumi
account: project_462000001
partition: small-g
time: "01:00:00"
launcher: plain
script: train.py
secrets: [WANDB_API_KEY]
args: ["it's"]
"""

if __name__ == "__main__":
    for path, text in golden_scripts().items():
        if path.exists():
            path.write_text(text)
