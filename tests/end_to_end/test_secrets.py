"""A planted secret, looked for everywhere; and who may read what a run leaves, here and there."""

import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from textual.app import App

from lumitui.app.cli import process
from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.tui import app as tui
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import CLUSTER, PROGRAM, environ, on_terminal, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.sshd import Sshd, new_key

NAME, SECRET = "WANDB_API_KEY", "pl4nted-'$(touch x)\"-s3cret-0f-th1s-test"
NEEDLE = b"s3cret-0f-th1s-test"
# Another one: ssh-keygen gets it as a word, which the watcher of the other test must not see.
PASSPHRASE = "pl4nted-'$(touch y)\"-0f-th1s-k3y"
PASSPHRASE_NEEDLE = b"0f-th1s-k3y"
GROUP = "project_462000001"
SCRIPT = f"""\
import os, sys, time
assert os.environ["{NAME}"].startswith("pl4nted-'$(touch x)")
run = os.environ["RUN_DIR"]
open(run + "/began", "w").close()
for _ in range(600):
    if os.path.exists(run + "/go"):
        sys.exit(0)
    time.sleep(0.05)
sys.exit("nobody said go")
"""


def lumitui(home: Home, *words: str, umask: int = 0) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env=environ(home, **{NAME: SECRET}), timeout=120, umask=umask, cwd=home.data.parent,
    )  # fmt: skip


@dataclass
class Watcher:
    """Looks at all processes again and again while a run is on its way."""

    home: Home
    needle: bytes = NEEDLE
    seen: set[str] = field(default_factory=set)
    jobs: int = 0
    rounds: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.over.is_set():
            self.look()
            self.over.wait(0.1)

    def look(self) -> None:
        self.rounds += 1
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
                variables = (folder / "environ").read_bytes()
            except OSError:
                continue  # it has ended
            if self.needle in command:
                self.seen.add(f"cmdline {command!r}")
            if self.needle in variables and b"SLURM_JOB_ID=" in variables:
                self.jobs += 1  # the job itself: there it must be
            elif self.needle in variables and str(self.home.data).encode() not in variables:
                self.seen.add(f"environ of {command!r}")


@dataclass(frozen=True)
class Planted:
    """One run with the secret, by the command line under umask 0."""

    home: Home
    run: Run
    told: str
    """All that was printed."""
    watcher: Watcher
    above: Path
    """A folder of the work root that the run made."""
    during: list[str]
    """Files of Slurm with the secret while the job ran."""


