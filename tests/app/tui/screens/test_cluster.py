"""The screen Cluster: asked when it is opened, each part or a sentence, sites side by side."""

from dataclasses import replace
from pathlib import Path

from lumitui.app.follow.sites.cluster_overviews import Answered, Clusters
from lumitui.app.follow.sites.overview_words import partition_part
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.screens.cluster_screen import ClusterScreen, compact, node_cells
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.cluster_overview import ClusterOverview, Nodes, QueuedJob
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown, until

OVERVIEW = ClusterOverview(
    partitions=(Nodes("standard-g", "up", "2-00:00:00", "1-1024", 100, 23, 2505, 40, 8),),
    queue=(
        QueuedJob("8123", "RUNNING", "small-g", 4, "31:02", "1:00:00", None, "None", "[/b] \x1b["),
        QueuedJob("8124", "PENDING", "small-g", 4, "0:00", "1:00:00", 4e9, "Priority", "vit"),
    ),
    faults={"reservations": "It did not answer within 12 s."},
)


async def test_sites_are_asked_when_they_are_shown(
    settings: Settings, project: Path, monkeypatch: object
) -> None:
    asked: list[str] = []

    def ask(self: Clusters, site_name: str, *, attended: bool = True) -> Answered:
        asked.append(site_name)
        if site_name == "laptop":
            raise LinkError("No route to it.", "Check the network.")
        self._last[site_name] = answered = Answered(OVERVIEW, 1_700_000_000.0)
        return answered

    Clusters.ask, real = ask, Clusters.ask  # type: ignore[method-assign]
    try:
        app = LumiApp(settings)
        app.runs.history.begin(a_run("old-000001", site="laptop", state=State.DONE))
        app.runs.history.begin(a_run("new-000001", site="lumi", state=State.DONE, created=2000.0))
        app.runs.history.begin(a_run("mine-000001", site="lumi", state=State.QUEUED, job_id="8124"))
        app.tick = lambda *, asked=False: None  # type: ignore[method-assign]
        async with app.run_test(size=(80, 30)) as pilot:
            await pilot.press("4")
            await sees(pilot, r"Partitions of lumi .*ago")
            await sees(pilot, r"standard-g +━{39} +100 +2,676 +2-00:00:00")
            await sees(pilot, r"━ idle .*━ down ─╯\n╭─ Your jobs: 2, 1 running")
            await sees(pilot, r"8123 +running +small-g .*\[/b\]")
            await pilot.press("enter")
            told = "Job 8123 is not one of your runs here."
            await until(pilot, lambda: told in [one.message for one in app._notifications], told)
            await pilot.press("j")
            await sees(pilot, r"(?s)─ Job 8124 ─.*run +mine-000001, enter opens it")
            await pilot.press("c")
            await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
            await pilot.press("escape", "enter")
            await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run of the job")
            assert getattr(app.screen, "chosen", "") == "mine-000001"
            await pilot.press("escape")
            await sees(pilot, r"Reservations ─+╮\s+│ It did not answer within 12 s\.")
            await until(pilot, lambda: "Budget" not in shown(pilot), "no empty part")
            assert asked == ["lumi"]
            await pilot.press("r")
            await until(pilot, lambda: asked == ["lumi", "lumi"], "asked again")
            app.schedule.last_input -= 10_000
            assert isinstance(app.screen, ClusterScreen)
            app.screen._ask("lumi", attended=False)
            await pilot.pause(0.2)
            assert asked == ["lumi", "lumi"], "nobody is there"
            await pilot.press("right_square_bracket")
            await sees(pilot, r"laptop +queried \d+s ago, no answer")
            await sees(pilot, r"(?s)No route to it\. Check the network\..*It has not answered yet")
            assert asked == ["lumi", "lumi", "laptop"]
            await pilot.resize_terminal(170, 30)
            await sees(pilot, r"(?s)of lumi .*of laptop ")
            await pilot.resize_terminal(40, 10)
            await sees(pilot, r"laptop ")
            await pilot.press("right_square_bracket")
            await sees(
                pilot, r"(?s)Partition +Idle +All +Limit.*standard-g +100 +2,676 +2-00:00:00"
            )
            await pilot.press("3", "enter")
            await until(pilot, lambda: isinstance(app.screen, ClusterScreen), "from Sites")
    finally:
        Clusters.ask = real  # type: ignore[method-assign]


def test_a_budget_is_whole_in_a_narrow_column() -> None:
    lines = [
        "Project            |  GPU-hours used / allocated",
        "-------------------+----------------------------",
        "project_462000001  |   12,340 /   20,000 (61.7%)",
    ]
    assert compact(lines, 48) == lines
    assert compact(lines, 47) == [
        "Project           | GPU-hours used / allocated",
        "------------------+---------------------------",
        "project_462000001 |  12,340 /   20,000 (61.7%)",
    ]


def test_all_nodes_are_in_the_map_however_small_it_is() -> None:
    small = Nodes("dev-g", "up", "03:00:00", "1-32", 2, 5, 24, 1, 8)
    whole, each = node_cells([*OVERVIEW.partitions, small], 110, 30, plain=True)
    assert each == 1 and whole.plain.count("▂") == 2505 + 24
    assert [line for line in whole.plain.split("\n") if line.startswith("dev-g       ▆▆▄▄▄▄▄▂")]
    less, each = node_cells([*OVERVIEW.partitions, small], 40, 4, plain=True)
    assert each == 32 and len(less.plain.split("\n")) == 4


def test_the_sizes_of_a_partition_have_their_price_and_what_is_known_of_their_start() -> None:
    site, now = Sites([BUILT_IN]).load("lumi"), 3.9e9
    queue = [replace(job, partition="standard-g") for job in OVERVIEW.queue]
    part = partition_part(site, OVERVIEW.partitions[0], queue, now)
    assert part.titles == ("Nodes", "GPUs", "Start", "Billed an hour"), "one limit is no column"
    assert part.rows[0] == ("1", "8", "nodes idle", "4")
    assert part.rows[2][2].startswith("~"), "Slurm's estimate for the waiting job"
    assert part.rows[-1] == ("1,024", "8,192", "-", "4,096")
    unknown = replace(OVERVIEW.partitions[0], partition="other")
    assert not partition_part(site, unknown, queue, now).rows
