"""The mini cluster of tests/cluster as tests use it: real Slurm, real sshd, LUMI-G's shape.

SLURM, SHAPE and ROOT choose another one, as in tests/cluster/up. A second process of pytest-xdist
has a cluster of its own beside the first one's. `running_cluster("puhti")` is one of another shape,
beside those of LUMI-G's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.places import CLUSTER
from tests.support.servers.link_proxy import LinkProxy, link_proxy

UP_SECONDS = 1200  # the first start installs packages and builds the images' python
PROJECTS = ("test_", "frozen-", "packed-", "requeued-")
"""How the names begin of the projects that tests send."""


@dataclass(frozen=True)
class SlurmCall:
    """One call of a Slurm command on the login node."""

    time: float  # seconds since the epoch
    process: int  # process that called, for instance a shell that stays
    command: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class SshCounts:
    """What sshd has seen: logins, and channels by what was asked of them."""

    logins: int
    commands: int
    shells: int
    subsystems: int


@dataclass(frozen=True)
class Cluster:
    """Where the cluster is and how to reach it."""

    root: Path
    user: str
    host: str
    port: int
    other_port: int  # sshd of the other login host; 0 where there is one alone
    identity: Path
    known_hosts: Path
    ssh_config: Path
    scratch: str
    small: str  # a file system of 16 MB and 5,000 files
    account: str
    nodes: tuple[str, ...]
    python: str
    calls_log: Path
    slurm_version: str
    programs: str  # folder of the Slurm commands
    transfer_port: int = 0  # sshd of the host for files; 0 where there is none
    network: str = ""  # of a closed cluster: the file of its network namespace

    def login(self, command: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
        """Run a command as the login user through real ssh, to arrange and to inspect.

        The status is the command's own; 255 is ssh's. Raises subprocess.TimeoutExpired.
        """
        argv = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", "minilumi", command]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )

    def admin(self, *argv: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
        """Run scontrol, sacct, squeue ... as the cluster's administrator (not counted in calls)."""
        env = {
            **os.environ,
            "SLURM_CONF": str(self.root / "etc" / "slurm.conf"),
            "PATH": f"{self.programs}:{os.environ['PATH']}",
        }
        inside = ("nsenter", f"--net={self.network}") if self.network else ()
        return subprocess.run(
            [*inside, *argv], capture_output=True, text=True, timeout=timeout, env=env
        )

    def calls(self) -> list[SlurmCall]:
        """Slurm commands called on the login node since the last `clear_calls`, oldest first."""
        return [parse_call(line) for line in self.calls_log.read_text().splitlines()]

    def sessions(self) -> SshCounts:
        """Logins and channels sshd has seen since the last `clear_calls`."""
        text = self.sshd_log.read_text()

        def count(pattern: str) -> int:
            return len(re.findall(pattern, text, re.MULTILINE))

        return SshCounts(
            logins=count(r"^Accepted publickey for "),
            commands=count(r"^Starting session: command for "),
            shells=count(r"^Starting session: shell "),
            subsystems=count(r"^Starting session: subsystem "),
        )

    def clear_calls(self) -> None:
        """Forget what calls() and sessions() have counted."""
        os.truncate(self.calls_log, 0)
        os.truncate(self.sshd_log, 0)

    @property
    def sshd_log(self) -> Path:
        """Log of sshd, one line for each login and each channel."""
        return self.root / "log" / "sshd.log"

    @contextmanager
    def proxy(self, rtt_ms: float = 0, mbit: float = 0) -> Iterator[LinkProxy]:
        """Put a network between the test and sshd: round-trip time in ms, bandwidth in Mbit/s."""
        with link_proxy(self.port, rtt_ms, mbit) as proxy:
            try:
                yield proxy
            finally:
                for path in (self.root / "ssh").glob(f"*-{proxy.port}"):
                    path.unlink()

    def behind(self, proxy: LinkProxy) -> Cluster:
        """Describe the same cluster behind a proxy: the port, and ssh files that know it."""
        return self._at(proxy.port)

    def elsewhere(self) -> Cluster:
        """Describe the same cluster as its other login host shows it."""
        return self._at(self.other_port)

    def _at(self, port: int) -> Cluster:
        config = self.root / "ssh" / f"config-{port}"
        known_hosts = self.root / "ssh" / f"known_hosts-{port}"
        text = self.ssh_config.read_text().replace(f"Port {self.port}", f"Port {port}")
        config.write_text(text.replace(str(self.known_hosts), str(known_hosts)))
        keys = self.known_hosts.read_text()
        known_hosts.write_text(keys.replace(f"]:{self.port} ", f"]:{port} "))
        return replace(self, port=port, ssh_config=config, known_hosts=known_hosts)


