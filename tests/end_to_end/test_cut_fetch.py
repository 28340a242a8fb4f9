"""A fetch whose link is cut anywhere: exit code 0 means that every file is here, and whole."""

import hashlib
import json
from pathlib import Path

import pytest

from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.program.command_line import CLUSTER, envelope, history, lt, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

PROGRAM = """\
import hashlib, json, os, random
folder = os.environ["RUN_DIR"] + "/results/"
os.makedirs(folder + "deep")
sums = {}
for name, size in [*((f"small-{n}", 900 + n) for n in range(9)), ("deep/middle", 90_000),
                   ("empty", 0), ("large", 1_500_000), ("last", 40_000)]:
    data = random.Random(name).randbytes(size)
    sums[name] = hashlib.sha256(data).hexdigest()
    with open(folder + name, "wb") as file:
        file.write(data)
print(json.dumps(sums))
"""


def is_whole(folder: Path, sums: dict[str, str]) -> bool:
    """Return whether all files are here as they were written, and nothing else."""
    found = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return found == sums


@pytest.mark.slow
def test_a_fetch_that_was_cut_ends_with_0_only_when_all_is_here(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.proxy() as network:
        home.add_cluster(cluster.behind(network))
        job = write(tmp_path / "work" / "job.yaml", CLUSTER)
        (job.parent / "hello.py").write_text(PROGRAM)
        sent = lt(home, "submit", str(job), "--yes", "--wait", "--timeout", "100", "--json")
        assert sent.returncode == 0, sent.stderr
        (run,) = history(home)
        assert run["state"] == State.DONE
        log = lt(home, "logs", run["id"]).stdout
        sums = json.loads(next(line for line in log.split("\n") if line.startswith('{"small')))

        def fetched(name: str) -> tuple[int, bool, str]:
            to = tmp_path / "to" / name
            done = lt(home, "fetch", run["id"], "results", "--to", str(to), "--json")
            if done.returncode == 0:
                assert len(envelope(done)["data"]["files"]) == len(sums)
            else:
                assert "error: " in done.stderr and "Traceback" not in done.stderr
            here = to / "results"
            # What is there under its own name is always whole; a part has another name.
            for path in here.rglob("*"):
                if path.is_file() and (name := str(path.relative_to(here))) in sums:
                    assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name]
            return done.returncode, is_whole(here, sums), done.stderr

        network.reset()
        assert fetched("uncut")[:2] == (0, True)
        whole = network.stats().down
        ends = []
        for part in (0.05, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999):
            network.reset()
            network.cut_after(int(whole * part))
            code, complete, said = fetched(str(part))
            ends.append((part, network.stats().cuts, code, complete))
            assert (code == 0) == complete, (ends, said)
            network.cut()  # what was left of the allowance
        # What came over the link before the cut stays, and the next fetch brings the rest.
        assert fetched("0.7")[:2] == (0, True)
        cut_short = [code for _, cuts, code, _ in ends if cuts and code]
        assert len(cut_short) > 4 and set(cut_short) == {3}, ends
