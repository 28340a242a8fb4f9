"""Texts are kept once, go when nothing has them, and cost one warning when they are lost."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.rows.kept_texts import LostText, digest_of, pack, unpack
from lumitui.app.history.rows.run_row import TEXTS
from lumitui.remote.site.errors import HistoryError
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import Here, told
from tests.support.program.home import Home


def kept(history: History) -> dict[str, int]:
    """Return how many texts of each kind there are."""
    return {
        str(kind): int(count)
        for kind, count in history._file.rows("SELECT kind, count(*) FROM blobs GROUP BY kind")
    }


def spoil(path: Path, kind: str, *, missing: bool = False, digest: bytes | None = None) -> None:
    """Damage the texts of a kind, or only one of them, as a disk does: SQLite does not notice."""
    what = "DELETE FROM blobs" if missing else "UPDATE blobs SET packed = substr(packed, 1, 9)"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"{what} WHERE kind = ?1 AND ?2 IN (digest, '')", (kind, digest or ""))


# -- how they are kept


def test_what_was_packed_comes_back_or_is_lost() -> None:
    for data in (b"", b"\0", b"text" * 1000, bytes(range(256))):
        assert unpack(pack(data), digest_of(data)) == data
    for packed, digest in ((None, None), ("text", b""), (b"", b""), (pack(b"a"), digest_of(b"b")),
                           (pack(b"a")[:-1], digest_of(b"a")), (7, 7)):  # fmt: skip
        with pytest.raises(LostText):
            unpack(packed, digest)


def test_runs_of_one_job_file_share_its_texts(history: History) -> None:
    for number in range(50):
        history.begin(a_run(f"r-{number}", binding=f"[{number}]", machinery="m", probe="p"))
    assert kept(history) == dict.fromkeys(TEXTS, 1) | {"binding": 50}
    expected = a_run("r-7", binding="[7]", machinery="m", probe="p")
    assert history.get("r-7") == expected


def test_texts_take_little_room(history: History, path: Path) -> None:
    """100,000 runs took 1,017 MB when each row had a script and a proof of its own."""
    runs = [a_run(f"r-{number}", script="#!/bin/sh\n" * 1000) for number in range(1000)]
    history.adopt(runs)
    assert history.facts().size < 1000 * 2000


# -- when they go


def test_a_proof_that_is_replaced_goes_and_a_shared_one_stays(history: History) -> None:
    for name in ("a", "b"):
        history.begin(a_run(name, binding="[1]", script="[2]"))
    history.update("a", binding="[2]")
    assert (history.get("a").binding, history.get("b").binding) == ("[2]", "[1]")
    history.update("b", binding="[2]")
    assert kept(history)["binding"] == 1
    history.update("b", binding=None)
    history.update("a", binding=None)
    # A proof may say what a script says: they are not the same text.
    assert "binding" not in kept(history)
    assert history.get("a").script == "[2]"
    history.update("a", binding="[1]")
    history.update("a", binding="[1]")
    assert history.get("a").binding == "[1]"


def test_a_manifest_that_is_replaced_goes_and_a_shared_one_stays(history: History) -> None:
    known = history.snapshots
    for root in ("/one", "/two"):
        known.remember("somewhere", root, "manifest", "id")
    assert kept(history) == {"manifest": 1}
    for number in range(20):
        known.remember("somewhere", "/one", f"manifest {number}", "id")
    assert kept(history) == {"manifest": 2}
    assert known.manifest("somewhere", "/one") == "manifest 19"
    assert known.manifest("somewhere", "/two") == "manifest"


def test_the_number_of_a_text_is_never_that_of_another_again(history: History) -> None:
    history.begin(a_run("a", binding="[1]"))
    (number,) = history._file.rows("SELECT binding FROM runs")[0]
    history.update("a", binding=None)
    history.begin(a_run("b", script="another"))
    assert history._file.rows("SELECT max(id) FROM blobs")[0][0] > number


# -- when the disk loses them


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["script", "binding", "patch", "command"])
def test_a_lost_text_costs_one_warning_and_the_run_is_shown(
    history: History, path: Path, kind: str, missing: bool
) -> None:
    for name in ("a-1", "b-2"):
        history.begin(a_run(name, binding="[]"))
    spoil(path, kind, missing=missing)
    for _ in range(2):
        for name in ("a-1", "b-2"):
            assert history.get(name).id == name
    assert len(history.page()) == 2
    (warning,) = history.take_warnings()
    assert f"The run a-1 is shown without its {kind}" in warning
    assert "history --recover SITE" in warning


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["spec", "layout", "price"])
def test_a_run_without_its_spec_is_left_out_and_told_once(
    history: History, path: Path, kind: str, missing: bool
) -> None:
    for name in ("a-1", "b-2"):
        history.begin(a_run(name))
    spoil(path, kind, missing=missing)
    for _ in range(2):
        assert (history.page(), history.unfinished(), history.lineage("a-1")) == ([], [], [])
    (warning,) = history.take_warnings()
    assert f"cannot be read: its {kind} is {'missing' if missing else 'damaged'}" in warning
    with pytest.raises(HistoryError, match="The run a-1 cannot be read"):
        history.get("a-1")


def test_a_lost_deepspeed_configuration_is_not_taken_for_none(history: History, path: Path) -> None:
    history.begin(a_run())
    spoil(path, "deepspeed_config")
    assert len(history.page()) == 1
    with pytest.raises(HistoryError, match="cannot be read"):
        history.get("last")
    assert "deepspeed_config is damaged" in history.take_warnings()[0]


def test_a_lost_manifest_is_as_good_as_none(history: History, path: Path) -> None:
    history.snapshots.remember("somewhere", "/one", "manifest", "id")
    spoil(path, "manifest")
    assert history.snapshots.manifest("somewhere", "/one") is None
    history.snapshots.remember("somewhere", "/one", "manifest", "id")
    assert history.snapshots.manifest("somewhere", "/one") == "manifest"


@pytest.mark.parametrize("missing", [False, True])
def test_a_recovery_writes_lost_texts_again_and_nothing_else(
    history: History, path: Path, missing: bool
) -> None:
    whole = [a_run(f"r-{number}", note="kept", job_id="7", binding="[]") for number in range(3)]
    history.adopt(whole)
    for kind in TEXTS:
        if kind not in ("patch", "binding"):
            spoil(path, kind, missing=missing)
    assert history.whole_ids() == set()
    assert history.facts(check=True).lost_texts == 6
    found = [a_run(f"r-{number}", note="from the record") for number in range(3)]
    assert [run.id for run in history.adopt(found)] == [
        run.id for run in (found if missing else found[:1])
    ]
    assert [history.get(run.id) for run in whole] == whole
    assert history.whole_ids() == {run.id for run in whole}
    assert history.adopt(found) == []
    history.take_warnings()


def test_the_same_text_sent_again_repairs_what_was_lost(history: History, path: Path) -> None:
    history.begin(a_run("a"))
    spoil(path, "script")
    history.begin(a_run("b"))
    assert history.get("a").script == a_run().script


def test_a_check_counts_lost_texts(home: Home, here: Here) -> None:
    history = History(home.settings.history)
    history.begin(a_run())
    history.close()
    assert here("history", "--check").stdout.endswith("sound\n")
    spoil(home.settings.history, "script")
    done = here("history", "--check")
    assert "1 text lost" in done.stdout
    told(done, 1, "1 text in the history", "history --recover SITE")
    listed = here("history", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    shown = here("show", "last")
    assert shown.returncode == 0
    assert shown.stderr.count("without its script") == 1
