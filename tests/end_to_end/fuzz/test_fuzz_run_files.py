"""What a run leaves may be anything: metrics, logs and records, without a traceback.

They are the same texts every time: 1,000 here, 10,000 with `pytest -m slow`.
"""

import contextlib
import io
from pathlib import Path

from rich.console import Console

from lumitui.app.follow.results.summary import curve, figures_of, summarize
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.history.rows import run_record
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.tui.panes.metrics_pane import summary_table
from lumitui.app.tui.widgets.chart import lines_of
from lumitui.app.tui.widgets.log.log_text import LogText
from lumitui.app.tui.widgets.plot import Plot
from lumitui.remote.scheduler.scheduler_protocol import STATES
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS, LogFilter
from tests.support.attacks.spoilt_text import many, survive, worse
from tests.support.attacks.whole_texts import METRICS
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import SCRIPT


@many
def test_metrics(tmp_path: Path, count: int) -> None:
    history = History(tmp_path / "history.db")
    history.begin(a_run())
    huge = b'{"step": 1, "x": "' + b"y" * 10_000_000 + b'"}\n'
    taken = 0

    def take(text: bytes) -> None:
        nonlocal taken
        lines = text.splitlines()
        points = [point for line in lines if (point := parse_line(line)) is not None]
        summarize(points)
        taken += 1
        if taken % 50 == 0:
            history.metrics.add(a_run().id, lines)
        Plot(lines_of([curve(points)], ["loss"]), 80, 9).rows()

    survive(iter([huge, METRICS + huge, b"\0" * 1_000_000]), take)
    survive(worse([METRICS], count), take)
    console = Console(width=100, file=io.StringIO())
    console.print(summary_table(figures_of(history, a_run().id), 80))
    history.close()


@many
def test_logs(count: int) -> None:
    log = (
        SCRIPT.encode() + b"3: [rank3]: Traceback\n\x1b[31mRuntimeError: HIP out of memory\x1b[0m\n"
    )
    log += b"srun: error: nid005002: task 3: Exited with exit code 1\n10%\r20%\r100%\n\0\0\xff\n"
    states = sorted(set(STATES.values()))

    def take(text: bytes) -> None:
        view, safe = LogText(), LogFilter(colours=False)
        for at in range(0, len(text), 4096):
            grown = view.feed(text[at : at + 4096])
            for line in [*grown.lines, *([grown.partial] if grown.partial else [])]:
                assert CONTROL_CHARACTERS.isdisjoint(line.text)
            assert "\x1b" not in safe.feed(text[at : at + 4096])
        state = states[len(text) % len(states)]
        diagnose(RunEnd(state, "FAILED", "", 1, 3, text.decode("utf-8", "replace")))

    survive(iter([b"\r" * 300_000, b"\x1b]" * 100_000, b"a" * 1_000_000, b"\x1b[" * 100_000]), take)
    survive(worse([log], count), take)


@many
def test_records_of_runs(count: int) -> None:
    record = run_record.record_text(a_run()).encode()

    def take(text: bytes) -> None:
        with contextlib.suppress(ValueError):
            run_record.run_of(text, "/scratch/me/project/runs/vit-tiny-000001")

    survive(worse([record], count), take)
