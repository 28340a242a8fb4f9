"""What arrives may be anything: cut, doubled, garbage. It is understood or told, never a traceback.

1,000 texts each here; `pytest -m slow` takes 10,000. They are the same ones every time.
"""

import contextlib
import io
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lumitui.app.cli import tables
from lumitui.app.compose.advice import findings
from lumitui.app.compose.launch import compose
from lumitui.app.explain import binding_proof, proof_rows, words
from lumitui.app.explain.diagnose import Ending, diagnose
from lumitui.app.explain.safe_text import CONTROL, LogFilter, spell_out
from lumitui.app.history import run_record
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.job.spec import read_job
from lumitui.app.results.summary import curve, figures_of, summarize
from lumitui.app.tui.panes.metrics import summary_table
from lumitui.app.tui.panes.proof import proof_table
from lumitui.app.tui.panes.state import facts_table
from lumitui.app.tui.widgets.chart import columns
from lumitui.app.tui.widgets.log_text import LogText
from lumitui.app.watch import transitions
from lumitui.remote.connect import Connection
from lumitui.remote.doctor.examine import examine
from lumitui.remote.errors import LumiError
from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler import run_files, submission
from lumitui.remote.scheduler.protocol import STATES, State, Watch
from lumitui.remote.scheduler.slurm import parse_account, parse_poll, parse_queue
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.validation import validate
from lumitui.remote.site.yaml_document import Document
from lumitui.remote.transport.framing import Framing
from lumitui.remote.transport.protocol import Result
from tests.support.attacks.hostile_text import FRAGMENTS
from tests.support.attacks.spoilt_text import survive, worse
from tests.support.driven_tui import SCRIPT
from tests.support.jobs.made_runs import a_run
from tests.support.places import ROOT
from tests.support.replies.schedulers import ACCOUNT, ACCOUNT_24, QUEUE, QUEUE_24, RECORD

