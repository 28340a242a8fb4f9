"""Job files and profiles may be anything: each is understood or refused, without a traceback.

They are the same texts every time: 1,000 here, 10,000 with `pytest -m slow`.
"""

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.follow.results.summary import curve, figures_of, summarize
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.history.rows import run_record
from lumitui.app.job.spec import read_job
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.tui.panes.metrics_pane import summary_table
from lumitui.app.tui.widgets.chart import lines_of
from lumitui.app.tui.widgets.log.log_text import LogText
from lumitui.app.tui.widgets.plot import Plot
from lumitui.remote.connect import Connection
from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler.scheduler_protocol import STATES
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS, LogFilter, spell_out
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.doctor.examine import examine
from tests.support.attacks.hostile_text import FRAGMENTS
from tests.support.attacks.spoilt_text import many, survive, worse
from tests.support.attacks.whole_texts import (
    DOCTOR,
    JOB,
    METRICS,
    PROFILE,
)
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import SCRIPT
from tests.support.servers.transports import FixedAnswer

LUMI = Sites([BUILT_IN]).load("lumi")


@many
def test_job_files(tmp_path: Path, count: int) -> None:
    count = count if count > 1000 else 300  # each takes 5 ms
    path = tmp_path / "job.yaml"

    def take(text: bytes) -> None:
        path.write_bytes(text)
        with contextlib.suppress(LumiError):
            spec = read_job(path)
            launch = compose(spec, LUMI)
            [spell_out(words.finding(item)) for item in findings(launch, LUMI)]

    survive(worse([JOB], count), take)


@many
def test_profiles(tmp_path: Path, count: int) -> None:
    plain = Document(PROFILE.decode(), "mine.yaml").data
    data = json.dumps(LUMI.model_dump(mode="json") | {"title": plain["title"]}).encode()
    spec_path = tmp_path / "job.yaml"
    spec_path.write_bytes(JOB)
    spec = read_job(spec_path)
    (tmp_path / "sites").mkdir()

    def use(site: Site) -> None:
        launch = compose(spec, site)
        [spell_out(words.finding(item)) for item in findings(launch, site)]
        tables.site_table([site], 80)
        examine(FixedAnswer(DOCTOR), site, "", lambda account: site.work_root)

        Connection(FixedAnswer(b""), scheduler.Process(FixedAnswer(b"")), lambda: "u", "~").root(
            site, "a", "p"
        )

    def take(text: bytes) -> None:
        # Reading 20 kB of YAML takes a quarter of a second: the facts alone here.
        facts = json.loads(data)
        rng = random.Random(text)
        for _ in range(rng.randrange(1, 4)):
            bend(rng, facts)
        with contextlib.suppress(LumiError):
            use(validate(Document("", "mine.yaml"), Site, facts))

    def take_file(text: bytes) -> None:
        (tmp_path / "sites" / "mine.yaml").write_bytes(text)
        with contextlib.suppress(LumiError):
            use(Sites([tmp_path / "sites", BUILT_IN]).load("mine"))

    survive((b"%d" % number for number in range(count if count > 1000 else 400)), take)
    survive(worse([PROFILE], count // 100), take_file)


def bend(rng: random.Random, facts: Any) -> None:
    """Put something else somewhere into a profile's facts."""
    while True:
        keys = list(facts) if isinstance(facts, dict) else list(range(len(facts)))
        key = rng.choice(keys)
        below = facts[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.1:
            break
        facts = below
    strange: list[object] = [None, -1, 0, 10**30, 1e308, float("nan"), True, [], {}, [[]]]
    strange += ["{0}", "{x}", "{", "(", "[", "*", "a{99999999999}", "{account.__class__}", "\n", ""]
    strange += [rng.choice(FRAGMENTS), below, [below], {"a": below}]
    facts[key] = rng.choice(strange)


@pytest.mark.parametrize(
    "text",
    [
        b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        b"x: " + b"[" * 50_000,
        b"x: " + b"{a: " * 30_000,
        b"- " * 50_000,
        b"? " * 50_000,
        b"!!python/object/apply:os.system [touch x]\n",
        b"x: !!binary " + b"A" * 90_000,
        b"a: 1\n" * 19_000,
        b"x: |\n" + b" " * 90_000,
        b'"' + b"\\" * 90_000,
    ],
)
def test_a_bomb_is_told(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(text)

    def take(text: bytes) -> None:
        with pytest.raises(LumiError):
            read_job(path)

    survive(iter([text]), take)
    assert not (Path.cwd() / "x").exists()


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
