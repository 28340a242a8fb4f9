"""What the metrics of a run come to: how far it trained, how well, and how fast."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Throughput:
    """Figures of the last attempt; what its trainer does not tell is None."""

    over_all: float | None = None
    """Samples a second over all the time since the warm-up: with tests, saves and every wait."""
    tokens_per_s: float | None = None
    tflops: float | None = None
    """10^12 operations a second of one GPU."""
    mfu: float | None = None
    """Their share of what the GPU could do, 0 to 1."""
    peak_tflops: float | None = None
    """What it could do, in `precision`."""
    precision: str | None = None
    memory_gib: float | None = None
    """The most that the first rank has used."""
    parts: tuple[tuple[str, float], ...] = ()
    """The share of a step's time in each of its parts, 0 to 1, as told last."""


@dataclass(frozen=True)
class Summary:
    """What a run's metrics come to."""

    steps: int
    """Trained, over all attempts: the last step, and one more where the first is step 0."""
    last_loss: float | None
    samples_per_s: float | None
    """The median step after each attempt's warm-up."""
    test_accuracy: float | None
    """The last one reported."""
    seconds: float | None
    """Spent training, over all attempts."""
    world_size: int | None
    """Of the last attempt."""
    global_batch: int | None
    throughput: Throughput = field(default_factory=Throughput)
    slowest_save: float | None = None
    """Seconds."""
