"""The prediction of throughput: exact where the model holds, honest about what it does not know."""

import math
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.app.scale.scaling.model import FASTEST, SLOWEST, Model, Point
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish

PUBLISHED: dict[str, dict[int, float]] = {
    # samples a second by GPUs: CSC ml-benchmarks, results.md, ResNet50 and language models
    "Puhti fp32": {1: 322, 2: 619, 4: 1233, 8: 2451},
    "Puhti fp16": {1: 658, 2: 1188, 4: 2390, 8: 4641},
    "Mahti A100": {1: 774, 2: 1538, 4: 3087, 8: 5899},
    "Mahti fp16": {1: 1083, 2: 2153, 4: 3945, 8: 7624},
    "LUMI": {1: 531, 2: 1049, 8: 4000, 16: 7685},
    "LUMI fp16": {1: 931, 2: 1725, 8: 6419, 16: 12043},
    "Puhti text": {1: 16.2, 2: 32, 4: 59.9, 8: 104},
    "Mahti text": {1: 12.3, 2: 23.4, 4: 41.6, 8: 66.9},
    "LUMI text": {1: 21.8, 2: 42.1, 8: 115, 16: 166},
}


def law(gpus: int, serial: float, first: float = 1000.0) -> float:
    """The throughput that Amdahl's law gives, with `serial` of the time on one GPU."""
    return first / (serial + (1 - serial) / gpus)


_sizes = st.lists(st.integers(1, 4096), min_size=2, max_size=6, unique=True)


@given(_sizes, st.floats(0, 0.5), st.floats(1e-3, 1e9), st.integers(1, 65536))
def test_a_training_that_follows_the_law_is_predicted_exactly(
    sizes: list[int], serial: float, first: float, wanted: int
) -> None:
    model = Model([Point(size, law(size, serial, first)) for size in sizes])
    found = model.at(wanted)
    assert found.likely is not None
    assert found.likely == pytest.approx(law(wanted, serial, first), rel=1e-4)
    assert found.low <= found.likely * 1.0001 and found.high >= found.likely * 0.9999


_points = st.lists(
    st.builds(Point, st.integers(1, 10**6), st.floats(SLOWEST, FASTEST), st.floats(0, 10)),
    min_size=1,
    max_size=8,
)


@example([Point(1, 1.0), Point(242521, 213749525793598.0)], [1, 10**6])
@given(_points, st.lists(st.integers(1, 10**6), min_size=2, max_size=5))
def test_any_measurement_gives_finite_ordered_numbers_that_never_fall(
    points: list[Point], wanted: list[int]
) -> None:
    model = Model(points)
    found = [model.at(gpus) for gpus in sorted(wanted)]
    for item in found:
        assert math.isfinite(item.high) and 0 < item.low <= item.high
        assert item.likely is None or item.low <= item.likely <= item.high
    # Beyond the largest size it may be less than between: that size's ideal line is the most.
    largest = max(point.gpus for point in points)
    for within in (True, False):
        likely = [
            item.likely
            for gpus, item in zip(sorted(wanted), found, strict=True)
            if item.likely is not None and (gpus <= largest) is within
        ]
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(likely))
    assert model.serial_share is None or 0 <= model.serial_share <= 1


def test_one_size_gives_no_likely_speed_but_the_bounds() -> None:
    model = Model([Point(8, 1000.0)])
    found = model.at(32)
    assert (found.low, found.high, found.likely) == (1000.0, 4000.0, None)
    assert (model.at(4).low, model.at(4).high) == (500.0, 1000.0)
    assert model.at(8).likely == 1000.0


def test_two_sizes_give_a_likely_speed_that_nothing_checks() -> None:
    found = Model([Point(1, 100.0), Point(4, 316.0)]).at(8)
    assert (found.low, found.high) == (316.0, 632.0)
    assert found.likely == pytest.approx(8 * 100 / (1 + 7 * (400 / 316 - 1) / 3))


