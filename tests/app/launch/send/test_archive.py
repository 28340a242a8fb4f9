"""A large project as one archive: sent, continued, damaged, pruned, unpacked on every node."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.app.job.spec import changed, parse_job
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.send.code.project_files import collect, with_ship_mode
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.run_folder import CODE_ARCHIVE
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source import project_walk
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.snapshots import archive
from lumitui.remote.transfer.snapshots.archive import sync_archive
from lumitui.remote.transfer.snapshots.prune import prune
from lumitui.remote.transfer.snapshots.snapshot_store import archive_copy_script
from lumitui.remote.transfer.snapshots.upload import sync
from lumitui.remote.transport.transport import Transport
from tests.support.files.snapshots import stored
from tests.support.jobs.small_jobs import TRAIN, finish, hello_job, hello_project, wait_until
from tests.support.servers.cluster import Cluster
from tests.support.servers.small_disk import small_disk
from tests.support.servers.transports import Cut


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in ("train.py", "pkg/a.py", "-x 'y'.txt", "empty", f"{'deep' * 30}/{'name' * 30}"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("" if path == "empty" else f"content of {path}\n" * 50)
    (root / "pkg" / "a.py").chmod(0o755)
    (root / "random").write_bytes(os.urandom(600_000))
    (root / "link").symlink_to("pkg/a.py")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "the site's" / "code")


def send(transport: Transport, folder: str, project: Path) -> Shipped:
    return sync_archive(transport, folder, scan(project), source_of(project))


def unpacked(path: str, at: Path) -> Manifest:
    """What is in an archive, by the program that unpacks it on the nodes."""
    at.mkdir()
    subprocess.run(["tar", "-xzf", path, "-C", at], check=True, timeout=60)
    return scan(at)


def test_it_is_sent_once_and_holds_the_project(
    transport: Transport, folder: str, project: Path, tmp_path: Path
) -> None:
    first, again = send(transport, folder, project), send(transport, folder, project)
    assert (first.requests, first.files_sent) == (2, 7) and first.bytes_sent > 600_000
    assert (again.requests, again.files_sent, again.bytes_sent) == (1, 0, 0)
    names = [f"{first.id}.tar.gz", f"{first.id}.tar.gz.sha256"]
    assert sorted(stored(folder)) == names
    assert unpacked(f"{first.path}.tar.gz", tmp_path / "out").id == scan(project).id
    modes = {os.stat(f"{folder}/{name}").st_mode & 0o777 for name in names}
    assert modes == {0o400}


@pytest.mark.parametrize(
    "harm",
    ["rm -f {at}", "rm -f {at}.sha256", "chmod u+w {at}; printf x >>{at}",
     # Another byte than the one that is there, whatever it is.
     "chmod u+w {at}; dd if={at} bs=1 skip=9000 count=1 2>/dev/null |"
     " tr '\\0-\\377' '\\1-\\377\\0' | dd of={at} bs=1 seek=9000 conv=notrunc 2>/dev/null"],
)  # fmt: skip
def test_a_damaged_one_is_found_and_sent_again(
    transport: Transport, folder: str, project: Path, tmp_path: Path, harm: str
) -> None:
    first = send(transport, folder, project)
    at = quote(f"{first.path}.tar.gz")
    assert transport.run(harm.format(at=at)).code == 0
    copy = archive_copy_script(first.path, str(tmp_path))
    result = transport.run(f"{copy} || exit 9")
    assert result.code == 9 and "-snapshot" in result.text
    assert not (tmp_path / CODE_ARCHIVE).exists()
    assert send(transport, folder, project).files_sent == 7
    assert transport.run(f"{copy} || exit 9").code == 0
    assert unpacked(str(tmp_path / CODE_ARCHIVE), tmp_path / "out").id == scan(project).id


def test_a_cut_one_is_continued(transport: Transport, folder: str, project: Path) -> None:
    with pytest.raises(RefusedError, match="too early"):
        send(Cut(transport), folder, project)
    (left,) = os.listdir(f"{folder}/parts")
    half = os.path.getsize(f"{folder}/parts/{left}")
    assert half > 300_000
    rest = send(transport, folder, project)
    whole = os.path.getsize(f"{rest.path}.tar.gz")
    assert rest.requests == 2 and rest.bytes_sent == whole - half
    assert send(transport, folder, project).requests == 1 and len(stored(folder)) == 2


def test_what_does_not_fit_the_archive_is_not_continued(
    transport: Transport, folder: str, project: Path
) -> None:
    with pytest.raises(RefusedError):
        send(Cut(transport), folder, project)
    (part,) = Path(folder, "parts").iterdir()
    part.write_bytes(b"x" * part.stat().st_size)
    done = send(transport, folder, project)
    assert done.bytes_sent == os.path.getsize(f"{done.path}.tar.gz")


def test_a_file_that_changed_since_ends_it(
    transport: Transport, folder: str, project: Path
) -> None:
    state = scan(project)
    (project / "train.py").write_text("other")
    with pytest.raises(InputError, match=r"'train\.py' changed"):
        sync_archive(transport, folder, state, source_of(project))
    assert not os.path.exists(folder)


def test_a_full_disk_is_refused_and_a_later_send_works(
    transport: Transport, project: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "900k") as disk:
        (disk / "ballast").write_bytes(bytes(400_000))
        with pytest.raises(RefusedError, match=r"(?i)no space left"):
            send(transport, f"{disk}/code", project)
        assert stored(f"{disk}/code") == []
        (disk / "ballast").unlink()
        done = send(transport, f"{disk}/code", project)
        copy = archive_copy_script(done.path, str(disk))
        assert transport.run(f"{copy} || exit 9").code == 9  # two do not fit
        assert sorted(os.listdir(disk)) == ["code"]
        assert send(transport, f"{disk}/code", project).requests == 1


def test_no_room_to_pack_here_is_reported(
    transport: Transport, folder: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with small_disk(tmp_path / "disk", "300k") as disk:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        with pytest.raises(InputError, match=r"could not be packed into .*No space"):
            send(transport, folder, project)


def test_prune_counts_what_it_frees(transport: Transport, folder: str, project: Path) -> None:
    as_folder = sync(transport, folder, scan(project), source_of(project))
    (project / "train.py").write_text("other")
    kept = send(transport, folder, project)
    (project / "train.py").write_text("third")
    send(transport, folder, project)
    (Path(folder) / ".in-old").mkdir()
    os.utime(Path(folder) / ".in-old", (1, 1))

    def used() -> tuple[int, int]:
        count = subprocess.check_output(["find", folder], text=True).count("\n")
        size = subprocess.check_output(["du", "-sk", folder], text=True).split()[0]
        return count, int(size) * 1024

    before = used()
    would = prune(transport, folder, {kept.id}, dry=True)
    assert used() == before
    done = prune(transport, folder, {kept.id})
    assert would == done and len(done.snapshots) == 2 and as_folder.id in done.snapshots
    after = used()
    assert (before[0] - after[0], before[1] - after[1]) == (done.files, done.bytes)
    assert send(transport, folder, project).requests == 2  # the third again
    assert prune(transport, folder, {kept.id}).snapshots != ()
    assert sorted(stored(folder)) == [f"{kept.id}.tar.gz", f"{kept.id}.tar.gz.sha256"]


# Which ship mode, and what is said about it


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a project of more than 20 files a large one, and of more than 60 too large."""
    monkeypatch.setattr(
        project_walk.exceeds, "__defaults__", (project_walk.ProjectLimits(files=20),)
    )
    monkeypatch.setattr("lumitui.app.launch.send.code.project_files.MAX_FILES", 20)
    monkeypatch.setattr(archive, "MAX_FILES", 60)


