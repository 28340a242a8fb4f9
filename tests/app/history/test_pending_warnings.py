"""Warnings about the history: each is handed out once."""

from threading import Thread

from lumitui.app.history.pending_warnings import PendingWarnings


def test_each_warning_is_taken_once_in_order() -> None:
    warnings = PendingWarnings()
    assert warnings.take() == []
    warnings.add("first")
    warnings.add("second")
    assert warnings.take() == ["first", "second"]
    assert warnings.take() == []
    warnings.add("first")
    assert warnings.take() == ["first"]


def test_a_warning_that_every_page_repeats_is_kept_once() -> None:
    warnings = PendingWarnings()
    warnings.add_once("run bad cannot be read")
    assert warnings.take() == ["run bad cannot be read"]
    warnings.add_once("run bad cannot be read")
    assert warnings.take() == []


def test_threads_share_the_warnings_and_none_is_lost_or_doubled() -> None:
    warnings, taken = PendingWarnings(), list[str]()

    def write(part: int) -> None:
        for number in range(500):
            warnings.add(f"{part}-{number}")

    writers = [Thread(target=write, args=(part,)) for part in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        taken += warnings.take()
    taken += warnings.take()
    assert sorted(taken) == sorted(f"{part}-{n}" for part in range(4) for n in range(500))