COUNTS = [1000, pytest.param(10_000, marks=pytest.mark.slow)]
many = pytest.mark.parametrize("count", COUNTS)
LUMI = Sites([BUILT_IN]).load("lumi")
EXIT = b'{"rc": 7, "rank": 3, "job": "317", "attempt": 1, "ended": 1795236600}'
BINDING = json.dumps(
    [
        {"rank": rank, "local_rank": rank, "host": "nid1", "cores": "1-7", "gpus": str(rank)}
        for rank in range(8)
    ]
).encode()
METRICS = (
    b'{"event": "start", "world_size": 8, "global_batch": 256, "device": "cuda"}\n'
    b'{"step": 1, "epoch": 1, "loss": 0.5, "lr": 0.1, "samples_per_s": 900.5, "seconds": 1.5}\n'
    b'{"step": 2, "loss": NaN, "samples_per_s": 1e308}\n{"step": 3, "loss": 1e308}\n'
    b'{"event": "eval", "step": 3, "test_accuracy": 0.9}\n{"event": "end", "seconds": 9.0}\n'
)
WATCHES = [Watch("vit-tiny-000001", "/s/runs/a", "317", 0.0), Watch("b", "/s/runs/b", "320", 0.0)]
ANSWER = (
    b"M clock\n1795236600\nM end\nM queue 0\n" + QUEUE.encode() + b"M end\nM account 0\n"
    + ACCOUNT.encode() + b"M end\nM sizes\n12 /s/runs/a/attempt-1.out\nM end\nM exit 0 1\n" + EXIT
    + b"\n\nM end\nM binding 0\n" + BINDING + b"\n\nM end\nM metrics 0\n" + METRICS + b"\nM end\n"
    + b"M missing 1\nM end\n"
)  # fmt: skip
JOB = b"""\
name: vit-tiny  # a comment
site: lumi
account: project_462000001
partition: standard-g
nodes: 2
time: "01:00:00"
launcher: torchrun
script: train.py
args: [--epochs, 10, "a b", 'c']
env: {MIOPEN_LOG_LEVEL: "4"}
secrets: [WANDB_API_KEY]
container: {generation: laif, binds: [/a, /b:/c]}
links: {data: /scratch/x}
metrics: {images: 'Images/sec: (\\d+)'}
scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {arg: --lr, rule: linear}}
signal: USR1@120
"""
PROFILE = b"""\
extends: lumi
title: mine
hosts: {login: lumi.csc.fi, fingerprints: {ed25519: "SHA256:abc"}}
account: {pattern: "^project_46\\\\d+$", example: project_462000001}
work_root: "/scratch/{account}/{user}/lumitui"
gpu_request: "--gpus-per-node={gpus}"
poll_seconds: 60
partitions: {small-g: {max_time: "3-00:00:00", max_nodes: 4, allocation: shared}}
rules:
  - {id: x, severity: note, field: launcher, matches: srun, message: m, do: d, source: s}
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return tmp_path


def drawn(what: object) -> str:
    console = Console(width=100, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@many
def test_job_files(fresh: Path, count: int) -> None:
    count = count if count > 1000 else 300  # each takes 5 ms
    path = fresh / "job.yaml"

    def take(text: bytes) -> None:
        path.write_bytes(text)
        with contextlib.suppress(LumiError):
            spec = read_job(path)
            launch = compose(spec, LUMI)
            [spell_out(words.finding(item)) for item in findings(launch, LUMI)]

    survive(worse([JOB], count), take)


@many
def test_profiles(fresh: Path, count: int) -> None:
    plain = Document(PROFILE.decode(), "mine.yaml").data
    data = json.dumps(LUMI.model_dump(mode="json") | {"title": plain["title"]}).encode()
    spec_path = fresh / "job.yaml"
    spec_path.write_bytes(JOB)
    spec = read_job(spec_path)
    (fresh / "sites").mkdir()

    def use(site: Site) -> None:
        launch = compose(spec, site)
        [spell_out(words.finding(item)) for item in findings(launch, site)]
        tables.site_table([site], 80)
        examine(Answers(DOCTOR), site, "", lambda account: site.work_root)

        Connection(Answers(b""), scheduler.Process(Answers(b"")), lambda: "u", "~").root(
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
        (fresh / "sites" / "mine.yaml").write_bytes(text)
        with contextlib.suppress(LumiError):
            use(Sites([fresh / "sites", BUILT_IN]).load("mine"))

    survive((b"%d" % number for number in range(count)), take)
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


DOCTOR = (ROOT / "tests/support/replies/doctor-22.05.txt").read_bytes()


class Answers:
    """A site that answers every request with the same bytes, MARKER being the request's marker."""

    def __init__(self, out: bytes) -> None:
        self.out = out

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        marker = re.search(r"lumitui-[0-9a-f]{16}", script)
        out = self.out.replace(b"MARKER", marker[0].encode()) if marker else self.out
        return Result(0, out, b"")

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        raise NotImplementedError

    def close(self) -> None:
        pass


@many
def test_what_scontrol_and_the_other_tools_say_to_doctor(count: int) -> None:
    def take(text: bytes) -> None:
        checks = examine(Answers(text), LUMI, "", lambda account: "/scratch")
        tables.check_text(checks)

    survive(worse([DOCTOR, b"/scratch\nwritable\nfs 1 2 3 4% /\n"], count), take)


@many
def test_squeue_and_sacct(count: int) -> None:
    def take(text: bytes) -> None:
        answer = text.decode("utf-8", "replace")
        for job in (*parse_queue(answer, "M"), *parse_account(answer)):
            assert len(job.reason) + len(job.nodes) < 10_000
            words.clock(job.started), words.clock(job.ended)

    texts = (QUEUE, ACCOUNT, QUEUE_24, ACCOUNT_24)
    survive(worse([text.encode() for text in texts], count), take)