def grow(project: Path, files: int) -> None:
    (project / "data").mkdir(exist_ok=True)
    for number in range(files):
        (project / "data" / f"{number}").write_text(f"{number}")


def test_the_project_decides_the_ship_mode(runs: Runs, tmp_path: Path, small_limits: None) -> None:
    project = hello_project(tmp_path)
    spec = hello_job(site="lumi")
    few = runs.preview(spec, project)
    assert few.launch.spec == spec and "code.tar.gz" not in few.launch.script
    grow(project, 30)
    many = runs.preview(spec, project)
    assert many.launch.spec.ship == "archive" and "lumitui_unpack" in many.launch.script
    (note,) = [item for item in many.findings if item.rule == "archive"]
    assert (note.severity, "/tmp" in note.message, "memory" in note.message) == ("note", True, True)
    assert [entry.path for entry in collect(many.launch.spec, project).manifest.entries][-1:] == [
        "hello.py"
    ]
    with pytest.raises(InputError, match="or send it as one archive with `ship: archive`"):
        collect(spec, project)
    grow(project, 80)
    with pytest.raises(InputError, match=r"over the limit of 60 files.*`links:`\.$"):
        collect(with_ship_mode(spec, project), project)
    assert with_ship_mode(changed(spec, {"ship": "files"}, ""), project).ship == "files"


def test_results_beside_the_code_and_taken_links_are_reported(
    runs: Runs, tmp_path: Path, small_limits: None
) -> None:
    project = hello_project(tmp_path)
    spec = hello_job(site="lumi", ship="archive", fetch=["code/out.txt"], links={"d": "/x"})
    launch = runs.preview(spec, project).launch
    found = {item.rule: item.severity for item in findings(launch, runs.sites.load("lumi"))}
    assert found["archive-fetch"] == "warning"
    (project / "d").mkdir()
    (project / "d" / "file").write_text("")
    with pytest.raises(InputError, match="links: d is not free"):
        collect(spec, project)


def test_a_site_without_a_folder_on_its_nodes_refuses_it(runs: Runs) -> None:
    site = runs.sites.load("lumi").model_copy(update={"node_folder": ""})
    with pytest.raises(InputError, match="names no folder of the nodes"):
        compose(hello_job(site="lumi", ship="archive"), site)


