"""What was read of logs stays on the laptop: private, bounded, right wherever it was cut."""

import os
import random
from pathlib import Path

from lumitui.app.follow.log.log_store import PART, KeptLogs


def test_what_was_kept_is_read_again_wherever_it_was_cut(tmp_path: Path) -> None:
    kept, chance = KeptLogs(tmp_path / "logs"), random.Random(1)
    data = chance.randbytes(3 * PART)
    at = 1000
    while at < len(data):  # as a followed log comes, beginning somewhere
        step = chance.choice([900, 9000, 40_000])
        kept.keep("r1", 1, at, data[at : at + step])
        at += step
    kept.keep("r1", 1, 0, data[:500])  # a page from before, with a gap
    kept.keep("r1", 2, 0, b"another attempt")
    for start in (0, 400, 1000, PART, len(data) - 10):
        end = 500 if start < 1000 else len(data)
        assert kept.read("r1", 1, start, 10**9) == data[start:end]
    assert kept.read("r1", 1, 700, 10) == b""
    last = kept.last("r1", 1, 10**9)
    assert last is not None and last[:2] == (1000, data[1000:]), "a gap is no part of the end"
    assert kept.last("r1", 3, 10) is None and kept.read("r2", 1, 0, 9) == b""
    for path in (tmp_path / "logs").rglob("*.part"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "logs" / "r1").stat().st_mode & 0o077 == 0


def test_the_oldest_parts_go_first_and_other_names_never(tmp_path: Path) -> None:
    tmp_path = tmp_path / "logs"  # what other tests leave beside theirs does not count
    tmp_path.mkdir()
    kept = KeptLogs(tmp_path, run_bytes=3 << 20, all_bytes=4 << 20)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a person's.txt").write_text("stays")
    for run, age in (("old", 2000.0), ("new", 1000.0)):
        for number in range(6):
            kept.keep(run, 1, number << 20, b"x" * (1 << 20))
            for part in kept.parts(run):
                moment = 1e9 - age + (part.start >> 20)
                os.utime(part.path, (moment, moment))
    kept.keep("last", 1, 0, b"x" * (2 << 20))
    places = {run: [p.start >> 20 for p in kept.parts(run)] for run in ("old", "new", "last")}
    assert sorted(places["new"])[-1] == 5 and len(places["new"]) == 2 and places["last"] == [0]
    assert places["old"] == [], "the oldest of all"
    for name in ("../outside", "a/b", "", ".hidden"):
        kept.keep(name, 1, 0, b"x")
    assert not list(tmp_path.parent.glob("outside*")) and not (tmp_path / ".hidden").exists()
    assert (tmp_path / "new" / "a person's.txt").exists()


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    kept = KeptLogs(tmp_path / "logs")
    kept.keep("r1", 1, 0, b"x")
    assert kept.read("r1", 1, 0, 1) == b"" and kept.parts("r1") == []
