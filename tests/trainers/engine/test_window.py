"""How many steps are read from the device at once."""

from typing import Any

import pytest

from tests.support.trainers.ranks import Load


def sizes(window: Any, now: list[float], zero: Any, seconds: list[float]) -> list[int]:
    """The number of steps in each window, when the steps take these seconds."""
    found = []
    for number, lasts in enumerate(seconds, start=1):
        window.begin()
        now[0] += lasts
        window.add(number, 1, 0.1, zero, zero)
        if window.full:
            found.append(len(window.read(wanted=False)[0]))
    return found


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([30.0] * 4, [1, 1, 1, 1]),  # a step of this length is worth a look
        ([0.5] * 10, [1, 4, 4, 1]),  # two seconds, and the line after step 10
        ([0.001] * 40, [1, 9, 10, 10, 10]),
        ([60.0, *[0.001] * 20], [1, 1, 8, 10]),  # the first one compiled the model
    ],
)
def test_a_wish_to_stop_waits_for_two_seconds_a_line_or_one_step(
    load: Load, monkeypatch: pytest.MonkeyPatch, seconds: list[float], expected: list[int]
) -> None:
    module, torch = load("engine.training"), load("torch")
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.dist, "all_reduce", lambda total: None)
    monkeypatch.setattr(module.dist, "get_world_size", lambda: 1)
    zero = torch.zeros(())
    window = module.StepWindow(10, torch.device("cpu"))

    assert sizes(window, now, zero, seconds) == expected


def test_each_step_has_its_own_loss_and_a_wish_is_told(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, torch = load("engine.training"), load("torch")
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.dist, "all_reduce", lambda total: total.mul_(2))  # two equal ranks
    monkeypatch.setattr(module.dist, "get_world_size", lambda: 2)
    window = module.StepWindow(10, torch.device("cpu"))
    assert window.read(wanted=True) == ([], False, False)  # nothing was done, so nobody is asked
    window.begin()
    for step in (1, 2):
        now[0] += 4.0
        loss, norm = torch.tensor(0.5 * step), torch.tensor(float(step))
        window.add(step, 1, 0.1, loss, norm)
    steps, stopping, saving = window.read(wanted=True)
    assert stopping and not saving
    assert [(one.step, one.loss, one.grad_norm) for one in steps] == [(1, 0.5, 1.0), (2, 1.0, 2.0)]
    assert [(one.seconds, one.ended) for one in steps] == [(4.0, 104.0), (4.0, 108.0)]
