"""`make bench`: lumitui beside rsync over the same bad link, in the same run.

A project of 2,000 files and 24 MB goes to the mini cluster's login node through a proxy with
50 ms round trip and 100 Mbit/s. Beside it: rsync as it is typed, which connects each time, and
rsync over an OpenSSH master connection that is open before the clock starts, as lumitui's own is.
Turns: how often the traffic changes direction. Times are medians.
"""

import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from tests.support.servers.cluster import Cluster, read_cluster, start
from tests.support.servers.link_proxy import LinkProxy

FILES, BYTES, RTT_MS, MBIT, ROUNDS = 2000, 24_000_000, 50, 100, 3


@dataclass(frozen=True)
class Cost:
    """What one transfer took: the median seconds, the most turns and bytes."""

    seconds: float
    turns: int
    bytes: int


def make_project(root: Path) -> None:
    """Fill `root` with code-like files: half text that compresses, half bytes that do not."""
    dice = random.Random(1)
    for number in range(FILES):
        path = root / f"package{number % 40:02d}" / f"module{number:04d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = BYTES // FILES
        text = f"value_{number} = {dice.random()}\n".encode()
        path.write_bytes((text * (size // len(text) + 1))[: size // 2] + dice.randbytes(size // 2))


def measure(proxy: LinkProxy, action: Callable[[], object]) -> tuple[float, int, int]:
    """Run `action`; return its seconds, turns and bytes on the link."""
    proxy.reset()
    began = time.perf_counter()
    action()
    seconds = time.perf_counter() - began
    counts = proxy.stats()
    return seconds, counts.turns, counts.up + counts.down


def cost(rounds: list[tuple[float, int, int]]) -> Cost:
    """Return the median time, and the most turns and bytes, of some rounds."""
    return Cost(
        statistics.median(item[0] for item in rounds),
        max(item[1] for item in rounds),
        max(item[2] for item in rounds),
    )


def touch_one(root: Path) -> None:
    """Change one file."""
    path = root / "package07" / "module0007.py"
    path.write_text(f"changed = {secrets.token_hex(8)!r}\n")


def bench_lumitui(cluster: Cluster, proxy: LinkProxy, root: Path) -> dict[str, Cost]:
    """Return what sync costs: everything, one file, nothing."""
    ssh = Ssh(Login("minilumi", config=cluster.ssh_config))
    where, hashes = source_of(root), root.with_name("hashes.json")
    rounds: dict[str, list[tuple[float, int, int]]] = {"cold": [], "one file": [], "nothing": []}
    ssh.run("true")
    try:
        for _ in range(ROUNDS):
            folder = f"{cluster.scratch}/{cluster.user}/bench-{secrets.token_hex(4)}/code"
            known: Manifest | None = None

            def send(folder: str = folder) -> None:
                nonlocal known
                manifest = scan(root, hashes=Hashes(hashes, root))
                sync(ssh, folder, manifest, where, known)
                known = manifest

            rounds["cold"].append(measure(proxy, send))
            touch_one(root)
            rounds["one file"].append(measure(proxy, send))
            rounds["nothing"].append(measure(proxy, send))
            cluster.login(f"chmod -R u+w {folder} && rm -rf {folder.rpartition('/')[0]}")
    finally:
        ssh.close()
    return {name: cost(items) for name, items in rounds.items()}


def bench_rsync(
    cluster: Cluster, proxy: LinkProxy, root: Path, master: Path | None
) -> dict[str, Cost]:
    """Return what rsync -az --delete costs for the same; `master`: a socket to keep open."""
    shell = f"ssh -F {cluster.ssh_config}"
    rounds: dict[str, list[tuple[float, int, int]]] = {"cold": [], "one file": [], "nothing": []}
    if master:
        shell += f" -o ControlMaster=auto -o ControlPath={master} -o ControlPersist=60"
        subprocess.run([*shell.split(), "minilumi", "true"], check=True, timeout=60)
    for _ in range(ROUNDS):
        folder = f"{cluster.scratch}/{cluster.user}/bench-{secrets.token_hex(4)}"

        def send(folder: str = folder) -> None:
            argv = ["rsync", "-az", "--delete", "-e", shell, f"{root}/", f"minilumi:{folder}/"]
            subprocess.run(argv, check=True, timeout=120)

        rounds["cold"].append(measure(proxy, send))
        touch_one(root)
        rounds["one file"].append(measure(proxy, send))
        rounds["nothing"].append(measure(proxy, send))
        cluster.login(f"rm -rf {folder}")
    if master:
        subprocess.run([*shell.split(), "-O", "exit", "minilumi"], capture_output=True, timeout=20)
    return {name: cost(items) for name, items in rounds.items()}


def main() -> int:
    """Print the table; fail when a promised limit is passed."""
    root, _ = start()
    with (
        tempfile.TemporaryDirectory() as folder,
        read_cluster(root).proxy(rtt_ms=RTT_MS, mbit=MBIT) as proxy,
    ):
        work = Path(folder)
        project = work / "project"
        make_project(project)
        cluster = read_cluster(root).behind(proxy)
        own = bench_lumitui(cluster, proxy, project)
        rsync = bench_rsync(cluster, proxy, project, None)
        warm = bench_rsync(cluster, proxy, project, work / "master")
    print(f"{FILES:,} files, {BYTES / 1e6:.0f} MB, {RTT_MS} ms, {MBIT} Mbit/s, {ROUNDS} rounds")
    print(f"{'':10} {'lumitui':>19} {'rsync':>19} ratio {'rsync, open master':>23} ratio")
    for name, mine in own.items():
        line = f"{name:10} {mine.seconds:7.2f} s {mine.turns:3} turns"
        for peer in (rsync[name], warm[name]):
            ratio = mine.seconds / peer.seconds
            line += f" {peer.seconds:7.2f} s {peer.turns:3} turns  {ratio:.2f}"
        print(line)
    limits = {"cold": 40, "one file": 4, "nothing": 2}
    passed = [name for name, most in limits.items() if own[name].turns > most]
    slow = own["one file"].seconds > rsync["one file"].seconds / 3
    for name in passed:
        print(f"{name}: {own[name].turns} turns are more than {limits[name]}", file=sys.stderr)
    if slow:
        print("one file: more than a third of rsync's time", file=sys.stderr)
    return 1 if passed or slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
