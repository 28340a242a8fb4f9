"""The mini cluster is as strict as LUMI-G: each property with the real commands.

Facts: LUMI user guide (hardware/lumig, runjobs) and LUMI training materials of April 2026.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tests.support.jobs.small_jobs import wait_until
from tests.support.servers import cluster as cluster_fixture
from tests.support.servers.cluster import Cluster, SlurmCall, parse_call

LAIF = "/appl/local/laifs/containers/lumi-multitorch-latest.sif"
LEGACY = (
    "/appl/local/containers/sif-images/"
    "lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif"
)
MASKS = (  # LUMI-AI-Guide, multi-gpu-and-node/run_ddp_srun.sh
    "0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,"
    "0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000"
)
CORES = ["49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47"]

on_cluster = pytest.mark.cluster


def run_job(cluster: Cluster, options: str, script: str, seconds: float = 45) -> tuple[int, str]:
    """Submit a batch script as the login user and wait for its end: job id and log."""
    folder = f"{cluster.scratch}/{cluster.user}"
    sent = cluster.login(
        f"mkdir -p {folder} && cd {folder} && printf %s {shlex.quote(script)} | "
        f"sbatch --parsable -A {cluster.account} -t 5 -o test-%j.out {options}"
    )
    assert sent.returncode == 0, sent.stderr
    job = int(sent.stdout)

    def over() -> bool:
        shown = cluster.admin("scontrol", "show", "job", str(job)).stdout
        return any(f"JobState={word}" in shown for word in ("COMPLETED", "FAILED", "TIMEOUT"))

    wait_until(over, seconds)
    log = Path(folder, f"test-{job}.out")
    text = log.read_text()
    log.unlink()
    return job, text


@pytest.fixture(scope="module")
def bound(cluster: Cluster) -> tuple[int, str]:
    """One job with LUMI's own lines on a whole node: job id and log."""
    script = f"""#!/bin/bash -l
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
echo "bind $SINGULARITY_BIND"
echo "devices $ROCR_VISIBLE_DEVICES"
echo "host $(hostname)"
srun --cpu-bind=v,mask_cpu={MASKS} bash -c 'echo "rank $SLURM_PROCID $(taskset -cp $$)"'
srun -n1 --cpu-bind=mask_cpu=0xff bash -c 'echo core 0 was accepted'
srun -n1 bash -c 'taskset -cp 0 $$ || echo own mask refused; nproc'
srun -n1 --cpu-bind=none bash -c 'taskset -c 128 true || echo no such core'
srun singularity run {LAIF} bash -c '[ $SLURM_PROCID != 3 ] || ls -d /scratch/project_*'
"""
    options = "-p standard-g -N1 --ntasks-per-node=8 --gpus-per-node=8 -c7 --mem=480G"
    return run_job(cluster, options, script)


@on_cluster
@pytest.mark.both_slurms
def test_nodes_have_the_shape_of_lumi_g(cluster: Cluster) -> None:
    shown = cluster.admin("scontrol", "show", "node", "--oneliner").stdout.splitlines()
    assert len(shown) == len(cluster.nodes) == 8
    for line, name in zip(shown, cluster.nodes, strict=True):
        words = line.split()
        assert f"NodeName={name}" in words
        for fact in (
            "CPUTot=128",
            "CoresPerSocket=64",
            "ThreadsPerCore=2",
            "Sockets=1",
            "CPUEfctv=112",  # 56 cores: one of each eight is reserved
            "RealMemory=491520",
            "Gres=gpu:mi250:8",
        ):
            assert fact in words, f"{name} lacks {fact}"


@on_cluster
@pytest.mark.both_slurms
def test_eight_masks_bind_eight_ranks(bound: tuple[int, str]) -> None:
    _, log = bound
    ranks = dict(line.split()[1::6] for line in log.splitlines() if line.startswith("rank "))
    assert ranks == {str(rank): cores for rank, cores in enumerate(CORES)}


@on_cluster
@pytest.mark.both_slurms
def test_reserved_and_missing_cores_are_refused(bound: tuple[int, str]) -> None:
    _, log = bound
    assert "CPU binding outside of job step allocation" in log
    assert "core 0 was accepted" not in log
    assert "own mask refused" in log
    assert "no such core" in log


@on_cluster
def test_job_sees_eight_devices_and_the_modules(bound: tuple[int, str], cluster: Cluster) -> None:
    _, log = bound
    lines = log.splitlines()
    assert "devices 0,1,2,3,4,5,6,7" in lines
    assert "bind /pfs,/scratch,/projappl,/project,/flash,/appl,/var/spool/slurmd" in lines
    assert {f"host {name}" for name in cluster.nodes} & set(lines)
    assert cluster.scratch in lines


