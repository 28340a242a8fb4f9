"""A job as a folder for plain Slurm: what is in it, what is not, and that sbatch alone runs it."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.send import export
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.export import ExportedFolder
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.small_jobs import hello_job, hello_project, wait_until
from tests.support.places import GOLDEN
from tests.support.servers.cluster import Cluster

SECRET = "pl4nted-0f-the-export"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = hello_project(tmp_path / "project")
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "deep" / "tool.sh").write_text("exit 0\n")
    (root / "sub" / "deep" / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("sub/deep/tool.sh")
    return root


def exported(runs: Runs, spec: JobSpec, project: Path, target: Path) -> ExportedFolder:
    return runs.export(runs.preview(spec, project), target)


def modes(folder: Path) -> dict[str, int]:
    found = {path.relative_to(folder).as_posix(): path.lstat() for path in folder.rglob("*")}
    return {
        name: facts.st_mode & 0o777
        for name, facts in found.items()
        if not stat.S_ISLNK(facts.st_mode)
    }


def test_it_holds_the_script_the_code_and_a_readme(
    runs: Runs, project: Path, tmp_path: Path
) -> None:
    chain = {"chain": 4, "relaunch": 2, "resume": ["--resume"], "signal": "USR1@60"}
    spec = hello_job(site="lumi", links={"sub/data": "/scratch/project_1/it's"}, **chain)
    old = os.umask(0)
    try:
        done = exported(runs, spec, project, tmp_path / "a b" / "out")
    finally:
        os.umask(old)
    out = done.path
    assert modes(out) == {
        "README.md": 0o600,
        "job.sh": 0o700,
        "code": 0o700,
        "code/hello.py": 0o600,
        "code/sub": 0o700,
        "code/sub/deep": 0o700,
        "code/sub/deep/tool.sh": 0o700,
    }
    assert stat.S_IMODE(out.stat().st_mode) == 0o700 == stat.S_IMODE(out.parent.stat().st_mode)
    assert os.readlink(out / "code" / "link") == "sub/deep/tool.sh"
    assert os.readlink(out / "code" / "sub" / "data") == "/scratch/project_1/it's"
    assert (out / "code" / "hello.py").read_text() == (project / "hello.py").read_text()
    readme = (out / "README.md").read_text()
    assert "The job runs for one time limit: `chain: 4`" in readme
    assert "The job launches the program once: `relaunch: 2` works" in readme
    assert "sbatch job.sh" in readme and "the partition small-g" in readme
    assert "/scratch/project_1/it's (the code's link sub/data)" in readme
    assert done.files == 3


def test_an_environment_is_built_by_the_exported_job(
    runs: Runs, project: Path, tmp_path: Path
) -> None:
    spec = hello_job(site="lumi", venv=["einops==0.8.1"])
    out = exported(runs, spec, project, tmp_path / "out").path
    assert modes(out)["venv.sh"] == 0o600
    assert "einops==0.8.1" in (out / "venv.sh").read_text()
    assert "- einops==0.8.1 (the job installs them once" in (out / "README.md").read_text()
    assert 'VENV=$(bash venv.sh "$RUN_DIR/venvs")' in (out / "job.sh").read_text()


def test_it_names_secrets_and_has_none(
    runs: Runs, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    spec = hello_job(site="lumi", secrets=["WANDB_API_KEY"])
    out = exported(runs, spec, project, tmp_path / "out").path
    texts = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    assert [name for name, text in texts.items() if SECRET in text] == []
    assert (
        "3. Set WANDB_API_KEY, which this folder omits: `export WANDB_API_KEY=…`"
        in (texts["README.md"])
    )
    assert "4. `sbatch job.sh`" in texts["README.md"]
    assert ".secrets" not in texts["job.sh"]
    check = next(line for line in texts["job.sh"].splitlines() if line.startswith(": "))
    for environ, code in (({}, 127), ({"WANDB_API_KEY": "x"}, 0)):
        done = subprocess.run(["bash", "-c", check], env=environ, capture_output=True, text=True)
        assert done.returncode == code and ("export it before sbatch" in done.stderr) == bool(code)


@pytest.mark.parametrize("what", ["a file in it", "a file", "a link", "a dangling link"])
def test_what_is_there_already_stays(runs: Runs, project: Path, tmp_path: Path, what: str) -> None:
    target, other = tmp_path / "out", tmp_path / "other"
    if what == "a file in it":
        target.mkdir()
        (target / "mine").write_text("mine")
    elif what == "a file":
        target.write_text("mine")
    else:
        if what == "a link":
            other.mkdir()
        target.symlink_to(other)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="already exists"):
        exported(runs, hello_job(site="lumi"), project, target)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken(runs: Runs, project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o755)
    out = exported(runs, hello_job(site="lumi"), project, tmp_path / "out").path
    assert stat.S_IMODE(out.stat().st_mode) == 0o700 and (out / "job.sh").is_file()


def test_what_could_not_be_finished_is_removed(
    runs: Runs, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_files, "taken_links", lambda spec, code: iter(()))
    preview = runs.preview(hello_job(site="lumi", links={"hello.py": "/x"}), project)
    with pytest.raises(InputError, match=r"Cannot write"):
        runs.export(preview, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_what_a_rule_finds_is_exported_and_what_has_no_file_is_not(
    runs: Runs, project: Path, tmp_path: Path
) -> None:
    wrong = hello_job(site="lumi", sbatch=["--gpu-bind=closest"])
    assert runs.preview(wrong, project).errors
    assert (exported(runs, wrong, project, tmp_path / "wrong").path / "job.sh").exists()
    (project / "hello.py").unlink()
    with pytest.raises(InputError, match=r"lacks the script hello\.py"):
        exported(runs, hello_job(site="lumi"), project, tmp_path / "out")
    here = hello_job(site="laptop", partition="local", account="")
    with pytest.raises(InputError, match="has no Slurm"):
        exported(runs, here, project, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_signal_to_an_exported_script_is_a_file_for_its_trainer(tmp_path: Path) -> None:
    text = (GOLDEN / "exported" / "srun.sh").read_text().splitlines()
    asks = next(line for line in text if line.startswith("rm -f stop; trap"))
    waits = next(line for line in text if line.startswith("while rc=0; wait"))
    trains = (
        "{ touch on; until [ -e stop ]; do sleep 0.05; done; sleep 0.3; echo saved; exit 85; } &"
    )
    lines = ["set -eo pipefail", "export RUN_DIR=$PWD", asks, trains, waits]
    (tmp_path / "stop").touch()  # of an earlier job
    with subprocess.Popen(
        ["bash", "-c", "\n".join(lines)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as job:
        wait_until((tmp_path / "on").exists)
        job.send_signal(signal.SIGUSR1)
        assert (job.wait(timeout=60), job.communicate()[0]) == (85, "saved\n")


# -- on the mini cluster, by plain sbatch of its login user


@pytest.fixture
def place(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder of the login user on the cluster's scratch."""
    folder = Path(cluster.scratch) / cluster.user / f"test_export-{os.getpid()}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


