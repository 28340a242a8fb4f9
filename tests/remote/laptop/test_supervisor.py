"""The embedded site's supervisor: what a job gets, how it ends, and that nothing outlives it."""

import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.remote.laptop import job_store, process_tree, scheduler
from lumitui.remote.laptop.batch_job import BatchJob
from lumitui.remote.laptop.batch_options import BatchRequest
from lumitui.remote.scheduler.scheduler_protocol import Answer, State
from tests.support.places import ROOT
from tests.support.servers.embedded_site import HEAD, EmbeddedSite, log, running, until

REMOTE = Path(scheduler.__file__).parent


# -- the submit command


def test_a_refused_script_leaves_nothing_behind(site: EmbeddedSite) -> None:
    run, answer = site.submit("true", "#!/bin/sh\n#SBATCH --frobnicate\n")
    assert answer.state is State.REFUSED
    assert answer.message == "submit: error: unrecognized option '--frobnicate'"
    left = ["attempt-1.claim", "attempt-1.submit", "job.sh"]
    assert sorted(entry.name for entry in run.iterdir()) == left
    assert os.readlink(run / "attempt-1.claim") == "void"
    assert not list((site.root / "state").glob("lumitui/jobs/*"))


# -- the job


def test_the_job_sees_slurms_variables_and_not_those_of_another_job(
    site: EmbeddedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_RESTART_COUNT", "3")
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "77")
    monkeypatch.setenv("OF_THE_PERSON", "kept")
    monkeypatch.delenv("LC_ALL", raising=False)
    head = f"{HEAD}#SBATCH -A acc -p local --gpus-per-node=2\n"
    run, answer = site.submit("env; echo \"$PWD\"; bash -c 'kill -HUP $$; echo survived'", head)
    assert site.end(run, answer).state is State.FAILED  # SIGHUP has its default again
    lines = log(run).splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    assert {name: values.get(name) for name in values if name.startswith("SLURM")} == {
        "SLURM_JOB_ID": answer.job_id,
        "SLURM_JOBID": answer.job_id,
        "SLURM_JOB_NAME": run.name,
        "SLURM_JOB_NODELIST": "node1,node2",
        "SLURM_NODELIST": "node1,node2",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_NNODES": "2",
        "SLURM_NTASKS": "4",
        "SLURM_NPROCS": "4",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_TASKS_PER_NODE": "2,2",
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_GPUS_PER_NODE": "2",
        "SLURM_JOB_ACCOUNT": "acc",
        "SLURM_JOB_PARTITION": "local",
        "SLURM_SUBMIT_DIR": str(run),
        "SLURMD_NODENAME": "node1",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
    }
    assert values["OF_THE_PERSON"] == "kept"
    assert "LC_ALL" not in values
    assert values["LUMITUI_PYTHON"] == sys.executable
    assert str(run) in lines
    assert "survived" not in lines


def test_the_script_is_taken_as_it_was(site: EmbeddedSite) -> None:
    run, answer = site.submit(f"sleep 0.5\n{'#' * 9000}\necho end")
    (run / "job.sh").write_text("#!/bin/bash\necho changed\n")
    assert site.end(run, answer).state is State.DONE
    assert log(run) == "end\n"


def test_files_of_the_job_are_the_persons_alone(site: EmbeddedSite) -> None:
    run, answer = site.submit("umask; echo x >code.txt")
    site.end(run, answer)
    for name in ("attempt-1.out", "attempt-1.state"):
        assert (run / name).stat().st_mode & 0o777 == 0o600
    assert (site.root / "state/lumitui/jobs").stat().st_mode & 0o777 == 0o700


# Sessions of their own, parents that end, SIGTERM ignored: all of it ends with the job.
STAY = (
    "trap '' TERM; sleep MARK & (setsid sh -c \"trap '' TERM; sleep MARK & wait\" &); "
    "srun --label bash -c 'trap \"\" TERM; setsid sleep MARK & sleep MARK' & sleep 0.7; echo up; "
)
TORCHRUN = (  # workers in sessions of their own under an agent that is killed
    "srun -n1 python3 -c \"import subprocess as s; w = s.Popen(['sleep', 'MARK'], "
    'start_new_session=True); print(1, flush=True); w.wait()" & sleep 0.7; echo up; '
)


