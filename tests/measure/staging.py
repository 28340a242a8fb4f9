"""`python -m tests.measure.staging`: how long staged files take beside rsync, over a slow link.

A real sshd behind a link of 50 ms. Two data sets: one file, and 10,000 files. Each is sent to an
empty folder, then again with nothing changed; rsync does the same with `-a`. `turns` are round
trips one after the other, as the link saw them.

    python -m tests.measure.staging [MEGABYTES] [FILES] [MILLISECONDS]
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.transfer.contents.content_upload import stage
from lumitui.remote.transfer.contents.staged_files import find, read
from lumitui.remote.transport.transport import Transport
from tests.support.servers.link_proxy import LinkProxy, link_proxy
from tests.support.servers.sshd import Sshd, running_sshd

MEGABYTES, FILES, MILLISECONDS = 2000, 10_000, 50


def data_set(folder: Path, megabytes: int, files: int) -> Path:
    """Write random bytes, which no link shrinks, into so many files."""
    chance = random.Random(files)
    each = megabytes * 1_000_000 // files
    for number in range(files):
        place = folder / f"{number // 1000:03d}" / f"{number:06d}.bin"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            for _ in range(each // 1_000_000):
                file.write(chance.randbytes(1_000_000))
            file.write(chance.randbytes(each % 1_000_000))
    return folder


def measured(proxy: LinkProxy, work: Callable[[], None]) -> tuple[float, int, int]:
    """Return the seconds that `work` takes, the turns of the link, and the bytes up."""
    proxy.reset()
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    counts = proxy.stats()
    return seconds, counts.turns, counts.up


def staged(site: Transport, target: str, source: Path) -> None:
    """Hash and send `source`, as a send does the first time."""
    found = find("DATA", source)
    item = read(found, Hashes(source.with_name("hashes.json"), found.root))
    stage(site, target, item, site="lumi", report=lambda progress: None)


def rsynced(server: Sshd, target: str, source: Path) -> None:
    """Send `source` with rsync, as its manual says."""
    shell = f"ssh -F {server.config} -o BatchMode=yes"
    subprocess.run(["rsync", "-a", "-e", shell, f"{source}/", f"site:{target}"], check=True)


@contextmanager
def far_away(folder: Path, milliseconds: float) -> Iterator[tuple[Sshd, LinkProxy]]:
    """Start an sshd behind a link of so many milliseconds."""
    with running_sshd(folder) as server, link_proxy(server.port, milliseconds) as proxy:
        server.trust(f"[127.0.0.1]:{proxy.port}")
        server.configure(f"Port {proxy.port}")
        yield server, proxy


def compare(folder: Path, megabytes: int, files: int, milliseconds: float) -> None:
    """Print one data set's rows."""
    source = data_set(folder / "data", megabytes, files)
    with far_away(folder / "sshd", milliseconds) as (server, proxy):
        os.makedirs(folder / "rsync")
        site = server.connect()
        site.run("true")
        works: dict[str, Callable[[], None]] = {
            "lumitui": lambda: staged(site, str(folder / "stage"), source),
            "rsync": lambda: rsynced(server, str(folder / "rsync"), source),
        }
        first = {name: measured(proxy, work) for name, work in works.items()}
        again = {name: measured(proxy, work) for name, work in works.items()}
        site.close()
    for title, found in (("sent", first), ("again", again)):
        for name, (seconds, turns, up) in found.items():
            ratio = seconds / found["rsync"][0]
            print(
                f"{files:>6} files {megabytes:>5} MB  {title:<6} {name:<8} {seconds:7.1f} s "
                f"{ratio:5.2f} x rsync  {turns:>6} turns  {up / 1e6:8.1f} MB up",
                flush=True,
            )
    shutil.rmtree(folder / "data")


def main(megabytes: int = MEGABYTES, files: int = FILES, milliseconds: int = MILLISECONDS) -> None:
    """Compare both data sets."""
    for count in (1, files):
        with tempfile.TemporaryDirectory(prefix="staging-", dir="/dev/shm") as folder:
            try:
                compare(Path(folder), megabytes, count, milliseconds)
            finally:
                subprocess.run(["chmod", "-R", "u+w", folder], check=False)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