def test_a_two_gigabyte_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    project = hello_project(tmp_path)
    with open(project / "weights.bin", "wb") as file:
        file.truncate(2 << 30)  # sparse
    spec = with_ship_mode(hello_job(site="lumi"), project)
    assert spec.ship == "archive"
    with pytest.raises(InputError, match=r"limit of 2000 MB; the largest: weights\.bin"):
        collect(spec, project)


# Unpacked


def test_the_job_unpacks_it_on_every_node(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path, small_limits: None
) -> None:
    runs = cluster_runs
    project = hello_project(tmp_path / f"packed-{os.getpid()}")
    grow(project, 30)
    (project / "hello.py").write_text(READS)
    spec = hello_job(nodes=2, workdir="data", links={"in": "/etc", "data/in": "/etc"})
    run = finish(runs, runs.send(runs.preview(spec, project)))
    log = runs.read_log(run.id)[1].decode()
    assert (run.state, run.spec.ship) == (State.DONE, "archive"), log
    assert sorted(path.name for path in Path(run.folder).glob("result-*")) == [
        f"result-{rank}" for rank in range(4)
    ]
    assert {path.read_text() for path in Path(run.folder).glob("result-*")} == {"29 /etc /etc"}
    assert not list(cluster.root.glob(f"nodes/*/tmp/lumitui-{run.id}-*")), "not tidy again"
    # Resubmitted with the same code nothing is sent; from a purged archive it is refused.
    plan = runs.plan_resubmission(run.id, code="same", start="scratch")
    assert "lumitui_unpack" in plan.preview.launch.script
    again = finish(runs, runs.resubmit(plan))
    assert (again.state, again.snapshot) == (State.DONE, run.snapshot)
    held = f"{run.root}/code/{run.snapshot}.tar.gz"
    assert cluster.login(f"rm -f {held}").returncode == 0
    with pytest.raises(RefusedError, match="no longer on the site") as refused:
        runs.resubmit(plan)
    assert "--code current" in refused.value.hint
    newest = runs.history.page(1)[0]
    assert newest.state is State.REFUSED and not os.path.exists(newest.folder)
    # What lies in the run's folder is checked before it is used.
    damaged = runs.preview(spec, project)
    sent: list[str] = []

    def harm(step: str, words: str) -> None:
        sent.append(step)
        if step == "submit":
            path = f"{runs.history.page(1)[0].folder}/{CODE_ARCHIVE}"
            assert cluster.login(f"printf x >>{path}").returncode == 0

    ended = finish(runs, runs.send(damaged, report=harm))
    assert ended.state is State.FAILED and b'"argv"' not in runs.read_log(ended.id)[1]
    assert [item.id for item in runs.why(ended.id)][:1] == ["archive"]
    shutil.rmtree(project)


READS = """\
import os
from pathlib import Path
here = Path("..")
words = f"{here.joinpath('data/29').read_text()} {os.readlink('../in')} {os.readlink('in')}"
Path("beside").write_text("lost with the job")
Path(os.environ["RUN_DIR"], "result-" + os.environ["RANK"]).write_text(words)
"""


def test_it_works_on_this_machine_too(runs: Runs, tmp_path: Path, small_limits: None) -> None:
    project = hello_project(tmp_path / "packed")
    grow(project, 30)
    spec = hello_job(site="laptop", partition="local", account="none", nodes=2)
    run = finish(runs, runs.send(runs.preview(spec, project)))
    assert run.state is State.DONE and run.spec.ship == "archive"
    assert runs.read_log(run.id)[1].count(b'"argv"') == 4
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"lumitui-{run.id}-*"))


@pytest.mark.slow
def test_a_requeued_job_unpacks_it_again_and_tidies_up(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, project = cluster_runs, hello_project(tmp_path / f"requeued-{os.getpid()}")
    (project / "hello.py").write_text(
        "import os, time; print('in', os.getcwd(), flush=True); time.sleep(8)"
    )
    run = runs.send(runs.preview(hello_job(ship="archive", nodes=2), project))
    log = Path(run.folder) / "attempt-1.out"
    wait_until(lambda: log.exists() and log.read_text().count("in /tmp/lumitui-") == 4)
    assert run.job_id and cluster.admin("scontrol", "requeue", run.job_id).returncode == 0
    run = finish(runs, run)
    assert (run.state, run.attempt) == (State.DONE, 2)
    again = (Path(run.folder) / "attempt-2.out").read_text()
    assert again.count(f"in /tmp/lumitui-{run.id}-{run.job_id}-2") == 4
    assert not list(cluster.root.glob(f"nodes/*/tmp/lumitui-{run.id}-*"))


@pytest.mark.slow
def test_a_bundled_trainer_s_results_survive(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = changed(parse_job(TRAIN, "train"), {"ship": "archive", "launcher": "torchrun"}, "")
    spec = changed(spec, {"nodes": 2}, "")
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)), 240)
    assert run.state is State.DONE, runs.read_log(run.id)[1].decode()
    left = set(os.listdir(run.folder))
    assert {"checkpoints", "metrics.jsonl", CODE_ARCHIVE} <= left and "code" not in left
    resumed = runs.resubmit(runs.plan_resubmission(run.id, start="checkpoint"))
    assert finish(runs, resumed, 240).state is State.DONE