def test_a_training_that_got_slower_is_not_promised_to_get_faster() -> None:
    found = Model([Point(1, 100.0), Point(2, 80.0)]).at(4)
    assert found.high <= 100.0 and found.low <= 40.0


def test_three_sizes_that_disagree_widen_the_interval() -> None:
    straight = Model([Point(n, law(n, 0.05)) for n in (1, 2, 4)]).at(8)
    bent = Model([Point(1, 1000.0), Point(2, 1700.0), Point(4, 3600.0)]).at(8)
    assert straight.likely and bent.likely
    assert (bent.high - bent.low) / bent.likely > (straight.high - straight.low) / straight.likely


def test_about_eight_of_ten_runs_lie_in_the_interval() -> None:
    chance, inside, tried = random.Random(7), 0, 400
    for _ in range(tried):
        serial = chance.uniform(0.005, 0.1)
        sizes = [1, 2, 4, 8][: chance.choice((3, 4))]
        measured = [Point(n, law(n, serial) * chance.gauss(1, 0.03)) for n in sizes]
        found = Model(measured).at(16)
        inside += found.low <= law(16, serial) * chance.gauss(1, 0.03) <= found.high
    assert 0.7 <= inside / tried <= 1.0


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_are_predicted_from_their_smaller_sizes(name: str) -> None:
    table = PUBLISHED[name]
    *known, wanted = table
    found = Model([Point(gpus, table[gpus]) for gpus in known]).at(wanted)
    assert found.likely is not None
    assert abs(found.likely / table[wanted] - 1) < 0.09  # 8.4 % is the worst
    assert found.low / 1.01 <= table[wanted] <= found.high * 1.01


def test_lumis_vision_transformer_on_four_nodes() -> None:
    # Seconds on 1 and 4 nodes: 667 and 211 by srun, 690 and 218 by torchrun (LUMI AI guide).
    one_size = Model([Point(8, 1 / 667)]).at(32)
    assert 1 / one_size.high == pytest.approx(166.75) and 1 / one_size.low == pytest.approx(667)
    assert one_size.low < 1 / 211 < one_size.high
    both = Model([Point(8, 1 / 667), Point(32, 1 / 211)])
    share = both.serial_share
    assert share is not None and share == pytest.approx(0.0885, abs=0.0005)
    # The share from srun predicts torchrun, which it never saw: 218 s were measured.
    assert 690 * (share + (1 - share) / 4) == pytest.approx(218, rel=0.002)


TRAIN = """\
import json, os
world = int(os.environ["WORLD_SIZE"])
if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["RUN_DIR"], "metrics.jsonl"), "a") as file:
        start = {"event": "start", "world_size": world, "global_batch": 8 * world}
        print(json.dumps(start), file=file)
        for step in range(1, 21):
            line = {"step": step, "epoch": 1, "samples_per_s": 90.0 * world + step % 3}
            print(json.dumps(line), file=file)
"""
JOB = """
name: small
site: laptop
partition: local
time: "00:05:00"
script: train.py
proof: "off"
"""


def test_a_run_and_its_resubmission_are_two_sizes(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    first = finish(runs, runs.send(runs.preview(parse_job(JOB, "job.yaml"), tmp_path)))
    second = finish(runs, runs.resubmit(runs.plan_resubmission(first.id, nodes=2)))
    assert (first.state, second.state) == (State.DONE, State.DONE)
    for asked in (first, second):
        found = runs.scaling.of(asked.id)
        assert [size.nodes for size in found.measured] == [1, 2]
        assert [size.source for size in found.measured] == [
            f"{first.id} (20 steps)",
            f"{second.id} (20 steps)",
        ]
        assert [size.nodes for size in found.sizes] == [1, 2, 4, 8], "up to the site's limit"
        two = found.measured[1]
        assert two.speed_up and two.speed_up.likely == 361 / 181
        assert found.whole.samples == 20 * 8 * (2 if asked is first else 4)
