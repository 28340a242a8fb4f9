"""The launchers: what each one's header says, what it makes of a job's script, and how it ends."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.launcher_templates import launchers
from lumitui.remote.site.container import Mpi
from lumitui.remote.site.errors import InputError
from tests.support.guide.scripts import MASKS
from tests.support.jobs.sites.lumi_job import LUMI, job


def test_every_template_is_a_launcher_that_says_what_it_is() -> None:
    found = launchers()
    assert set(found) == {"accelerate", "deepspeed", "mpirun", "plain", "srun", "torchrun"}
    for item in [each.on(nodes) for each in found.values() for nodes in (1, 2)]:
        assert item.summary and item.starts in ("command", "script")
        assert item.tasks in ("rank", "node", "slot", "one")
        assert item.binding in ("masks", "torchrun", "wrapper", "none")
        assert item.signals in ("all", "torchrun", "none")
    assert [found["deepspeed"].on(nodes).tasks for nodes in (1, 2)] == ["node", "rank"]


def test_srun_does_not_read_the_cores_of_a_task_where_the_job_leaves_some_free() -> None:
    for cores, ignored in ((7, []), (4, ["SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK"])):
        script = compose(job(cpus_per_task=cores), LUMI).script
        (line,) = [one for one in script.splitlines() if "srun --kill-on-bad-exit" in one]
        assert re.findall(r"-u (\w+)", line) == ignored


def test_mpirun_needs_a_profile_that_says_which_it_is() -> None:
    with pytest.raises(InputError, match="has no mpirun") as caught:
        compose(job(launcher="mpirun"), LUMI)
    assert caught.value.field == "launcher"
    site = LUMI.model_copy(
        update={
            "mpi": Mpi(kind="openmpi", modules=("module load OpenMPI",)),
            "default_container": None,
        }
    )
    script = compose(job(launcher="mpirun"), site).script
    assert "\nmodule load OpenMPI\n" in script and "--ntasks-per-node=8\n" in script
    # With it, mpirun's daemons would have the cores of one rank.
    for binding in ("auto", "none"):
        script = compose(job(launcher="mpirun", binding=binding), site).script
        assert "\nunset SRUN_CPUS_PER_TASK" in script and "export SRUN_CPUS" not in script


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "-gl"), ({"HWLOC_COMPONENTS": "x86"}, "x86"),
                          ({"HWLOC_COMPONENTS": ""}, "")],
)  # fmt: skip
def test_mpirun_takes_no_server_for_a_display_unless_the_user_says_so(
    own: dict[str, str], expected: str
) -> None:
    for kind in ("openmpi", "hydra"):
        site = LUMI.model_copy(update={"mpi": Mpi(kind=kind)})
        script = compose(job(launcher="mpirun"), site).script
        (line,) = [one for one in script.splitlines() if "HWLOC" in one]
        shown = subprocess.run(
            ["bash", "-c", f"{line}\nprintenv HWLOC_COMPONENTS"],
            env={"PATH": "/usr/bin:/bin", **own},
            capture_output=True,
            text=True,
        )
        assert shown.stdout.strip() == expected and script.index(line) < script.index("mpirun -n")


@pytest.mark.parametrize("launcher", ["deepspeed", "accelerate", "mpirun", "torchrun"])
def test_a_launcher_that_takes_no_masks_has_each_rank_bind_itself(launcher: str) -> None:
    containers = {
        name: one.model_copy(update={"torchrun_binding": "masks"})
        for name, one in LUMI.containers.items()
    }
    site = LUMI.model_copy(update={"mpi": Mpi(kind="hydra"), "containers": containers})
    bound = compose(job(launcher=launcher), site)
    assert (bound.layout.masks, bound.layout.exact) == (MASKS, True)
    local = "RANK % LOCAL_WORLD_SIZE" if launcher in ("torchrun", "accelerate") else "LOCAL_RANK"
    assert f'set -- taskset "${{masks[{local}]}}" "$@"' in bound.script
    assert "--cpu-bind" not in bound.script and "--numa-binding" not in bound.script
    assert not [each for each in findings(bound, site) if each.at.field == "binding"]
    free = compose(job(launcher=launcher, binding="none"), site)
    assert free.layout.masks == () and "taskset" not in free.script
    shared = compose(job(launcher=launcher, partition="small-g"), site)
    assert shared.layout.masks == () and "taskset" not in shared.script


def test_masks_outside_the_cores_that_a_job_asks_for_are_an_error() -> None:
    containers = {
        name: one.model_copy(update={"torchrun_binding": "none"})
        for name, one in LUMI.containers.items()
    }
    site = LUMI.model_copy(update={"containers": containers})
    for binding, severity in (("auto", "error"), ("none", "warning")):
        launch = compose(job(launcher="accelerate", cpus_per_task=7, binding=binding), site)
        [found] = [item for item in findings(launch, site) if item.rule == "few-cores"]
        assert found.severity == severity


@pytest.mark.parametrize("launcher", ["deepspeed", "accelerate", "mpirun", "torchrun"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_its_exported_script_starts_the_program_itself(launcher: str, nodes: int) -> None:
    site = LUMI.model_copy(update={"mpi": Mpi(kind="openmpi")})
    script = plain_script(compose(job(launcher=launcher, nodes=nodes), site), site, "t")
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "code/train.py" in script and "lumitui_" not in script


def test_a_hostfile_is_written_where_the_job_asks_for_one() -> None:
    assert "hostfile" not in compose(job(nodes=2), LUMI).script
    script = compose(job(nodes=2, gpus_per_node=4, hostfile=True), LUMI).script
    [line] = re.findall(r"^scontrol show hostnames .*hostfile.*$", script, re.MULTILINE)
    said = line.replace('scontrol show hostnames "$SLURM_JOB_NODELIST"', "printf 'nid1\\nnid2\\n'")
    done = subprocess.run(
        ["bash", "-c", said.replace('>"$RUN_DIR/hostfile"', "")], capture_output=True, text=True
    )
    # DeepSpeed's pattern (deepspeed/launcher/runner.py, _parse_hostfile); Open MPI takes it too.
    rows = [re.search(r"^(\S+)\s+slots=(\d+)", row) for row in done.stdout.splitlines()]
    assert [row and row.groups() for row in rows] == [("nid1", "4"), ("nid2", "4")]


@pytest.mark.parametrize(
    ("launcher", "nodes", "sent", "lost"),
    [
        ("deepspeed", 1, [], True),
        ("deepspeed", 2, ["USR1@60"], False),
        ("accelerate", 2, ["USR1@60"], False),
        ("mpirun", 2, [], True),
        ("plain", 1, [], True),
    ],
)
def test_a_stop_signal_that_reaches_nobody_is_told(
    launcher: str, nodes: int, sent: list[str], lost: bool
) -> None:
    site = LUMI.model_copy(update={"mpi": Mpi(kind="openmpi")})
    spec = job(launcher=launcher, nodes=nodes, signal="USR1@60")
    launch = compose(spec, site)
    assert re.findall(r"#SBATCH --signal=(\S+)", launch.script) == sent
    handled = "PET_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1 " in launch.script
    assert handled is (launcher == "accelerate")
    assert ("signal-lost" in [item.rule for item in findings(launch, site)]) is lost
    # The job script itself gets this one, and makes the file `stop`.
    told = compose(job(launcher=launcher, nodes=nodes, signal="B:USR1@60"), site)
    assert "#SBATCH --signal=B:USR1@60" in told.script and "lumitui_stop_on USR1" in told.script
    assert "signal-lost" not in [item.rule for item in findings(told, site)]
    # A bundled trainer is told by a file, under each launcher.
    ours = compose(job(launcher=launcher, nodes=nodes, script=None, trainer="ddp"), site)
    assert "#SBATCH --signal=B:USR1@60" in ours.script


STUBS = {
    # It starts one rank and, if it HANGS, waits for the others for ever.
    "mpirun": """\
