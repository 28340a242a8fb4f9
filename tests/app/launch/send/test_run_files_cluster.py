"""What a job leaves on its site: files of the person alone; a stranger's stay as they are."""

import os
import stat
import subprocess
from pathlib import Path

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish, hello_job, hello_project, wait_until
from tests.support.servers.cluster import Cluster

STRANGER = "54321:54321"
WRITES = """\
import os
run, rank = os.environ["RUN_DIR"], os.environ["RANK"]
os.makedirs(f"{run}/checkpoints/{rank}")
open(f"{run}/checkpoints/{rank}/model.pt", "w").close()
with open(f"{run}/metrics.jsonl", "a") as file:
    file.write('{"step": 1}\\n')
"""


def test_a_strangers_folders_in_tmp_end_no_job(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, project = cluster_runs, hello_project(tmp_path / f"packed-{os.getpid()}")
    spec = hello_job(nodes=2, sbatch=["--hold"])
    run = runs.send(runs.preview(spec, project))
    nodes = sorted(cluster.root.glob("nodes/*/tmp"))
    assert len(nodes) > 2
    made = []
    for number, node in enumerate(nodes):
        path = node / f"lumitui-{run.id}-{run.job_id}-1"
        if number % 3 == 0:
            path.mkdir()
        elif number % 3 == 1:
            path.symlink_to("/etc")
        else:
            path.write_text("theirs")
        subprocess.run(["chown", "-h", STRANGER, str(path)], check=True)
        made.append(path)
    try:
        assert run.job_id and cluster.admin("scontrol", "release", run.job_id).returncode == 0
        run = finish(runs, run)
        assert run.state is State.DONE, runs.read_log(run.id)[1].decode()
        left = {path for node in nodes for path in node.glob(f"lumitui-{run.id}-*")}
        assert left == set(made)
    finally:
        subprocess.run(["rm", "-rf", *map(str, made)], check=True)


def test_what_a_job_writes_is_the_persons_alone_whatever_the_umask(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, project = cluster_runs, hello_project(tmp_path / f"packed-{os.getpid()}")
    (project / "hello.py").write_text(WRITES)
    files = "~/.bashrc ~/.bash_profile ~/.profile"
    saved = cluster.login(f"mkdir -m 700 .kept && cp -p {files} .kept/ 2>/dev/null; true")
    assert saved.returncode == 0
    try:
        cluster.login(f"for f in {files}; do sed -i '1i umask 000' $f || echo umask 000 >$f; done")
        made = [
            runs.send(runs.preview(hello_job(container=container, launcher=launcher), project))
            for container, launcher in (
                ({"generation": "laif"}, "torchrun"),
                ({"generation": "legacy"}, "srun"),
            )
        ]
        ended = [finish(runs, run) for run in made]
    finally:
        cluster.login("for f in .bashrc .bash_profile .profile; do rm -f $f; done; "
                      "cp -pR .kept/. . ; rm -rf .kept")  # fmt: skip
    for run in ended:
        assert run.state is State.DONE, runs.read_log(run.id)[1].decode()
        folder = Path(run.folder)
        wait_until((folder / "attempt-1.exit").exists)
        modes = {path: stat.S_IMODE(path.lstat().st_mode) & 0o777 for path in folder.rglob("*")}
        names = {path.name for path in modes}
        assert {"attempt-1.out", "metrics.jsonl", "model.pt", "binding.json", "lumitui.sh"} <= names
        others = {
            str(path.relative_to(folder)): oct(mode)
            for path, mode in modes.items()
            if mode & 0o077 and not path.is_symlink()
        }
        assert others == {}
        assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o700
