"""The prediction from one size, held to every published table of trainings on several sizes."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.scale.scaling.step_time import (
    HIGH,
    LOW,
    CalibratedSize,
    GradientExchange,
    StepModel,
    Wire,
)
from lumitui.remote.site.node import Links
from lumitui.remote.site.sites import BUILT_IN, Sites

TOLERANCE = 0.15
LUMI_LINKS = Sites([BUILT_IN]).load("lumi").node.links
assert LUMI_LINKS is not None
# NVLink: 150 GB/s a direction of a V100 and 300 of an A100 (NVIDIA's data sheets), of which an
# all-reduce reaches 80 %. Puhti has two HDR100 cards a node and Mahti one HDR200: 25 GB/s, and
# the share of it as on LUMI, 88 %. Sources: docs.csc.fi, systems-puhti and systems-mahti.
_CSC = {"between_nodes": 22, "latency_in_node": 8, "latency_between_nodes": 25}
LINKS: dict[str, Links] = {
    "puhti": Links(in_node=120, **_CSC),
    "mahti": Links(in_node=240, **_CSC),
    "lumi": LUMI_LINKS,
}
RESNET50, GPT_NEO, VIT_B16 = 25_557_032, 125_198_592, 86_567_656
"""Parameters: torchvision's tables of models, and EleutherAI/gpt-neo-125M."""


CLM_START = 7.0
"""Seconds of each run_clm.py in which no step ends: loaders, kernels, the first exchange. A run
of lumitui's measures what it takes besides its steps (`ScalingSize.start_up`); these tables do
not say it. It is one free number for 16 published figures, of which 12 are predicted."""


@dataclass(frozen=True)
class Table:
    """A published training: samples a second by GPUs; the first one calibrates the model."""

    site: str
    speeds: dict[int, float]
    calibrated: float | None = None
    """On one GPU, where the table has no such figure: that of the same training with DDP."""
    parameters: int = RESNET50
    batch: int = 32
    accumulated: int = 1
    """Batches of one GPU in a step; more GPUs share them."""
    steps: int | None = None
    """Of the whole training, where its samples a second are over all its time."""

    def stepping(self, speed: float) -> float:
        """Return the samples a second of its steps alone; `speed` is the published one."""
        if self.steps is None:
            return speed
        samples = self.steps * self.batch * self.accumulated
        return samples / (samples / speed - CLM_START)


# Source: mvsjober/ml-benchmarks d5c4253, results.md: ResNet-50, and run_clm.py, which reports the
# samples of a whole training of 9 to 190 s over all its time.
PUBLISHED = {
    "Puhti fp32": Table("puhti", {1: 322, 2: 619, 4: 1233, 8: 2451}),
    "Puhti fp16": Table("puhti", {1: 658, 2: 1188, 4: 2390, 8: 4641}),
    "Mahti fp32": Table("mahti", {1: 774, 2: 1538, 4: 3087, 8: 5899}),
    "Mahti fp16": Table("mahti", {1: 1083, 2: 2153, 4: 3945, 8: 7624}),
    "LUMI fp32": Table("lumi", {1: 531, 2: 1049, 8: 4000, 16: 7685}),
    "LUMI fp16": Table("lumi", {1: 931, 2: 1725, 8: 6419, 16: 12043}),
    "Puhti Lightning": Table("puhti", {1: 319, 4: 1227, 8: 2446}),
    "Mahti Lightning": Table("mahti", {1: 755, 4: 2991, 8: 5817}),
    "LUMI Lightning": Table("lumi", {1: 523, 8: 3791, 16: 7192}),
    "Puhti DeepSpeed": Table("puhti", {4: 1247, 8: 2410}, 322),
    "Mahti DeepSpeed": Table("mahti", {4: 3117, 8: 5358}, 774),
    "LUMI DeepSpeed": Table("lumi", {8: 3839, 16: 7651}, 531),
    "Puhti ImageNet": Table("puhti", {1: 323, 4: 1233, 8: 2450}),
    "Mahti ImageNet": Table("mahti", {1: 784, 4: 3085, 8: 5919}),
    "LUMI ImageNet": Table("lumi", {1: 537, 8: 3979, 16: 7704}),
    "Puhti run_clm": Table("puhti", {1: 16.2, 2: 32, 4: 59.9, 8: 104}, None, GPT_NEO, 2, 64, 18),
    "Mahti run_clm": Table("mahti", {1: 12.3, 2: 23.4, 4: 41.6, 8: 66.9}, None, GPT_NEO, 2, 64, 18),
    "Mahti run_clm, torch 2.3": Table(
        "mahti", {1: 26.8, 2: 53.5, 4: 94.8, 8: 144}, None, GPT_NEO, 2, 64, 18
    ),
    "LUMI run_clm": Table("lumi", {1: 21.8, 2: 42.1, 8: 115, 16: 166}, None, GPT_NEO, 2, 64, 18),
}
# Source: LUMI-AI-Guide, pull request 115: ten epochs of ViT-B/16 on 80,000 images, in seconds on
# one node and on four. The rest of a step that is not whole counts as one.
VIT_STEPS = {8: 313, 32: 79}
VIT_SECONDS = {"srun": (667, 211), "torchrun": (690, 218)}
BETWEEN = 5.4
"""Seconds of an epoch without a step: two starts of loaders, and the test. It follows from srun's
two figures, so that only torchrun's are a test."""