#!/bin/bash
until [[ $1 == bash ]]; do shift; done
PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 "$@"
ended=$?
[[ -z $HANGS ]] || /bin/sleep 300
exit "$ended"
""",
    "sleep": '#!/bin/bash\nexec /bin/sleep "0.$1"\n',
    "taskset": '#!/bin/bash\nshift\nexec "$@"\n',
}

ENDED = re.compile(r"\b(Killed|Terminated)\b")


@pytest.mark.parametrize(("hangs", "fails"), [(True, True), (False, True), (False, False)])
def test_an_mpirun_that_waits_for_ever_after_a_failed_rank_is_ended(
    hangs: bool, fails: bool, tmp_path: Path
) -> None:
    for name, text in STUBS.items():
        stub = tmp_path / name
        stub.write_text(text)
        stub.chmod(0o755)
    site = LUMI.model_copy(update={"mpi": Mpi(kind="hydra"), "default_container": None})
    script = plain_script(compose(job(launcher="mpirun", nodes=2), site), site, "t")
    launch = script[script.index("set -o pipefail") :]
    program = "false" if fails else "true"
    launch = launch.replace('python3 "$RUN_DIR"/code/train.py', program)
    environ = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUN_DIR": str(tmp_path),
        "HANGS": "yes" if hangs else "",
    }
    ended = subprocess.run(
        ["bash", "-c", launch], env=environ, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode != 0) == fails
    # Nobody hears of the watch and its end; bash says of the others how they ended.
    said = ["lumitui: rank 0 ended with 1"] if fails else []
    lines = ended.stdout.splitlines()
    assert [line for line in lines if not ENDED.search(line)] == said and not ended.stderr
