"""The screen Compare: facts, curves and scripts of several runs, told apart without colour."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.results.summary import Curve
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.panes.curves_pane import MARKS, SEVERAL, overlaid
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown

CURVES = st.builds(
    Curve,
    st.integers(0, 50),
    st.integers(50, 10**12),
    st.lists(st.floats(), max_size=300).map(tuple),
)


@given(st.lists(CURVES, min_size=1, max_size=4), st.integers(0, 130), st.integers(0, 20))
def test_curves_fit_any_room(curves: list[Curve], width: int, height: int) -> None:
    lines = overlaid(curves, width, height)
    assert len(lines) in (0, height)
    assert all(len(line) <= width for line in lines)


def test_each_run_has_its_mark_and_crossings_another() -> None:
    curves = (Curve(1, 10, (0.0, 9.0)), Curve(1, 10, (9.0, 0.0)), Curve())
    text = "\n".join(overlaid(curves, 40, 8)[:-1])
    assert text.count(MARKS[0]) == text.count(MARKS[1]) > 5
    same = "\n".join(overlaid((curves[0], curves[0]), 40, 8)[:-1])
    assert SEVERAL in same and MARKS[0] not in same


async def test_runs_are_shown_beside_each_other(settings: Settings) -> None:
    app = LumiApp(settings)
    for number, nodes in enumerate((1, 4)):
        run = a_run(f"vit-{nodes}n", state=State.DONE, job_id="7", created=float(number))
        spec = run.spec.model_copy(update={"nodes": nodes})
        app.runs.history.begin(replace(run, spec=spec, script=f"#SBATCH --nodes={nodes}\n[b]\n"))
        steps = [{"step": at, "loss": 1 / (at + number)} for at in range(1, 30)]
        app.runs.history.metrics.add(run.id, [json.dumps(one).encode() for one in steps], (0, 9))
    async with app.run_test(size=(80, 50)) as pilot:
        app.open_compare(("vit-1n", "vit-4n"))
        await sees(pilot, "o vit-1n +done.*\n +x vit-4n +done")
        await sees(pilot, "nodes +1 +4")
        await sees(pilot, "code: the same")
        await sees(pilot, "oo[\\s\\S]*step 1 +29")
        await sees(pilot, r"\+#SBATCH --nodes=4")
        await sees(pilot, "The code of vit-1n is not known: none was")
        assert "samples/s\n" not in shown(pilot), "a chart without values is not shown"
        await pilot.press("escape")
        app.open_compare(("vit-1n",))
        await sees(pilot, "1 runs cannot be compared")