def parse_call(line: str) -> SlurmCall:
    r"""Read one line of calls.log: fields between tabs; \\, \t and \n are escapes in arguments."""
    time, process, command, *args = line.split("\t")
    escapes = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}
    words = tuple(re.sub(r"\\[\\tn]", lambda found: escapes[found[0]], arg) for arg in args)
    return SlurmCall(float(time), int(process), command, words)


def read_cluster(root: Path) -> Cluster:
    """Read the facts that tests/cluster/up leaves in `root`."""
    lines = (root / "cluster.env").read_text().splitlines()
    facts = dict(line.split("=", 1) for line in lines)
    return Cluster(
        root=root,
        user=facts["USER"],
        host=facts["HOST"],
        port=int(facts["PORT"]),
        other_port=int(facts.get("OTHER_PORT") or 0),
        identity=root / "ssh" / "id",
        known_hosts=root / "ssh" / "known_hosts",
        ssh_config=root / "ssh" / "config",
        scratch=facts["SCRATCH"],
        small=facts.get("SMALL", ""),
        account=facts["ACCOUNT"],
        nodes=tuple(facts["NODES"].split()),
        python=facts["PYTHON"],
        calls_log=root / "log" / "calls.log",
        slurm_version=facts["SLURM_VERSION"],
        programs=facts["PROGRAMS"],
        transfer_port=int(facts.get("TRANSFER_PORT") or 0),
        network=facts.get("NETWORK", ""),
    )


def which_cluster(shape: str | None = None) -> dict[str, str]:
    """Return the environment that chooses this process's own cluster, of a shape that may be given.

    The variables that move the first cluster elsewhere do not count for another one.
    """
    moves = ("ROOT", "SSH_PORT", "OTHER_SSH_PORT", "BASE")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if worker != "0":  # for the programs too that tests start
        for name in moves:
            os.environ.pop(name, None)
        os.environ["COPY"] = worker
    if shape is None:
        return dict(os.environ)
    kept = {name: value for name, value in os.environ.items() if name not in moves}
    return kept | {"SHAPE": shape}


def start(environ: dict[str, str] | None = None) -> tuple[Path, bool]:
    """Start the cluster unless it runs; its folder, and whether this call started it.

    `environ` says which, as tests/cluster/up reads it; by default this process's own.

    Raises RuntimeError, with the reason, where it cannot run.
    """
    environ = environ or which_cluster()
    if sys.platform != "linux" or os.geteuid() != 0:
        raise RuntimeError("the mini cluster needs root on Linux (real slurmd, mounts, users)")
    check = subprocess.run(
        [CLUSTER / "up", "--check"], env=environ, capture_output=True, text=True, timeout=30
    )
    root = Path(check.stdout.strip())
    if check.returncode == 0:
        return root, False
    up = subprocess.run(
        [CLUSTER / "up"], env=environ, capture_output=True, text=True, timeout=UP_SECONDS
    )
    if up.returncode != 0:
        raise RuntimeError(f"tests/cluster/up failed: {(up.stderr or up.stdout)[-500:]}")
    return root, True


def forget_old_runs(cluster: Cluster) -> None:
    """Remove what tests left a quarter of an hour ago or earlier: one session leaves 2 of 4 GiB."""
    root = f"{cluster.scratch}/{cluster.user}/lumitui"
    ours = " -o ".join(f"-path '*/lumitui/{name}*'" for name in PROJECTS)
    old = f"find {root} -ignore_readdir_race -mindepth 3 -maxdepth 3 \\( {ours} \\) -mmin +15"
    above = f"find {root} -ignore_readdir_race -mindepth 1 -maxdepth 2 -type d \\( {ours} \\)"
    # A mark in sent/ is a link, which chmod follows, also to a folder that has gone. All clusters
    # share the scratch: another one may remove the same, and a killed one leaves what nobody may
    # remove. It is a tidying, so that it fails no test.
    cluster.login(
        f"[ ! -d {root} ] || {{ {above} -exec chmod u+w {{}} + ; {old} ! -type l -exec chmod -R"
        f" u+w {{}} + ; {old} -exec rm -rf {{}} + ; }} 2>/dev/null",
        timeout=120,
    )


@contextmanager
def running_cluster(shape: str | None = None, nodes: int | None = None) -> Iterator[Cluster]:
    """Start the cluster unless it runs, and stop it at the end if this call started it.

    It has the shape of LUMI-G, or another one of tests/cluster/shapes, with the shape's number of
    nodes or more. Skips where it cannot run.
    """
    environ = which_cluster(shape)
    if nodes:
        environ["NODES"] = str(nodes)
    try:
        root, started = start(environ)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"no cluster: {error}")
    found = read_cluster(root)
    forget_old_runs(found)
    try:
        yield found
    finally:
        if started:
            down = [CLUSTER / "down"]
            subprocess.run(down, env=environ, check=True, capture_output=True, timeout=180)