@on_cluster
@pytest.mark.both_slurms
def test_accounting_knows_the_job(bound: tuple[int, str], cluster: Cluster) -> None:
    job, _ = bound

    def state() -> str:
        found = cluster.login(f"sacct -X -n -P -j {job} -o JobID,State,AllocTRES")
        return found.stdout.strip()

    wait_until(lambda: "COMPLETED" in state(), 10)
    assert state().startswith(f"{job}|COMPLETED|")
    assert "gres/gpu=8" in state()


@on_cluster
@pytest.mark.both_slurms
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "No partition specified"),
        ("-p standard-g -t 3-00:00:00", "Requested time limit is invalid"),
        ("-p dev-g -t 04:00:00", "Requested time limit is invalid"),
        ("-p small-g -N 5", "Node count specification invalid"),
        ("-p standard-g -c 64", "Requested node configuration is not available"),
        ("-p standard-g --ntasks-per-node=8 -c 8", "Requested node configuration is not available"),
        ("-p standard-g --mem=481G", "Memory specification can not be satisfied"),
        ("-p standard-g --gpus-per-node=9", "Requested node configuration is not available"),
        ("-p standard-g --threads-per-core=2", "--threads-per-core=2 is not accepted"),
        ("-p standard-g -A project_462000002", "Invalid account or account/partition combination"),
    ],
)
def test_bad_requests_are_refused(cluster: Cluster, options: str, message: str) -> None:
    result = cluster.login(f"sbatch -A {cluster.account} -t 5 {options} --wrap=true")
    assert result.returncode != 0
    assert message in result.stderr


@on_cluster
@pytest.mark.both_slurms
def test_one_task_a_core_unless_the_script_says_otherwise(cluster: Cluster) -> None:
    script = "#!/bin/bash\n#SBATCH --hint={}\nsrun -c2 bash -c 'taskset -cp $$'\n"
    one = run_job(cluster, "-p small-g -n1 -c2", script.format("nomultithread"))[1]
    both = run_job(cluster, "-p small-g -n1 -c2", script.format("multithread"))[1]
    plain = run_job(cluster, "-p small-g -n1 -c2", script.replace("#SBATCH", "#"))[1]
    assert [text.split()[-1] for text in (one, both, plain)] == ["1,2", "1,65", "1,2"]


@on_cluster
def test_modules_only_in_a_login_shell(cluster: Cluster) -> None:
    assert cluster.login("module list").returncode == 127
    legacy = "module use /appl/local/containers/ai-modules; module load singularity-AI-bindings"
    for lines in (legacy, "module load Local-LAIF lumi-aif-singularity-bindings"):
        shell = cluster.login(f"bash -lc '{lines}; echo $SINGULARITY_BIND $SLURM_MPI_TYPE'")
        assert "/scratch," in shell.stdout, shell.stderr
        assert shell.stdout.split()[-1] == "pmi2"


@on_cluster
def test_login_node_has_slurm_but_no_new_python(cluster: Cluster) -> None:
    assert cluster.login("command -v python python3").stdout == ""
    assert cluster.login("bash -lc 'command -v python python3'").stdout == ""
    tools = "sbatch squeue sacct scancel singularity tar gzip sha256sum find cp sh bash"
    assert cluster.login(f"command -v {tools}").stdout.count("\n") == len(tools.split())
    assert cluster.login("hostname").stdout == "uan01\n"


@on_cluster
def test_only_what_is_bound_is_in_the_container(cluster: Cluster) -> None:
    ask = f"ls -d {cluster.scratch}; command -v srun scontrol"
    bare = cluster.login(f"singularity run {LAIF} bash -c '{ask}'")
    assert bare.stdout == ""
    assert "No such file" in bare.stderr
    assert cluster.login(f"singularity run -B /scratch {LAIF} bash -c '{ask}'").stdout.split() == [
        cluster.scratch
    ]
    missing = cluster.login(f"singularity run -B /no/such {LAIF} true")
    assert (missing.returncode, "/no/such doesn't exist" in missing.stderr) == (255, True)
    given = "SINGULARITYENV_PREPEND_PATH=/user-software/bin SINGULARITYENV_WORD='a b'"
    inside = cluster.login(f"{given} singularity run {LAIF} bash -c 'echo $WORD; echo $PATH'")
    assert inside.stdout.splitlines()[0] == "a b"
    assert inside.stdout.splitlines()[1].startswith("/user-software/bin:")


@on_cluster
def test_torch_in_both_generations(cluster: Cluster) -> None:
    program = "import deepspeed, os, torch; print(torch.__file__, os.environ['DS_ACCELERATOR'])"
    for call in (f"run {LAIF}", f"exec {LEGACY}"):
        result = cluster.login(f"singularity {call} python -c {shlex.quote(program)}", timeout=60)
        assert result.stdout.split()[-1] == "cpu", result.stderr
        assert str(Path(cluster.python).parents[1]) in result.stdout
    assert cluster.login(f"singularity exec {LEGACY} bash -c '$WITH_CONDA && echo ok'").stdout
    assert "not found" in cluster.login(f"singularity exec {LAIF} python -V").stderr


