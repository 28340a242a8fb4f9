"""Which snapshots are known on a site, and which must stay there."""

from lumitui.app.history.history import History
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run


def test_one_manifest_is_known_for_each_folder_of_a_site(history: History) -> None:
    history.snapshots.remember("s", "/root", "text 1", "id1")
    history.snapshots.remember("s", "/other", "text 2", "id2")
    history.snapshots.remember("s", "/root", "text 3", "id3")
    assert history.snapshots.manifest("s", "/root") == "text 3"
    assert history.snapshots.manifest("s", "/other") == "text 2"
    assert history.snapshots.manifest("t", "/root") is None


def test_snapshots_of_live_runs_their_parents_and_the_last_one_sent_stay(history: History) -> None:
    rows = [
        ("done", State.DONE, "s-done", None),
        ("base", State.FAILED, "s-base", None),
        ("live", State.QUEUED, "s-live", None),
        ("sending", State.SENDING, None, "base"),
    ]
    for name, state, snapshot, parent in rows:
        history.begin(a_run(name, root="/r", state=state, snapshot=snapshot, parent=parent))
    history.begin(a_run("alone", root="/q", state=State.DONE, snapshot="s-alone"))
    history.begin(a_run("away", root="/r", site="t", state=State.QUEUED, snapshot="s-away"))
    history.snapshots.remember("somewhere", "/r", "text", "s-last")
    history.snapshots.remember("somewhere", "/new", "text", "s-new")
    assert history.snapshots.in_use("somewhere") == {
        "/r": {"s-base", "s-live", "s-last"}, "/q": set(), "/new": {"s-new"},
    }  # fmt: skip
