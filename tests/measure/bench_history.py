"""What a history of 100,000 runs costs: `python -m tests.measure.bench_history [RUNS]`.

The runs are those of sweeps: a thousand job files, each with a script and a spec of its own, sent a
hundred times; a proof of 16 ranks on its own nodes in each run, a patch in every tenth. The same
verb on an empty history beside it, in the same run, is the start of the program. Times are
the processor's, and the least of alternating rounds, so that other work on the machine counts
little; memory is the most that the process had.
"""

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.listing.filters import parse_filter
from lumitui.app.history.listing.find_runs import Filter, Order, OrderBy, RunListing
from lumitui.app.history.run import Provenance, Run
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.places import GOLDEN, ROOT

RUNS, SWEEPS, RANKS, ROUNDS = 100_000, 1000, 16, 15
LIMIT_MS = 50.0
"""What a page, a filter and a count may take over the start of the program."""
SORT_LIMIT_MS = 400.0
"""What a first page in another order may take: it looks at every run."""
SCRIPT = (GOLDEN / "laif" / "run_ddp_srun_4.sh").read_text()
STATES = (State.DONE, State.DONE, State.DONE, State.CANCELLED, State.DONE)


def proof(dice: random.Random) -> str:
    """Return what the probe of a run on two nodes writes."""
    hosts = [f"nid{dice.randrange(5000, 8000):06d}" for _ in range(2)]
    lines = [
        f'{{"rank": {rank}, "local_rank": {rank % 8}, "host": "{hosts[rank // 8]}", '
        f'"cores": "{49 - rank % 8 * 6}-{55 - rank % 8 * 6}", "gpus": "{rank % 8}"}}'
        for rank in range(RANKS)
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def made_runs(count: int) -> Iterator[Run]:
    """Yield the runs, the oldest first."""
    dice = random.Random(1)
    patches = [
        "".join(f"+value_{line} = {dice.random()}\n" for line in range(100)) for _ in range(500)
    ]
    for number in range(count):
        sweep = dice.randrange(SWEEPS)
        name, run_id = f"vit-sweep-{sweep:03d}", f"vit-sweep-{sweep:03d}-{number:06x}"
        spec = SPEC.model_copy(update={"name": name, "args": ("--lr", f"{sweep / 1e5}")})
        root = "/scratch/project_462000001/researcher/multi-gpu-training"
        rare = number % 5000 == 17
        yield replace(
            a_run(run_id, name=name, spec=spec, script=f"{SCRIPT}# --lr {sweep / 1e5}\n"),
            created=1.7e9 + number * 60.0,
            site="rare-site" if rare else "lumi",
            state=State.FAILED if rare else STATES[number % 5],
            job_id=str(9_000_000 + number),
            submitted=1.7e9 + number * 60.0 + 2,
            started=1.7e9 + number * 60.0 + 30,
            ended=1.7e9 + number * 60.0 + 900,
            rc=0,
            binding=proof(dice),
            folder=f"{root}/runs/{run_id}",
            root=root,
            token=f"{dice.getrandbits(64):016x}",
            snapshot=f"{dice.getrandbits(256):064x}",
            provenance=Provenance(
                f"{dice.getrandbits(160):040x}", "main", patches[number % 500], True
            )
            if number % 10 == 0
            else Provenance(f"{dice.getrandbits(160):040x}", "main", "", False),
            note="the best one so far" if number % 1000 == 5 else "",
        )


def fill(path: Path, count: int) -> None:
    """Write `count` runs to a history."""
    history = History(path)
    batch: list[Run] = []
    for run in made_runs(count):
        batch.append(run)
        if len(batch) == 5000:
            history.adopt(batch)
            batch.clear()
    history.adopt(batch)
    history.close()


def verb(folder: Path, *words: str) -> tuple[float, float]:
    """Run a verb on the history in `folder`; return its processor seconds and its megabytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LUMITUI_DATA_DIR": str(folder)}
    argv = [sys.executable, "-m", "lumitui.app.cli.main", *words]
    process = subprocess.Popen(
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"`lumitui {' '.join(words)}` ended with {process.returncode}")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


def over_the_start(folder: Path, empty: Path) -> dict[str, tuple[float, float]]:
    """Return seconds and megabytes of verbs, less and beside those on an empty history."""
    verbs: dict[str, tuple[str, ...]] = {
        "a page": ("history",),
        "a site": ("history", "--site", "rare-site"),
        "a state": ("history", "--filter", "failed"),
        "a rare text": ("history", "--filter", "0186a"),
        "no such text": ("history", "--filter", "nowhere"),
    }
    found = {}
    for name, words in verbs.items():
        least = ("history",) if "--site" in words else words
        pairs = [(verb(empty, *least), verb(folder, *words)) for _ in range(ROUNDS)]
        none, full = (min(pair[side][0] for pair in pairs) for side in (0, 1))
        found[name] = (full - none, max(pair[1][1] for pair in pairs))
    return found


def milliseconds(action: Callable[[], object]) -> float:
    """Return the least milliseconds of `action`."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        action()
        rounds.append((time.process_time() - began) * 1e3)
    return min(rounds)


def listing(text: str) -> RunListing:
    """Return the list that a filter makes."""
    return RunListing(Filter(terms=parse_filter(text)), now=time.time())


def inside(path: Path, count: int) -> dict[str, float]:
    """Return the milliseconds of what a screen asks, in one process."""
    history = History(path)
    asked: dict[str, Callable[[], object]] = {
        "a page of 50": lambda: history.page(50),
        "a rare site": lambda: history.page(50, site="rare-site"),
        "a rare state": lambda: history.page(50, state=State.FAILED),
        "site and state": lambda: history.page(50, site="rare-site", state=State.DONE),
        "a rare text": lambda: history.finder.entries(listing("0186a"), 200, None),
        "two characters": lambda: history.finder.entries(listing("zq"), 200, None),
        "a filter by words": lambda: history.finder.entries(listing("nowhere"), 200, None),
        "a filter by state": lambda: history.finder.entries(listing("failed"), 200, None),
        "a filter by size": lambda: history.finder.entries(listing("nodes:>=999"), 200, None),
        "a filter by tag": lambda: history.finder.entries(listing("#none"), 200, None),
        "a page of ids": lambda: history.finder.entries(RunListing(), 200, None),
        "the count": history.count,
        "the unfinished": history.count_unfinished,
    }
    orders = {f"sorted by {by}": RunListing(order=Order(by), now=time.time()) for by in OrderBy}
    for name, each in orders.items():
        asked[name] = partial(history.finder.entries, each, 200, None)
    found = {name: milliseconds(action) for name, action in asked.items()}
    history.close()
    return found


def limit_of(what: str) -> float:
    """Return the milliseconds that something may take."""
    return SORT_LIMIT_MS if what.startswith("sorted") else LIMIT_MS


def main(count: int) -> int:
    """Print the table; fail when a page, a filter or a count takes longer than promised."""
    with tempfile.TemporaryDirectory() as name:
        folder, empty = Path(name) / "full", Path(name) / "empty"
        # In another process: the memory of this one would count as that of each it starts.
        filling = multiprocessing.get_context("spawn").Process(
            target=fill, args=(folder / "history.db", count)
        )
        filling.start()
        filling.join()
        size = (folder / "history.db").stat().st_size
        print(f"{count:,} runs: {size / 1e6:.0f} MB", flush=True)
        History(empty / "history.db").close()
        verbs = over_the_start(folder, empty)
        base = min(verb(empty, "history")[0] for _ in range(ROUNDS))
        print(f"the start of the program: {base * 1e3:.0f} ms")
        for what, (more, memory) in verbs.items():
            print(f"  history, {what:22} +{more * 1e3:6.0f} ms  {memory:5.0f} MB")
        for words in (("--json",), ()):
            took, memory = verb(folder, "history", "--limit", str(count), *words)
            print(f"all of it {' '.join(words):6} {took:6.1f} s  {memory:5.0f} MB")
        asked = inside(folder / "history.db", count)
        for what, took in asked.items():
            print(f"  in a process, {what:22} {took:8.1f} ms")
    slow = [what for what, (more, _) in verbs.items() if more * 1e3 > LIMIT_MS]
    slow += [what for what, took in asked.items() if took > limit_of(what)]
    for what in slow:
        print(f"{what}: more than {limit_of(what):.0f} ms", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