SAYS = """\
import os, sys
run = os.environ["RUN_DIR"]
here = os.path.basename(os.getcwd()), os.environ.get("MY_TOKEN", ""), os.path.exists("in")
with open(f"{run}/said-{os.environ['RANK']}", "w") as file:
    print(*here, *sys.argv[1:], file=file)
"""
IN_SHELL = """\
#!/bin/sh
echo "${PWD##*/} $MY_TOKEN False" "$@" >"$RUN_DIR/said-$RANK"
"""
JOBS: dict[str, dict[str, object]] = {
    "srun": {"launcher": "srun", "nodes": 2, "secrets": ["MY_TOKEN"]},
    "torchrun": {"launcher": "torchrun"},
    "plain": {"launcher": "plain", "gpus_per_node": 1},
    "none": {"launcher": "srun", "container": {"none": True}, "script": "say.sh"},
    "legacy": {"launcher": "srun", "container": {"generation": "legacy"}},
    "workdir": {
        "nodes": 2,
        "links": {"sub/in": "/etc"},
        "workdir": "sub",
        "script": "sub/say.py",
    },
    "masks": {"partition": "standard-g", "gpus_per_node": 8},
}


STOPPED = """\
name: stopped
site: minilumi
account: project_462000001
partition: small-g
gpus_per_node: 2
time: "00:05:00"
launcher: torchrun
trainer: ddp
args: [--model, cnn-gn, --epochs, "5000", --limit, "64", --eval, never]
"""


