"""A thousand broken sends: random faults at random steps, several laptops at once.

    make chaos                      1,000 sends, from a seed that is printed
    make chaos N=50 SEED=7          fewer, and from that seed
    python -m tests.measure.chaos --seed 7 --only 123     one of them again

It ends with a table of what they came to, and with status 1 at the first run that is what it must
never be; its folder and its history then stay. What a send meets follows from seed and number;
where in a step a byte count or a pause falls depends on the machine too.
"""

import argparse
import itertools
import random
import secrets
import shutil
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from lumitui.app.launch.send import settle as settling
from tests.support.attacks.broken_sends import (
    Kind,
    Laptop,
    Outcome,
    Seen,
    Violated,
    accidents,
    judge,
)
from tests.support.attacks.faults import Case, Uses, broken, matrix, watch_steps, why_impossible
from tests.support.servers import cluster as cluster_fixture
from tests.support.servers.cluster import Cluster

GRACE = 3.0
"""Seconds instead of settle.GRACE_SECONDS (180), or each send that came to nothing would wait."""
ROUND_TRIPS = (0.0, 10.0, 40.0, 0.0)
"""Milliseconds on the link of each laptop."""
BATCH = 12
"""Sends of one laptop that are judged together, when their jobs have ended."""


@dataclass
class Tally:
    """What has come so far; shared by the threads."""

    began: float = field(default_factory=time.monotonic)
    rows: dict[str, Counter[str]] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)
    open_first: list[float] = field(default_factory=list)
    """Seconds until it was settled, of each send that history first told as open."""
    unknown: int = 0
    late: int = 0
    failure: str = ""
    violated: Counter[str] = field(default_factory=Counter)
    """What must never be, by kind."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def count(self) -> int:
        """Sends that were judged."""
        return self.steps.total()

    def add(self, case: Case, seen: Seen, outcome: Outcome) -> None:
        """Count one send."""
        with self.lock:
            self.rows.setdefault(case.fault.name, Counter())[outcome.word] += 1
            self.steps[case.step] += 1
            self.late += outcome.late
            self.unknown += seen.first == "unknown"
            if seen.first in ("unknown", "sending"):
                self.open_first.append(seen.seconds)
            if self.count % 50 == 0:
                print(f"  {self.count} after {time.monotonic() - self.began:.0f} s", flush=True)

    def fail(self, kind: Kind, words: str) -> None:
        """Keep the first failure; the threads end at it."""
        with self.lock:
            self.violated[kind] += 1
            self.failure = self.failure or words


def draw(seed: str, number: int, uses: Mapping[str, Uses]) -> Case:
    """Return the send `number` of `seed`: every possible pair is as likely."""
    possible = [case for case in matrix() if not why_impossible(case, uses)]
    case = random.Random(f"{seed}:{number}").choice(possible)
    return Case(case.step, case.fault, f"{seed}:{number}:send")


def work(
    laptop: Laptop, uses: Mapping[str, Uses], seed: str, numbers: Iterator[int], tally: Tally
) -> None:
    """Break sends of one laptop until there are no more, or one of any laptop is wrong."""
    while not tally.failure:
        batch: list[tuple[Case, Seen]] = []
        mine: list[int] = []
        try:
            for number in itertools.islice(numbers, BATCH):
                if tally.failure:
                    return
                mine.append(number)
                case = draw(seed, number, uses)
                batch.append((case, broken(case, laptop, uses)))
            if not batch:
                return
            outcomes = judge([seen for _, seen in batch], laptop.hosts[0])
        except Exception as error:  # whatever it is, it ends everything and is told
            traceback.print_exc()
            names = ", ".join(f"{case} ({seen.run_id})" for case, seen in batch)
            words = f"{type(error).__name__}: {error}\n  numbers {mine}; before it: {names}"
            tally.fail(_kind(error), words)
            return
        for (case, seen), outcome in zip(batch, outcomes, strict=True):
            tally.add(case, seen, outcome)
            run = laptop.find(seen.run_id)
            if run is not None:
                shutil.rmtree(run.folder, ignore_errors=True)


def told(tally: Tally, seed: str) -> str:
    """Return the table."""
    words = list(dict.fromkeys(word for row in tally.rows.values() for word in sorted(row)))
    lines = [f"{'':46} " + " ".join(f"[{index}]".rjust(5) for index in range(len(words)))]
    for name, row in sorted(tally.rows.items()):
        lines.append(f"{name:46} " + " ".join(f"{row[word] or '-':>5}" for word in words))
    total = sum(tally.rows.values(), Counter[str]())
    lines.append(f"{'all':46} " + " ".join(f"{total[word]:>5}" for word in words))
    lines += [f"[{index}] {word}" for index, word in enumerate(words)]
    lines.append("by step: " + ", ".join(f"{step} {count}" for step, count in tally.steps.items()))
    waits = sorted(tally.open_first) or [0.0]
    lines.append(
        f"{len(tally.open_first)} were first told as sending or unknown ({tally.unknown} unknown); "
        f"settled after {statistics.median(waits):.1f} s in the middle, {waits[-1]:.1f} s at most "
        f"(grace {GRACE:.0f} s)"
    )
    seconds = time.monotonic() - tally.began
    lines.append(", ".join(f"{tally.violated[kind]} {kind}" for kind in get_args(Kind)))
    lines.append(
        f"{tally.count} sends in {seconds:.0f} s, seed {seed}: "
        f"{'VIOLATED' if tally.failure else 'none violated'}"
    )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", "--count", type=int, default=1000)
    parser.add_argument("--seed", default="")
    parser.add_argument("--only", type=int, help="this send of the seed alone")
    parser.add_argument("--laptops", type=int, default=3, help="sends that are under way at once")
    asked = parser.parse_args(argv)
    seed = asked.seed or str(secrets.randbelow(1_000_000))
    print(f"seed {seed}", flush=True)
    settling.GRACE_SECONDS = GRACE
    root, _ = cluster_fixture.start()
    cluster = cluster_fixture.read_cluster(root)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    tally = Tally()
    with ExitStack() as stack:
        stack.enter_context(_bystander_counted(cluster, tally))
        places = []
        for index in range(1 if asked.only is not None else asked.laptops):
            proxy = stack.enter_context(cluster.proxy(rtt_ms=ROUND_TRIPS[index % 4]))
            laptop = Laptop(folder / str(index), cluster, proxy)
            stack.callback(laptop.close)
            places.append((laptop, watch_steps(laptop)))
        chosen = range(asked.count) if asked.only is None else range(asked.only, asked.only + 1)
        numbers = _shared(iter(chosen))
        with ThreadPoolExecutor(len(places)) as pool:
            for done in [pool.submit(work, *place, seed, numbers, tally) for place in places]:
                done.result()
    print(told(tally, seed))
    if tally.failure:
        print(f"VIOLATED, seed {seed}: {tally.failure}\n  what is left is in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _kind(error: Exception) -> Kind:
    if isinstance(error, Violated):
        return error.kind
    # What does not come to its end in time.
    return "lost" if isinstance(error, AssertionError) else "tracebacks"


@contextmanager
def _bystander_counted(cluster: Cluster, tally: Tally) -> Iterator[None]:
    """Let sends meet accidents; count it when a job was ended that is no run's."""
    try:
        with accidents(cluster):
            yield
    except Violated as error:
        tally.fail(error.kind, str(error))


def _shared(numbers: Iterator[int]) -> Iterator[int]:
    """Return an iterator that several threads may draw from."""
    lock = threading.Lock()

    class Shared:
        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            with lock:
                return next(numbers)

    return Shared()


if __name__ == "__main__":
    sys.exit(main())
