"""The proof of binding: on 80x24 what differs is readable and a long list scrolls."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.style import Style

from lumitui.app.cli.views import show
from lumitui.app.explain.proof import binding_proof, rank_proof
from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.explain.proof.probe_report import RankReport as ProbeRecord
from lumitui.app.explain.proof.rank_proof import RankProof
from lumitui.app.job.launch import RankLayout
from lumitui.app.job.settings import Settings
from lumitui.app.launch.draft.node_map import MapPart
from lumitui.app.runs import Runs
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.panes.compose.node_map_pane import map_line
from lumitui.app.tui.panes.proof_pane import ProofPane, proof_lines, rank_table
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.widgets.styled import GAP, rank_colour
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_reports import ALL_GPUS, CORES, EXACT, Report, reports
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import Here, envelope
from tests.support.program.driven_tui import app_of, sees, shown
from tests.support.program.home import Home


def seed(
    where: Settings, items: list[Report], layout: RankLayout = EXACT, state: State = State.DONE
) -> str:
    """Put a run with such reports into the history; return its id."""
    runs = Runs(where)
    run = replace(a_run("proved-000001"), site="laptop", layout=layout, state=state, job_id="7")
    runs.history.begin(run)
    runs.history.update(run.id, binding=json.dumps(items))
    runs.close()
    return run.id


def wrong(count: int, layout: RankLayout = EXACT) -> list[Report]:
    items = reports(layout)
    for number in range(count):
        items[3 + 8 * number]["cores"] = f"{25 + number % 3}-30"
    return items


async def test_the_ranks_that_differ_are_named_on_the_first_page(
    settings: Settings, project: Path
) -> None:
    run_id = seed(settings, wrong(2))
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(RunScreen(app_of(pilot).runs, run_id, "proof"))
        await sees(pilot, "planned +found")
        screen = " ".join(shown(pilot).replace("│", " ").split())
        assert "differs Ranks 3, 11 differ. Rank 3 on nid005001: it has cores 25-30," in screen
        assert "Rank 11 on nid005002: it has cores 26-30, planned 25-31 (only 5 of 7)." in screen
        assert "3 3 nid005001 25-31 25-30 3 differs" in screen
        assert "2 2 nid005001 17-23 17-23 2 ok" in screen
        assert max(map(len, shown(pilot).splitlines())) <= 80
        # The rest of the sixteen is a key away.
        assert "nid005002 41-47" not in screen
        await pilot.press("G")
        await sees(pilot, "15 +7 +nid005002 +41-47 +41-47 +7 +ok")


async def test_each_node_is_a_cell_and_enter_shows_the_ranks_of_one(settings: Settings) -> None:
    layout = replace(EXACT, nodes=4)
    items = reports(layout)
    items[19]["cores"] = "25-30"
    run_id = seed(settings, items, layout)
    runs = Runs(settings)
    runs.history.begin(replace(runs.history.get(run_id), id="drawn-000002", site="lumi"))
    runs.history.update("drawn-000002", binding=json.dumps(items))
    runs.close()
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(RunScreen(app_of(pilot).runs, "drawn-000002", "proof"))
        await sees(
            pilot,
            r"✖■■■ +4 nodes, 1 differ[\s│]+nid005003, as measured  .*0-9 its rank.*\n"
            ".* x4444444 GCD4",
        )
        assert "x333333. GCD3" in shown(pilot), "core 31 is not its rank's"
        await pilot.press("right", "enter")
        await sees(pilot, r"nid005001, as measured[\s\S]* 7 +7 +nid005001 ")
        assert "nid005002" not in shown(pilot)
        await pilot.press("left", "enter")
        await sees(
            pilot, r"nid005003, as measured[\s\S]* 19 +3 +nid005003 .*differs[\s\S]*nid005001"
        )


def test_many_that_differ_are_summarised() -> None:
    layout = replace(EXACT, nodes=16)
    first, why, *_ = proof_lines(verdict(json.dumps(wrong(16, layout)), layout))
    assert first.plain.startswith("differs  Ranks 3, 11, 19, 27, 35, 43")
    assert why.plain.startswith("Ranks 3, 27, 51, 75, 99, 123: it has cores 25-30, planned 25-31")


def test_cores_shared_by_all_do_not_push_the_table_out() -> None:
    usable = "1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63"
    layout = replace(EXACT, masks=(), planned_cores=(usable,) * 8)
    found = verdict(json.dumps([item | {"cores": usable} for item in reports(layout)]), layout)
    assert proof_lines(found)[0].plain.startswith("unbound  All 16 ranks measured on 2 nodes share")
    table = rank_table(found)
    assert table is not None and sum(table.widths) + GAP * (len(table.titles) - 1) <= 78
    assert table.rows[0].cells == ("0", "nid005001", usable, "0", "unbound")


def test_the_map_and_the_table_show_a_rank_in_one_colour_and_a_wrong_one_in_red() -> None:
    blocks = (MapPart("2222", 2), MapPart("3333", 3), MapPart(" GCD3", 3))
    line = map_line(blocks, wrong={3})
    assert [str(span.style) for span in line.spans] == [
        rank_colour(2), "bold red", "bold red",
    ]  # fmt: skip
    table = rank_table(verdict(json.dumps(reports(EXACT)), EXACT))
    assert table is not None
    assert "planned" not in table.titles
    seen = json.dumps([one | {"device": "0000:c1:00.0"} for one in reports(EXACT)])
    assert "that a rank uses. PCI: " in proof_lines(verdict(seen, EXACT))[-1].plain
    wide = rank_table(verdict(json.dumps(reports(EXACT)), EXACT), 78)
    assert wide is not None and "planned" in wide.titles, "if there is room"
    found = table.titles.index("found")
    assert [dict(row.styles)[found] for row in table.rows[:9]] == [
        rank_colour(rank) for rank in (*range(8), 0)
    ]


async def test_the_proof_of_8192_ranks_is_compared_and_laid_out_once(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = replace(EXACT, nodes=1024)
    items = [item | {"cores": "1-7"} if item["rank"] == 8000 else item for item in reports(layout)]
    run_id = seed(settings, items, layout)
    compared: list[int] = []
    compare_ranks = rank_proof.compare_ranks

    def counted(reports: Sequence[ProbeRecord], layout: RankLayout) -> list[RankProof]:
        compared.append(len(reports))
        return compare_ranks(reports, layout)

    monkeypatch.setattr(binding_proof, "compare_ranks", counted)
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        screen = RunScreen(app_of(pilot).runs, run_id, "proof")
        pilot.app.push_screen(screen)
        await sees(pilot, r"8000 +0 +nid006001 +49-55 +1-7 +0 +differs[\s│]+0 +0 +nid005001")
        pane = screen.query_one(ProofPane)
        assert [child.id for child in screen.query_one("#panes").children] == ["proof"]
        monkeypatch.setattr(pane, "show", lambda *all: pytest.fail("laid out again"))
        for _ in range(3):
            screen.reread()
        screen.action_pane("overview")
        await sees(pilot, "differs +Rank 8000 on nid006001")
        screen.action_pane("proof")
        moved: list[float] = []
        pane.watch(pane, "scroll_y", lambda y: moved.append(y), init=False)
        bases: list[Style] = []

        def base(_: ProofPane) -> Style:
            bases.append(Style())
            return bases[-1]

        monkeypatch.setattr(ProofPane, "rich_style", property(base))
        await pilot.press("G")
        await sees(pilot, "8191 +7 +nid006024")
        assert moved == [pane.max_scroll_y], "a key draws once; an animation draws a dozen times"
        assert len(bases) < 10, "the style of all rows is found once a drawing, not once a cell"
        assert compared == [8192]


@pytest.mark.parametrize("columns", [80, 100])
def test_show_says_the_same_on_the_terminal(settings: Settings, columns: int) -> None:
    items = wrong(2)
    items[5]["gpus"] = "none"
    items[6]["gpus"] = ALL_GPUS[:3]
    run_id = seed(settings, items)
    runs = Runs(settings)
    text = show.page_text(show.gather(runs, run_id), 0.0, columns)
    runs.close()
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    assert "Ranks 3, 5-6, 11 differ." in words
    assert "Rank 5: it sees no GPU, planned 8" in words
    assert "Rank 6: it sees GPU 0,1, the other ranks of its node see 0,1,2,3,4,5,6,7" in words
    assert f"11 3 nid005002 {CORES[3]} 26-30" in words


def test_status_warns_of_a_run_whose_ranks_differ(home: Home, here: Here) -> None:
    seed(home.settings, wrong(2), state=State.RUNNING)
    done = here("status")
    assert "warning: proved-000001: Ranks 3, 11 differ. Rank 3 on nid005001:" in done.stderr
    seen = envelope(here("status", "--json"))
    assert any("Ranks 3, 11 differ" in words for words in seen["data"]["warnings"])


def test_a_refused_run_without_a_job_has_no_proof_and_says_why(settings: Settings) -> None:
    runs = Runs(settings)
    run = replace(a_run("refused-000001"), site="laptop", state=State.REFUSED)
    runs.history.begin(run)
    page = show.page_text(show.gather(runs, run.id), 0.0, 100)
    runs.close()
    assert "There was no job, so nothing was measured." in page
    assert "binding.json" not in page
