"""The lock that says which process sends a run: held by one, left by none."""

import threading
from pathlib import Path

import pytest

from lumitui.app.launch.send.lock import sender_lock, sweep_locks


def test_a_lock_keeps_others_out_and_leaves_nothing(tmp_path: Path) -> None:
    with sender_lock(tmp_path, "run") as free:
        assert free
        with sender_lock(tmp_path, "run") as again, sender_lock(tmp_path, "other") as other:
            assert (again, other) == (False, True)
        sweep_locks(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["run.sending"]
    assert list(tmp_path.iterdir()) == []


def test_a_send_that_fails_leaves_no_lock(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), sender_lock(tmp_path, "run"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_dead_process_is_swept(tmp_path: Path) -> None:
    (tmp_path / "dead.sending").touch()
    sweep_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []
    sweep_locks(tmp_path / "not-there")


def test_a_lock_whose_file_was_removed_in_between_keeps_others_out(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with sender_lock(tmp_path, "run", wait=True) as free:
            assert free
            inside.set()
            leave.wait(30)

    second = threading.Thread(target=hold)
    with sender_lock(tmp_path, "run"):
        second.start()
        # Until it waits for the file that the first one removes; too early only proves less.
        assert not inside.wait(0.3)
    assert inside.wait(30)
    with sender_lock(tmp_path, "run") as free:
        assert not free
    leave.set()
    second.join(30)
    assert list(tmp_path.iterdir()) == []


def test_many_take_turns(tmp_path: Path) -> None:
    holders, most, turns = [0], [0], [0]

    def hold() -> None:
        while turns[0] < 60:
            with sender_lock(tmp_path, "run", wait=turns[0] % 2 == 0) as free:
                if free:
                    turns[0] += 1
                    holders[0] += 1
                    most[0] = max(most[0], holders[0])
                    sweep_locks(tmp_path)
                    holders[0] -= 1

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]
    assert list(tmp_path.iterdir()) == []
