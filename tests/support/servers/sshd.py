"""A real sshd of the tests' own on a free port, and a configuration to reach it."""

import contextlib
import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.ssh import connection
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import LoginQuestion

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def new_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def fingerprint(key: Path) -> str:
    done = subprocess.run(["ssh-keygen", "-lf", key], check=True, capture_output=True, text=True)
    return done.stdout.split()[1]


def public(key: Path) -> str:
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


class Answers:
    """A person: gives the answers in order, None once there are no more; keeps the questions."""

    def __init__(self, *words: str) -> None:
        self.words, self.questions = list(words), list[LoginQuestion]()

    def __call__(self, question: LoginQuestion) -> str | None:
        self.questions.append(question)
        return self.words.pop(0) if self.words else None


class Sshd:
    """One server; its folder holds keys, configuration and the person's files.

    `options` win over what is here; `program` is sshd under another name.
    """

    def __init__(self, folder: Path, *options: str, program: str = SSHD) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.host_key = new_key(folder / "host_key")
        self.identity = new_key(folder / "identity")
        self.known_hosts, self.config = folder / "known_hosts", folder / "config"
        self.allow(self.identity)
        self.configure()
        lines = [
            *options, f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {folder}/authorized", "StrictModes no", "PidFile none",
            "UsePAM no", f"SetEnv HOME={folder}", "PermitRootLogin yes",
            "PasswordAuthentication no", "LogLevel VERBOSE",
        ]  # fmt: skip
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        self._log = open(folder / "log", "wb")  # noqa: SIM115  # closed by `stop`
        Path("/run/sshd").mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=self._log
        )
        wait_for(self._listens, "sshd to listen")

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def allow(self, *keys: Path) -> None:
        (self.folder / "authorized").write_text("".join(public(key) + "\n" for key in keys))

    def configure(self, *lines: str) -> None:
        """Write the person's ssh_config: `lines` hold for the host `site` and win."""
        text = [
            "Host site", *lines, "Host *", "HostName 127.0.0.1", f"Port {self.port}",
            f"User {getpass.getuser()}", f"IdentityFile {self.identity}", "IdentitiesOnly yes",
            f"UserKnownHostsFile {self.known_hosts}", "GlobalKnownHostsFile /dev/null",
            "IdentityAgent none", "ConnectTimeout 3",
        ]  # fmt: skip
        self.config.write_text("\n".join(text) + "\n")

    def trust(self, *names: str) -> None:
        names = names or (f"[127.0.0.1]:{self.port}",)
        self.known_hosts.write_text("".join(f"{n} {public(self.host_key)}\n" for n in names))

    def login(self, published: str = "", identity: Path | None = None) -> Login:
        prints = {"ssh-ed25519": published} if published else {}
        return Login("site", config=self.config, fingerprints=prints, identity=identity)

    def connect(self, *words: str) -> Ssh:
        """A transport to it whose host key is known."""
        if not self.known_hosts.exists():
            self.trust()
        return Ssh(self.login(), Answers(*words))

    def logged(self, words: str) -> int:
        """How often `words` stand in the server's log: `Accepted `, `Failed `, `Connection from`.

        The check that the server listens is a connection too: one at its start.
        """
        return (self.folder / "log").read_text("utf-8", "replace").count(words)

    def sessions(self) -> list[int]:
        """The server's processes that hold a connection now."""
        return _children(self._process.pid)

    def drop(self) -> None:
        """End every connection as a restart of the server's machine would."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self.drop()
        self._process.terminate()
        self._process.wait(10)
        self._log.close()


def logs_in(connection: Ssh) -> None:
    """Run a command over a connection, and close it."""
    assert connection.run("echo in").text == "in\n"
    connection.close()


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True)
    rows = (line.split() for line in found.stdout.decode().splitlines())
    return [int(number) for number, state in rows if not state.startswith("Z")]


def wait_for(ready: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip()[:1] in ("", "Z")


def _has_sshd() -> bool:
    with contextlib.suppress(KeyError):
        separation = os.geteuid() != 0 or pwd.getpwnam("sshd")  # the package's last step
        return bool(separation and os.access(SSHD, os.X_OK) and shutil.which("ssh-keygen"))
    return False


@contextlib.contextmanager
def running_sshd(folder: Path, *options: str, program: str = SSHD) -> Iterator[Sshd]:
    """Run a server for a test, or skip it where that cannot be."""
    if not _has_sshd():
        pytest.skip("needs OpenSSH's sshd (Debian: apt-get install openssh-server)")
    server = Sshd(folder, *options, program=program)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def busy_sshd(folder: Path) -> Iterator[Sshd]:
    """Run a server that allows one login at a time; the pauses between tries are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_PAUSES", (0.3, 0.6))
        with running_sshd(folder, "MaxStartups 1") as server:
            wait_for(lambda: not server.sessions(), "the check that it listens to end")
            yield server


@contextlib.contextmanager
def half_open(port: int) -> Iterator[socket.socket]:
    """Begin somebody else's login that gets no further than the server's banner."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # the check that it listens may still be under way
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            if sock.recv(64).startswith(b"SSH-"):
                yield sock
                return
        time.sleep(0.05)
    raise AssertionError("no login can be begun")