@pytest.mark.slow  # the lines of its script that do it are run above
def test_a_signal_near_the_time_limit_lets_an_exported_trainer_save(
    cluster_runs: Runs, cluster: Cluster, place: Path, tmp_path: Path
) -> None:
    """A signal that reached torchrun would kill a save after 30 s; the file has all of the lead."""
    spec = parse_job(STOPPED, "stopped")
    cluster_runs.export(cluster_runs.preview(spec, tmp_path), place)
    assert "#SBATCH --signal=B:USR1@60\n" in (place / "job.sh").read_text()
    (place / "stop").touch()  # of an earlier job
    subprocess.run(["chown", "-R", f"{cluster.user}:", str(place)], check=True)
    job = cluster.login(f"cd {quote(str(place))} && sbatch --parsable job.sh", timeout=60)
    number = job.stdout.strip()
    try:
        wait_until(lambda: '"step": 5,' in read(place / "metrics.jsonl"), 120, job.stderr)
        assert cluster.login(f"scancel --batch --signal=USR1 {number}").returncode == 0
        wait_until(lambda: '"event": "stop"' in read(place / "metrics.jsonl"), 60)
        queue = f"squeue -h -j {number} 2>/dev/null"
        wait_until(lambda: not cluster.login(queue).stdout.strip(), 60, "its end")
    finally:
        cluster.login(f"scancel {number}")
    assert '"signal": "the file stop"' in read(place / "metrics.jsonl")
    assert list((place / "checkpoints").glob("*/manifest.json"))
    # The log has all of the launch's end: the script waited for it.
    log = "\n".join(path.read_text() for path in place.glob("slurm-*.out"))
    assert "stopped by the file stop after step" in log and "ChildFailedError" in log


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_plain_sbatch_runs_it(
    cluster_runs: Runs, cluster: Cluster, place: Path, tmp_path: Path
) -> None:
    project = hello_project(tmp_path / "project")
    (project / "sub").mkdir()
    (project / "sub" / "keep").write_text("")
    for name in ("hello.py", "sub/say.py"):
        (project / name).write_text(SAYS)
    (project / "say.sh").write_text(IN_SHELL)
    (project / "say.sh").chmod(0o755)
    ranks = {}
    for name, job in JOBS.items():
        spec = hello_job(**{"name": name, "args": ["it's", "$x"]} | job)
        preview = cluster_runs.preview(spec, project)
        ranks[name] = preview.launch.layout.world_size
        cluster_runs.export(preview, place / name)
    subprocess.run(["chown", "-R", f"{cluster.user}:", str(place)], check=True)
    calls = [f"(cd {quote(f'{place}/{name}')} && sbatch --wait job.sh) &" for name in JOBS]
    script = "export MY_TOKEN=planted\n" + "\n".join(calls) + "\nwait\n"
    done = cluster.login(script, timeout=300)
    for name, count in ranks.items():
        folder = place / name
        log = "\n".join(path.read_text() for path in folder.glob("slurm-*.out"))
        said = sorted(path.name for path in folder.glob("said-*"))
        assert len(said) == count, f"{name}: {done.stdout}{done.stderr}{log}"
        for one in said:
            words = (folder / one).read_text().split(" ")
            expected = "sub" if name == "workdir" else "code"
            assert words == [expected, "planted", str(name == "workdir"), "it's", "$x\n"], name
        left = {path.name.partition("-")[0] for path in folder.iterdir()}
        assert left == {"README.md", "job.sh", "code", "said", "slurm"}
        others = {path for path, mode in modes(folder).items() if mode not in (0o600, 0o700)}
        # Slurm makes the log under the person's umask.
        assert {path.partition("-")[0] for path in others} <= {"slurm"}
    assert not list(cluster.root.glob(f"nodes/*/tmp/{cluster.user}-*"))


def test_its_readme_has_the_profiles_port_and_counts_the_secrets() -> None:
    lumi = Sites([BUILT_IN]).load("lumi")
    hosts = lumi.hosts.model_copy(update={"port": 2238})
    site = lumi.model_copy(update={"hosts": hosts})
    spec = hello_job(site="lumi", secrets=["A_KEY", "B_KEY"])
    lines = list(export._readme_lines(spec, site, "hello"))
    assert "(`scp -P 2238 -r … " in lines[4]
    assert [line[:2] for line in lines[4:9]] == ["1.", "2.", "3.", "4.", "5."]
