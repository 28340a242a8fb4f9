"""Throughput: operations of the papers, peaks, and where the time goes."""

from typing import Any

import pytest

from tests.support.trainers.ranks import Load


def test_operations_are_those_of_the_papers(load: Load) -> None:
    flops, table = load("engine.speed").flops, load("models.table")
    # The papers count a multiplication and an addition as one: 17.6 (ViT-B/16, DeiT's table 5)
    # and 4.1 (ResNet-50, v1.5). Of text 2 x parameters a word, and attention.
    of_images = {name: flops(name, table.IMAGENET) / 2e9 for name in ("vit-b16", "resnet50")}
    assert of_images == {
        "vit-b16": pytest.approx(17.6, abs=0.1),
        "resnet50": pytest.approx(4.1, abs=0.02),
    }
    words = table.MODELS["llama-7b"].sample
    parameters = 6_738_415_616 - 32_000 * 4096
    attention = 4 * 2048 * 4096 * 32
    assert flops("llama-7b", words) == pytest.approx(2048 * (2 * parameters + attention), rel=1e-4)


def test_counting_changes_no_random_number(load: Load) -> None:
    torch, table = load("torch"), load("models.table")
    torch.manual_seed(5)
    load("engine.speed").flops("vit-tiny", table.CIFAR)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("AMD Instinct MI250X", "bf16", 191.5),
        ("AMD Instinct MI250X / MI250", "tf32", None),
        ("NVIDIA A100-SXM4-40GB", "bf16", 312),
        ("NVIDIA A100-SXM-64GB", "bf16", None),
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("NVIDIA H100 PCIe", "tf32", 378),
        ("NVIDIA GH200 120GB", "bf16", 989.4),
        ("NVIDIA H200", "fp32", 67),
        ("NVIDIA H200 NVL", "bf16", 835.5),
        ("NVIDIA B200", "bf16", 2250),
        ("NVIDIA GB200", "tf32", 1250),
        ("NVIDIA B300 SXM6 AC", "bf16", None),
        ("AMD Instinct MI325X", "fp16", 1307.4),
        ("Tesla V100-SXM2-32GB", "fp16", 125),
        ("Tesla V100-SXM2-32GB", "bf16", None),
        ("NVIDIA GeForce RTX 2060", "fp16", None),
        ("", "fp32", None),
    ],
)
def test_a_card_has_the_peak_of_its_data_sheet(
    load: Load, name: str, precision: str, tera: float | None
) -> None:
    found = load("engine.speed").peak(name, precision)
    assert found == (None if tera is None else pytest.approx(tera * 1e12))


class Card:
    """What PyTorch tells of a GPU."""

    def __init__(self, architecture: str, units: int) -> None:
        self.gcnArchName = architecture
        self.multi_processor_count = units


@pytest.mark.parametrize(
    ("card", "name"),
    [
        (Card("gfx90a:sramecc+:xnack-", 110), "AMD Instinct MI250X"),
        (Card("gfx90a:sramecc+:xnack-", 104), "AMD Radeon Graphics"),
        (Card("", 110), "AMD Radeon Graphics"),
    ],
)
def test_a_card_whose_name_rocm_does_not_know_is_still_known(
    load: Load, monkeypatch: pytest.MonkeyPatch, card: Card, name: str
) -> None:
    torch = load("torch")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "AMD Radeon Graphics")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    assert load("engine.speed").device_name(torch.device("cuda", 0)) == name


def test_fp32_is_tf32_where_pytorch_may_round(load: Load) -> None:
    cards, torch = load("engine.speed"), load("torch")
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        assert cards.arithmetic("fp32") == "fp32"
        assert cards.arithmetic("fp32", convolves=True) == "tf32"  # cuDNN's default
        torch.set_float32_matmul_precision("high")
        assert cards.arithmetic("fp32") == "tf32"
        assert cards.arithmetic("bf16") == "bf16"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_speed_becomes_tflops_a_card_and_a_share_of_its_peak(load: Load) -> None:
    figures = load("engine.speed")
    found = figures.Figures(flops=10**11, tokens=1024, ranks=8, peak=300e12, precision="bf16")
    assert found.start() == {"forward_flops": 10**11, "precision": "bf16", "peak_tflops": 300}
    # 8 cards, 4,000 samples a second, three times the forward pass.
    told = {"tflops": 150.0, "mfu": 0.5, "tokens_per_s": 4_096_000.0}
    assert found.step(4000) == pytest.approx(told)
    image = figures.Figures(flops=10**11, tokens=None, ranks=8, peak=None, precision="fp32")
    assert image.step(4000) == pytest.approx({"tflops": 150.0})
    assert image.start()["peak_tflops"] is None


def test_the_figures_of_a_run_on_the_cpu(load: Load) -> None:
    figures, table, cpu = load("engine.speed"), load("models.table"), "cpu"
    device = load("torch").device(cpu)
    text = figures.Figures.of("gpt2-tiny", table.MODELS["gpt2-tiny"].sample, 2, device, "fp32")
    assert (text.tokens, text.peak) == (64, None)
    assert 0 < figures.memory(device)["memory_gib"] < 1000


def test_the_time_of_steps_is_divided_among_their_parts(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, now = load("engine.training"), [0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    times = clock.StepWindow(10, load("torch").device("cpu"))
    for _ in range(2):
        for name, seconds in ((clock.DATA, 1), (clock.PASSES, 4), (clock.OPTIMIZER, 2)):
            with times.part(name):
                now[0] += seconds
    assert times.split() == {clock.DATA: 2, clock.PASSES: 8, clock.OPTIMIZER: 4}
    assert times.split() == {}


class Queue:
    """A GPU's queue: it works through its events only when somebody waits."""

    def __init__(self) -> None:
        self.queued, self.waited = 0, False

    def event(self, **_: Any) -> Any:
        queue = self

        class Event:
            def record(self) -> None:
                queue.queued += 1
                self.at = queue.queued

            def synchronize(self) -> None:
                queue.waited = True

            def elapsed_time(self, end: "Event") -> float:
                return 1000.0 * (end.at - self.at)

        return Event()


def test_nobody_waits_for_the_gpu_before_its_times_are_read(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, torch, queue = load("engine.training"), load("torch"), Queue()
    monkeypatch.setattr(torch.cuda, "Event", queue.event)
    times = clock.StepWindow(10, torch.device("cuda", 0))
    for name in (clock.DATA, clock.PASSES, clock.OPTIMIZER, clock.PASSES):
        with times.part(name):
            pass
    assert not queue.waited
    spent = times.split()
    assert queue.waited
    assert 0 <= spent.pop(clock.DATA) < 1
    assert spent == {clock.PASSES: 2, clock.OPTIMIZER: 1}


def test_only_ddp_knows_what_is_on_its_way(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, strategy = load("torch"), object.__new__(load("strategies.pytorch").Ddp)
    strategy._wrapped = None
    assert strategy.communication() == {}
    told: dict[str, int] = {}
    ddp = object.__new__(torch.nn.parallel.DistributedDataParallel)
    monkeypatch.setattr(type(ddp), "_get_ddp_logging_data", lambda self: told)
    strategy._wrapped = ddp
    assert strategy.communication() == {}
    told |= {"avg_backward_comm_time": 48 * 10**6}
    told |= {"avg_backward_compute_comm_overlap_time": 35 * 10**6}
    assert strategy.communication() == pytest.approx({"communication_s": 0.048, "exposed_s": 0.013})