@many
@pytest.mark.parametrize("parse", [parse_poll, scheduler.parse_poll])
def test_whole_answers_are_judged_kept_and_shown(
    fresh: Path, count: int, parse: Callable[..., object]
) -> None:
    history = History(fresh / "history.db")
    run = a_run(job_id="317", state=State.RUNNING, submitted=1.0)
    history.begin(run)
    changes = []

    def take(text: bytes) -> None:
        poll = parse(text, "M", WATCHES)
        change = transitions.transition(run, poll, time.time())  # type: ignore[arg-type]
        changes.append((run.id, change))
        if len(changes) % 50 == 0:
            history.update_many(changes[-50:])
            now = history.get(run.id)
            tables.run_table([now], time.time(), 80)
            shown = drawn(facts_table(now, [now], binding_proof.verdict(None, run.layout), 1.0))
            assert not CONTROL & set(shown) - {"\n"}

    survive(worse([ANSWER, process_answer()], count), take)
    history.close()


def process_answer() -> bytes:
    record = json.dumps(RECORD | {"job": "317"}).encode()
    return b"M clock\n1795236600\nM end\nM queue 0\n" + record + b"\nM end\n"


@many
def test_the_fence_round_an_answer(count: int) -> None:
    framing = Framing()
    mark = framing.mark.encode()
    whole = b"motd\n" + mark + b"\nhello\n" + ANSWER + mark + b" 0\n"

    def take(text: bytes) -> None:
        reader = framing.reader()
        out = b"".join(reader.feed(text[at : at + 700]) for at in range(0, len(text), 700))
        assert len(out) <= len(text)
        assert reader.code is None or 0 <= reader.code < 1000
        reader.noise  # noqa: B018

    survive(worse([whole, whole.replace(b" 0\n", b" 137\n")], count), take)


@many
def test_exit_files_and_the_evidence_of_a_submission(count: int) -> None:
    evidence = b"evidence id 317\nevidence rc 1\nsbatch: error: Batch job submission failed: x\n"

    def take(text: bytes) -> None:
        found = run_files.parse_exit(text, 1)
        assert found is None or abs(found.rc) < 2**62
        with contextlib.suppress(LumiError):
            answer = submission._answer(Result(0, text, b""))
            assert answer.job_id is None or answer.job_id.isdecimal()

    survive(worse([EXIT, evidence], count), take)


@many
def test_binding_files(count: int) -> None:
    layout = a_run().layout

    def take(text: bytes) -> None:
        found = binding_proof.verdict(text.decode("utf-8", "replace"), layout, ended=True)
        proof_rows.table(found)
        if len(text) % 10 == 0:
            drawn(proof_table(found))

    survive(worse([BINDING, BINDING.replace(b"}, {", b"},\n{")], count), take)


@many
def test_metrics(fresh: Path, count: int) -> None:
    history = History(fresh / "history.db")
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
        columns(curve(points), 80, 9)

    survive(iter([huge, METRICS + huge, b"\0" * 1_000_000]), take)
    survive(worse([METRICS], count), take)
    drawn(summary_table(figures_of(history, a_run().id)))
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
            assert not CONTROL & set("".join(grown.lines) + grown.partial)
            assert "\x1b" not in safe.feed(text[at : at + 4096])
        state = states[len(text) % len(states)]
        diagnose(Ending(state, "FAILED", "", 1, 3, text.decode("utf-8", "replace")))

    survive(iter([b"\r" * 300_000, b"\x1b]" * 100_000, b"a" * 1_000_000, b"\x1b[" * 100_000]), take)
    survive(worse([log], count), take)


@many
def test_records_of_runs(count: int) -> None:
    record = run_record.record_text(a_run()).encode()

    def take(text: bytes) -> None:
        with contextlib.suppress(ValueError):
            run_record.run_of(text, "/scratch/me/project/runs/vit-tiny-000001")

    survive(worse([record], count), take)


# -- bombs


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
def test_a_bomb_is_told(fresh: Path, text: bytes) -> None:
    path = fresh / "job.yaml"
    path.write_bytes(text)

    def take(text: bytes) -> None:
        with pytest.raises(LumiError):
            read_job(path)

    survive(iter([text]), take)
    assert not (Path.cwd() / "x").exists()


def test_a_hundred_megabytes_are_told_at_once(fresh: Path) -> None:
    path = fresh / "job.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)

    def take(text: bytes) -> None:
        with pytest.raises(LumiError, match="larger than"):
            read_job(path)

    survive(iter([b""]), take)