OUT = {
    # Eight GCDs of one node lose more than the exchange explains; nobody published why. The same
    # training in float32, and on NVIDIA's cards, is predicted within 12 %.
    ("LUMI fp16", 16),
}
"""The rows that are not predicted within the tolerance, and why."""


def misses() -> dict[tuple[str, int], float]:
    """The prediction over the published figure, less 1, of each row but those that calibrate."""
    found = {}
    for name, table in PUBLISHED.items():
        one = table.stepping(table.calibrated or table.speeds[1])
        for gpus, published in table.speeds.items():
            if gpus == 1:
                continue
            speed = published
            micro = max(1, table.accumulated // gpus)
            exchange = GradientExchange(table.parameters, 2, LINKS[table.site], micro_steps=micro)
            model = StepModel(CalibratedSize(1, 1, one, table.batch * table.accumulated), exchange)
            nodes = max(1, gpus // (8 if table.site == "lumi" else 4))
            likely = model.at(gpus, nodes, micro / table.accumulated).likely
            assert likely is not None
            if table.steps is not None:  # as the table counts: over all of its time
                samples = table.steps * table.batch * table.accumulated
                likely = samples / (samples / likely + CLM_START)
            found[name, gpus] = likely / speed - 1
    for name, (one_node, four_nodes) in VIT_SECONDS.items():
        speed = VIT_STEPS[8] * 32 * 8 / (one_node / 10 - BETWEEN)
        model = StepModel(
            CalibratedSize(8, 1, speed, 32), GradientExchange(VIT_B16, 2, LINKS["lumi"])
        )
        seconds = 10 * (VIT_STEPS[32] * model.step(32, 4).seconds + BETWEEN)
        found[f"ViT {name}", 32] = four_nodes / seconds - 1
    assert abs(found.pop(("ViT srun", 32))) < 0.01
    return found


def test_every_published_row_is_predicted_within_15_percent_but_the_one_that_is_named() -> None:
    found = misses()
    assert len(found) == 49
    out = {row for row, miss in found.items() if abs(miss) > TOLERANCE}
    assert out == OUT, {row: round(found[row], 3) for row in sorted(out ^ OUT)}
    # Of trainings whose steps alone were timed, so that no number is free.
    steps = [
        abs(miss) for (name, _), miss in found.items() if "clm" not in name and "ViT" not in name
    ]
    assert sum(miss <= 0.1 for miss in steps) >= 0.8 * len(steps)


def test_eight_of_ten_published_rows_lie_within_the_interval_that_is_shown() -> None:
    reached = [1 / (1 + miss) for miss in misses().values()]
    assert sum(LOW <= share <= HIGH for share in reached) >= 0.8 * len(reached)


_links = st.builds(
    Links,
    in_node=st.floats(1, 1000),
    between_nodes=st.floats(1, 1000),
    latency_in_node=st.floats(0, 100),
    latency_between_nodes=st.floats(0, 100),
)


@given(
    _links,
    st.integers(1, 10**10),
    st.sampled_from([0, 2, 3]),
    st.floats(1e-3, 1e6),
    st.sampled_from([(1, 1), (8, 1), (16, 2)]),
)
def test_any_links_and_network_give_a_finite_speed_between_none_and_ideal(
    links: Links, parameters: int, passes: int, speed: float, size: tuple[int, int]
) -> None:
    measured = CalibratedSize(*size, speed, batch=32)
    model = StepModel(measured, GradientExchange(parameters, passes, links))
    here = model.calibrated
    assert here.seconds == pytest.approx(32 * size[0] / speed)
    for nodes in (2, 4, 64):
        found = model.at(8 * nodes, nodes)
        assert found.likely is not None
        assert 0 < found.low <= found.likely <= found.high
        assert found.likely <= 32 * 8 * nodes / here.compute * 1.0001
        more = model.at(8 * nodes, nodes, 2.0)
        assert more.likely is not None and more.likely >= found.likely * 0.9999


def test_a_rank_alone_and_links_without_limits_scale_ideally() -> None:
    fast = Links(in_node=1e5, between_nodes=1e5, latency_in_node=0, latency_between_nodes=0)
    model = StepModel(CalibratedSize(1, 1, 100.0, 32), GradientExchange(10**6, 2, fast))
    assert model.at(64, 8).likely == pytest.approx(6400, rel=1e-3)
    alone = StepModel(CalibratedSize(1, 1, 100.0, 32), GradientExchange(10**9, 0, LINKS["puhti"]))
    assert alone.at(64, 8).likely == pytest.approx(6400)


@given(_links, st.floats(1e-6, 1), st.floats(0, 1), st.integers(1, 10**10))
def test_any_measured_exchange_is_kept_and_gives_finite_speeds(
    links: Links, share: float, exposed: float, parameters: int
) -> None:
    step = 32 * 8 / 100.0
    wire = Wire(share * step, share * exposed * step)
    plain = GradientExchange(parameters, 2, links)
    slower = wire.seconds / plain.seconds(8, 1)
    model = StepModel(CalibratedSize(8, 1, 100.0, 32, wire=wire), replace(plain, slower=slower))
    assert model.at(8, 1).likely == pytest.approx(100.0, rel=1e-6)
    for nodes in (2, 64):
        found = model.at(8 * nodes, nodes)
        assert found.likely is not None and 0 < found.low <= found.likely <= found.high
