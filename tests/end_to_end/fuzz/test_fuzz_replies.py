"""Replies of a site may be anything: each is understood or refused, without a traceback.

They are the same texts every time: 1,000 here, 10,000 with `pytest -m slow`.
"""

import contextlib
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, Group

from lumitui.app.cli.views import tables
from lumitui.app.explain import run_facts, run_overview, words
from lumitui.app.explain.proof import binding_proof
from lumitui.app.follow import transitions
from lumitui.app.history.history import History
from lumitui.app.scale.lineage_overview import Overviews
from lumitui.app.tui.panes.overview_pane import page
from lumitui.app.tui.panes.proof_pane import proof_lines, rank_table
from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler import run_files
from lumitui.remote.scheduler.evidence import outcome_of
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import parse_account, parse_poll, parse_queue
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.doctor.examine import examine
from lumitui.remote.transport.framing import Framing
from lumitui.remote.transport.transport import Result
from tests.support.attacks.spoilt_text import many, survive, worse
from tests.support.attacks.whole_texts import (
    ANSWER,
    BINDING,
    DOCTOR,
    EXIT,
    WATCHES,
)
from tests.support.jobs.made_runs import a_run
from tests.support.replies.schedulers import ACCOUNT, ACCOUNT_24, QUEUE, QUEUE_24, RECORD
from tests.support.servers.transports import FixedAnswer

LUMI = Sites([BUILT_IN]).load("lumi")


def drawn(what: object) -> str:
    console = Console(width=100, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@many
def test_replies_to_doctor(count: int) -> None:
    def take(text: bytes) -> None:
        checks = examine(FixedAnswer(text), LUMI, "", lambda account: "/scratch")
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
def test_whole_replies_to_a_poll_are_kept_and_shown(
    tmp_path: Path, count: int, parse: Callable[..., object]
) -> None:
    history = History(tmp_path / "history.db")
    run = a_run(job_id="317", state=State.RUNNING, submitted=1.0)
    history.begin(run)
    overviews = Overviews(history)
    changes = []

    def take(text: bytes) -> None:
        poll = parse(text, "M", WATCHES)
        change = transitions.transition(run, poll, time.time())  # type: ignore[arg-type]
        changes.append((run.id, change))
        if len(changes) % 50 == 0:
            history.update_many(changes[-50:])
            now = history.get(run.id)
            tables.run_table([now], time.time(), 80)
            found = overviews.of(run.id)
            told = run_overview.rows(now, 1.0, found.proof, found.figures.summary, None)
            shown = drawn(page(now, found, 1.0, 60, told, run_facts.facts(now, 1.0)))
            assert not CONTROL_CHARACTERS & set(shown) - {"\n"}

    survive(worse([ANSWER, process_answer()], count), take)
    history.close()


def process_answer() -> bytes:
    record = json.dumps(RECORD | {"job": "317"}).encode()
    return b"M clock\n1795236600\nM end\nM queue 0\n" + record + b"\nM end\n"


@many
def test_the_framing_of_a_reply(count: int) -> None:
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
    evidence = b"M answer id 2 317\n\nM end\nM answer refused 2\nsbatch: error: x\nM end\n"

    def take(text: bytes) -> None:
        found = run_files.parse_exit(text, 1)
        assert found is None or abs(found.rc) < 2**62
        with contextlib.suppress(LumiError):
            answer = outcome_of(Result(0, text, b""), "M").answer
            assert answer.job_id is None or answer.job_id.isdecimal()

    survive(worse([EXIT, evidence], count), take)


@many
def test_binding_files(count: int) -> None:
    layout = a_run().layout

    def take(text: bytes) -> None:
        found = binding_proof.verdict(text.decode("utf-8", "replace"), layout, ended=True)
        run_facts.proof_table(found)
        if len(text) % 10 == 0:
            drawn(Group(*proof_lines(found)))
            if table := rank_table(found):
                assert table.widths

    survive(worse([BINDING, BINDING.replace(b"}, {", b"},\n{")], count), take)