@on_cluster
def test_signals_reach_the_program_in_the_container(cluster: Cluster) -> None:
    wait = 'trap "echo saved; exit 7" USR1; echo ready; while :; do sleep 0.1; done'
    script = f"""#!/bin/bash -l
said=$(mktemp)
singularity run {LAIF} bash -c '{wait}' > $said & program=$!
until grep -q ready $said; do sleep 0.1; done
kill -USR1 $program; wait $program; echo "status $?"; cat $said; rm $said
"""
    assert run_job(cluster, "-p dev-g -N1", script)[1].split() == ["status", "7", "ready", "saved"]


@on_cluster
def test_nodes_have_names_and_tmp_of_their_own(cluster: Cluster) -> None:
    script = """#!/bin/bash
token=/tmp/only-here-$SLURM_JOB_ID
touch $token
srun bash -c "hostname; test -e $token && echo here"
"""
    _, log = run_job(cluster, "-p dev-g -N2 --ntasks-per-node=1", script)
    names = [line for line in log.splitlines() if line.startswith("nid")]
    assert len(set(names)) == 2
    assert log.count("here") == 1


@on_cluster
def test_scratch_is_limited_and_the_projects(cluster: Cluster) -> None:
    size = os.statvfs(cluster.scratch)
    mib = size.f_blocks * size.f_frsize // 2**20
    assert mib <= int(os.environ.get("SCRATCH_MB", "4096"))
    assert os.stat(cluster.scratch).st_mode & 0o7777 == 0o2770
    folder = f"{cluster.scratch}/{uuid.uuid4().hex}"
    assert cluster.login(f"mkdir {folder} && rmdir {folder}").returncode == 0


@on_cluster
def test_calls_on_the_login_node_are_counted(cluster: Cluster) -> None:
    cluster.clear_calls()
    cluster.login("squeue --me -o '%i\t%j'; scontrol show hostnames 'nid00500[1-2]'")
    cluster.admin("sacct", "-X")  # the administrator's are not
    calls = cluster.calls()
    assert [(call.command, call.args) for call in calls] == [
        ("squeue", ("--me", "-o", "%i\t%j")),
        ("scontrol", ("show", "hostnames", "nid00500[1-2]")),
    ]
    assert abs(calls[0].time - time.time()) < 60
    counts = cluster.sessions()
    assert (counts.logins, counts.commands, counts.subsystems) == (1, 1, 0)


@on_cluster
def test_calls_of_a_job_are_not_counted(cluster: Cluster) -> None:
    cluster.clear_calls()
    run_job(cluster, "-p dev-g -N1", "#!/bin/bash -l\nsqueue\nscontrol show hostnames\n")
    assert [call.command for call in cluster.calls()] == ["sbatch"]


@on_cluster
def test_proxy_cuts_after_the_bytes_that_were_asked_for(cluster: Cluster) -> None:
    with cluster.proxy() as proxy:
        far = cluster.behind(proxy)
        assert far.login("echo hello").stdout == "hello\n"
        assert proxy.stats().connections == 1
        proxy.reset()
        proxy.cut_after(20_000, "down")
        cut = far.login("head -c 1000000 /dev/zero")
        assert cut.returncode == 255
        assert proxy.stats().down == 20_000
        assert proxy.stats().cuts == 1
        proxy.refuse()
        assert far.login("true").returncode == 255
        proxy.accept()
        assert far.login("true").returncode == 0
        proxy.stall()
        with pytest.raises(subprocess.TimeoutExpired):
            far.login("true", timeout=1)
        proxy.flow()
        assert far.login("true").returncode == 0


@on_cluster
def test_proxy_delays(cluster: Cluster) -> None:
    with cluster.proxy(rtt_ms=150) as proxy:
        far = cluster.behind(proxy)
        argv = ["ssh", "-F", str(far.ssh_config), "minilumi", "true"]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as slow:
            assert cluster.login("true").returncode == 0  # started later, there sooner
            assert slow.poll() is None
            assert slow.wait(30) == 0
        assert proxy.stats().turns > 3


@on_cluster
def test_the_next_connection_lands_on_the_other_login_host(cluster: Cluster) -> None:
    with cluster.proxy() as proxy:
        far = cluster.behind(proxy)
        assert far.login("hostname").stdout == "uan01\n"
        proxy.to(cluster.other_port)
        # The same host key, or ssh would refuse.
        assert far.login("hostname; squeue --me -h >/dev/null && echo asked").stdout == (
            "uan02\nasked\n"
        )
    assert cluster.elsewhere().login("hostname").stdout == "uan02\n"


def test_escapes_of_the_log_are_read_back() -> None:
    line = "1.5\t7\tsqueue\t-o\t%i\\t%j\\n\\\\t"
    assert parse_call(line) == SlurmCall(1.5, 7, "squeue", ("-o", "%i\t%j\n\\t"))


def test_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RuntimeError, match="needs root on Linux"):
        cluster_fixture.start()