ENDINGS = {
    # how it is ended: what the job leaves behind, the state's word
    "end": (STAY, "FAILED"),
    "limit": (STAY, "TIMEOUT"),
    "cancel": (STAY, "CANCELLED"),
    "cancel of torchrun": (TORCHRUN, "CANCELLED"),
    "supervisor killed": (STAY, "NODE_FAIL"),
    "supervisor of torchrun killed": (TORCHRUN, "NODE_FAIL"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="setsid(1) is Linux's")
def test_no_process_of_a_job_outlives_it(site: EmbeddedSite) -> None:
    marks = {way: f"60.{secrets.randbelow(10**9):09d}" for way in ENDINGS}
    jobs: dict[str, tuple[Path, Answer]] = {}
    for way, (body, _) in ENDINGS.items():  # all of them at once: most of a job's time is waiting
        text = body.replace("MARK", marks[way]) + ("exit 3" if way == "end" else "wait")
        jobs[way] = site.submit(text, HEAD + ("#SBATCH --time=00:00:02\n" * (way == "limit")))
    for way, (run, answer) in jobs.items():
        until(lambda: "up" in log(run), way)  # noqa: B023  # called in this round
        if not way.endswith(("end", "limit")):
            until(lambda: running(f"sleep {marks[way]}"), way)  # noqa: B023
        if way.startswith("cancel"):
            site.cancel(run, answer)
        elif way.startswith("supervisor"):
            record = job_store.read_record(run)
            assert record
            os.kill(int(str(record["supervisor"])), signal.SIGKILL)
    for way, (run, answer) in jobs.items():
        status = site.end(run, answer)
        assert running(marks[way]) == [], way
        assert status.word == ENDINGS[way][1], way
        assert status.exit_code == ("3:0" if way == "end" else ""), way
    # The supervisor closes its door after it has recorded the end.
    until(lambda: not list((site.root / "state").glob("lumitui/jobs/*/door")), "a closed door")


def test_an_orphan_is_known_by_its_session(tmp_path: Path) -> None:
    # As on macOS, where orphans become init's children; here this process adopts none either.
    mark = f"60.{secrets.randbelow(10**9):09d}"
    with subprocess.Popen(
        ["bash", "-c", f"(sleep {mark} &); echo up; exec sleep 60"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as bash:
        assert bash.stdout
        assert bash.stdout.readline() == "up\n"
        record = job_store.JobRecord("1", "run", str(tmp_path / "door"))
        job = BatchJob(record, BatchRequest(), tmp_path, tmp_path)
        assert job.members() == set()  # nothing was started yet
        job.script = bash.pid
        orphan = int(running(f"sleep {mark}")[-1].split()[1])
        assert orphan not in process_tree.below({os.getpid()}, process_tree.processes())
        assert {bash.pid, orphan} <= job.members()
        os.killpg(bash.pid, signal.SIGKILL)


def test_a_machine_that_went_down_is_a_lost_node(site: EmbeddedSite) -> None:
    run, answer = site.submit("echo up; sleep 60")
    until(lambda: "up" in log(run))
    assert site.poll(run, answer).state is State.RUNNING
    record = job_store.read_record(run)
    assert record
    # Both, and first the one that would clean up.
    own = int(str(record["supervisor"]))
    for pid in (process_tree.processes()[own], own):
        os.kill(pid, signal.SIGKILL)
    status = site.end(run, answer)
    assert status.word == "NODE_FAIL"
    assert "restarted" in status.reason
    assert status.ended == pytest.approx((run / "attempt-1.out").stat().st_mtime)
    # Another process with its pid does not make it alive again, nor does a door that is no FIFO.
    door = Path(str(record["door"]))
    door.unlink()
    door.write_text("")
    assert site.poll(run, answer).word == "NODE_FAIL"
    door.unlink()
    site.cancel(run, answer)
    for row in running(f"{site.root}/state/lumitui/jobs/"):
        os.killpg(int(row.split()[1]), signal.SIGKILL)


def test_a_supervisor_that_gets_sigterm_ends_its_job(site: EmbeddedSite) -> None:
    run, answer = site.submit("echo up; sleep 60")
    until(lambda: "up" in log(run))
    record = job_store.read_record(run)
    assert record
    os.kill(int(str(record["supervisor"])), signal.SIGTERM)
    status = site.end(run, answer)
    assert status.word == "NODE_FAIL"
    assert "shutting down" in status.reason


def test_a_job_outlives_the_program_that_submitted_it(site: EmbeddedSite) -> None:
    script = (
        "import sys, time; from pathlib import Path;"
        "from tests.support.servers.embedded_site import EmbeddedSite;"
        "run, answer = EmbeddedSite(Path(sys.argv[1])).submit('sleep 1; echo lived');"
        "print(run, answer.job_id, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(site.root)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    ) as child:
        assert child.stdout
        run, job_id = child.stdout.readline().split()
        os.killpg(child.pid, signal.SIGKILL)
    assert site.end(Path(run), Answer(State.QUEUED, job_id)).state is State.DONE
    assert "lived" in log(Path(run))


def test_the_supervisor_needs_the_standard_library_alone() -> None:
    probe = (
        "import runpy, sys\n"
        f"for name in ('supervisor.py', 'srun.py'):\n"
        f"    runpy.run_path({str(REMOTE)!r} + '/' + name)\n"
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] not in "
        "sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"(__main__ |lumitui[a-z._]* ?)+", done.stdout.strip() + " "), done.stdout
    assert "lumitui.remote.site.profile" not in done.stdout