def files_with_it(*folders: Path, needle: bytes = NEEDLE) -> list[str]:
    # The words come by the input: a watcher may be looking at all command lines.
    argv = ["grep", "-rlaF", "-D", "skip", "-f", "-", *map(str, folders)]
    done = subprocess.run(argv, input=needle.decode(), capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def planted(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("planted")
    home = Home(folder / "config", folder / "data")
    (home.config / "sites").mkdir(parents=True)
    home.add_cluster(cluster)
    above = Path(f"{cluster.scratch}/rights-{os.urandom(4).hex()}")
    profile = f"extends: minilumi\nwork_root: {above}/a/{{user}}/lumitui\n"
    (home.config / "sites" / "mine.yaml").write_text(profile)
    write(folder / "work" / "job.yaml", CLUSTER | {"site": "mine", "secrets": [NAME]})
    (folder / "work" / "hello.py").write_text(SCRIPT)
    watcher = Watcher(home)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    told = []
    try:
        sent = lumitui(home, "submit", str(folder / "work" / "job.yaml"), "--yes")
        assert sent.returncode == 0, sent.stderr
        kept = History(home.settings.history)
        run = kept.get("last")
        wait_until(Path(run.folder, "began").exists, 60, "the job")
        time.sleep(0.1)  # slurmctld saves its state
        during = files_with_it(cluster.root / "state", cluster.root / "log", cluster.root / "spool")
        cluster.login(f"umask 077; touch {run.folder}/go")
        verbs = (["logs", "-f"], ["status"], ["show"], ["fetch"], ["show", "--json"], ["history"])
        for verb in (*verbs, ["preview"], ["site", "check"]):
            last = {"status": [], "history": [], "site": ["mine"]}
            own = [str(folder / "work" / "job.yaml")] if verb[0] == "preview" else ["last"]
            done = lumitui(home, *verb, *last.get(verb[0], own))
            told += [done.stdout, done.stderr]
        run = kept.get("last")
        kept.close()
        assert run.rc == 0, told
    finally:
        watcher.over.set()
        thread.join()
    yield Planted(home, run, "".join([*told, sent.stdout, sent.stderr]), watcher, above, during)
    subprocess.run(["rm", "-rf", str(above)], check=True)


def test_the_secret_is_nowhere_but_in_the_job(planted: Planted, cluster: Cluster) -> None:
    assert planted.watcher.rounds > 10 and planted.watcher.jobs > 0
    assert planted.watcher.seen == set()
    assert planted.during == []
    assert NEEDLE.decode() not in planted.told
    assert files_with_it(cluster.root / "log", cluster.root / "state", cluster.root / "spool") == []
    assert files_with_it(cluster.root / "db") == []  # what accounting keeps
    assert files_with_it(planted.home.data, planted.home.config, planted.home.data.parent) == []
    assert files_with_it(planted.above) == []  # also `.secrets`: the job ended well


def test_a_run_that_failed_has_no_secrets_when_its_end_was_seen(planted: Planted) -> None:
    work = planted.home.data.parent / "work"
    (work / "hello.py").write_text("raise SystemExit(3)\n")
    lumitui(planted.home, "submit", str(work / "job.yaml"), "--yes", "--wait", "--timeout", "60")
    assert list(planted.above.rglob(".secrets")) == [] == files_with_it(planted.above)


def loose(*folders: Path) -> list[str]:
    """Return what others may read, write or enter."""
    argv = ["find", *map(str, folders), "!", "-type", "l", "-perm", "/077", "-printf", "%m %p\n"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_is_left_here_is_the_persons_alone(planted: Planted) -> None:
    results = planted.home.data.parent / planted.run.id
    assert (results / "attempt-1.out").exists() and (planted.home.data / "history.db").exists()
    assert loose(planted.home.data, results) == []


def test_what_is_left_on_the_site_is_the_users_alone(planted: Planted, cluster: Cluster) -> None:
    assert os.stat(cluster.scratch).st_mode & 0o777 == 0o770  # as it was
    assert Path(planted.run.folder, "job.sh").exists()
    assert loose(planted.above) == []


def as_stranger(*argv: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as another login user of the same project."""
    words = ["setpriv", "--reuid=65534", f"--regid={GROUP}", "--clear-groups", *argv]
    return subprocess.run(words, capture_output=True, text=True)


def test_another_user_of_the_project_reads_nothing(planted: Planted, cluster: Cluster) -> None:
    assert as_stranger("ls", cluster.scratch).returncode == 0
    for path in (planted.run.folder, planted.run.root, f"{planted.run.folder}/job.sh"):
        done = as_stranger("cat" if path.endswith(".sh") else "ls", path)
        assert done.returncode != 0 and "Permission denied" in done.stderr, path


def test_a_default_acl_above_opens_nothing(planted: Planted, cluster: Cluster) -> None:
    # user::rwx group::rwx mask::rwx other::r-x for all that is made below (acl(5)).
    rows = ((1, 7), (4, 7), (0x10, 7), (0x20, 5))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row, 0xFFFFFFFF) for row in rows)
    shared = Path(f"{planted.above}-acl")
    cluster.login(f"mkdir -m 770 {shared}")
    try:
        try:
            os.setxattr(shared, "system.posix_acl_default", acl)
        except OSError as error:
            pytest.skip(f"no ACL here: {error}")
        profile = f"extends: minilumi\nwork_root: {shared}/lumitui\n"
        (planted.home.config / "sites" / "shared.yaml").write_text(profile)
        work = planted.home.data.parent / "shared"
        write(work / "job.yaml", CLUSTER | {"site": "shared"})
        words = ("submit", str(work / "job.yaml"), "--yes", "--wait", "--timeout", "60")
        assert lumitui(planted.home, *words).returncode == 0
        assert as_stranger("ls", f"{shared}/lumitui/shared").stdout.split() == ["code", "runs"]
        for inside in (*shared.glob("lumitui/*/runs/*"), *shared.glob("lumitui/*/code")):
            assert as_stranger("ls", str(inside)).returncode != 0, inside
    finally:
        subprocess.run(["rm", "-rf", str(shared)], check=True)


def test_a_link_that_waits_in_a_shared_folder_is_not_followed(
    planted: Planted, cluster: Cluster, tmp_path: Path
) -> None:
    from lumitui.remote.survey.doctor.examine import work_script

    script = work_script(str(planted.above))
    name = script.partition("/.lumitui-doctor-")[2].split()[0]
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (planted.above / f".lumitui-doctor-{name}").symlink_to(victim)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert "refused" in done.stdout and victim.read_text() == "mine"
    assert name not in work_script(str(planted.above))  # nor can it be guessed


def test_a_passphrase_is_nowhere_when_it_has_opened_the_key(home: Home, tmp_path: Path) -> None:
    locked = new_key(tmp_path / "locked", PASSPHRASE)
    server = Sshd(tmp_path / "sshd")
    watcher = Watcher(home, PASSPHRASE_NEEDLE)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        server.allow(locked)
        server.trust()
        server.configure(f"IdentityFile {locked}")
        prints = "{ed25519: null, rsa: null, ecdsa: null}"
        hosts = f"{{login: site, ssh_config: {server.config}, fingerprints: {prints}}}"
        profile = f"extends: lumi\nname: behind\nhosts: {hosts}\n"
        (home.config / "sites" / "behind.yaml").write_text(profile)
        code, text = on_terminal(
            home, ["site", "check", "behind"], f"{PASSPHRASE}\n", "Passphrase for"
        )
    finally:
        watcher.over.set()
        thread.join()
        server.stop()
    assert "site" in text and server.logged("Accepted publickey") == 1, (code, text)
    assert PASSPHRASE_NEEDLE.decode() not in text
    assert watcher.rounds > 2 and watcher.seen == set()
    assert files_with_it(tmp_path, home.data, home.config, needle=PASSPHRASE_NEEDLE) == []


# -- crashes


def test_a_crash_report_has_no_secret_whatever_its_name(tmp_path: Path) -> None:
    variables = {NAME: SECRET, "NETRC_TEXT": "machine x password hunter2hunter2"}
    try:
        raise KeyError(" ".join(variables.values()))
    except KeyError as problem:
        text = process.crash_report(problem, "submit", variables)
    assert SECRET not in text and "hunter2" not in text and "KeyError" in text


def test_a_defect_of_the_tui_shows_no_local_variable(
    home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def typed(self: tui.LumiApp) -> None:
        password = SECRET
        raise ValueError(len(password))

    monkeypatch.setattr(tui.LumiApp, "on_mount", typed)
    monkeypatch.setattr(tui.LumiApp, "run", lambda app: App.run(app, headless=True))
    with pytest.raises(ValueError, match=str(len(SECRET))):
        tui.run_tui(home.settings)
    shown = "".join(capfd.readouterr())
    assert NEEDLE.decode() not in shown and "Traceback" not in shown
