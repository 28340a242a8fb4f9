"""Warnings about the history: each is handed out once."""

from threading import Thread

from lumitui.app.history.file.sqlite_errors import PendingWarnings


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
