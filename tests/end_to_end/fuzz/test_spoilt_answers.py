"""Every verb that asks a site, at a site whose answers are spoilt: a sentence, and no traceback.

The answers are real ones of the embedded site. In each example one of them is cut, doubled, filled
with garbage or ends with another status; the later ones are as they were.
"""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.follow import log_follower as follow_log
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.laptop.scheduler import Process
from lumitui.remote.scheduler.scheduler_protocol import Scheduler, State
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport
from tests.support.attacks.spoilt_text import GARBAGE, survive, worse
from tests.support.attacks.whole_texts import ANSWER, DOCTOR
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_project
from tests.support.program.command_line import HELLO
from tests.support.program.home import Home
from tests.support.servers.playback import Answer, Lie, Recorder
from tests.support.servers.transports import FixedAnswer

COUNTS = [10, pytest.param(1000, marks=pytest.mark.slow)]
CODES = {0, 1, 2, 3, 4, 5, 6, 124}
"""The exit codes that `lumitui --help` lists."""
VERBS = {
    "status": ("status",),
    "status --json": ("status", "--json"),
    "logs": ("logs", "last"),
    "logs --follow": ("logs", "last", "--follow"),
    "doctor": ("site", "check", "laptop"),
    "prune": ("site", "prune", "laptop", "--yes"),
    "cancel": ("cancel", "last", "--yes"),
    "recover": ("history", "--recover", "laptop"),
    "fetch": ("fetch", "last"),
    "show": ("show", "last"),
    "submit": ("submit", "job.yaml", "--yes"),
    "resubmit": ("resubmit", "last", "--yes"),
}
TRAIN = 'import os; f = open(os.environ["RUN_DIR"] + "/metrics.jsonl", "w")\n' + "".join(
    f'print(\'{{"step": {step}, "loss": 0.5}}\', file=f)\n' for step in range(5)
)


class Stage:
    """A project whose run has ended on the site, and a history that does not know it yet."""

    def __init__(self, folder: Path) -> None:
        self.data, self.kept = Path(os.environ["LUMITUI_DATA_DIR"]), folder / "kept"
        self.home = os.environ["HOME"]
        self.project = hello_project(folder / "project")
        (self.project / "hello.py").write_text(TRAIN)
        (self.project / "job.yaml").write_text(HELLO)
        self.made: Callable[[], Transport] = Local
        self.scheduler: Callable[[Transport], Scheduler] = Process
        self.settings = Home(Path(os.environ["LUMITUI_CONFIG_DIR"]), self.data).settings

    def connect(self, site: Site, ask: Ask) -> Connection:
        transport = self.made()
        return Connection(transport, self.scheduler(transport), lambda: "me", self.home)

    def keep(self) -> None:
        shutil.copytree(self.data, self.kept)

    def begin(self, *, forgotten: bool = False) -> None:
        """Put everything back as it was when the run had just been sent."""
        shutil.rmtree(self.data)
        if forgotten:
            self.data.mkdir(mode=0o700)
        else:
            shutil.copytree(self.kept, self.data)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("lying")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LUMITUI_CONFIG_DIR", "LUMITUI_DATA_DIR", "XDG_STATE_HOME", "HOME"):
            (folder / name).mkdir()
            patch.setenv(name, str(folder / name))
        found = Stage(folder)
        patch.chdir(found.project)
        defaults = cast(dict[str, object], Runs.__init__.__kwdefaults__)
        patch.setitem(defaults, "connect", found.connect)
        assert run_verb(lumitui, ["submit", "job.yaml", "--yes"]) == 0
        found.keep()
        runs = Runs(found.settings)
        (run,) = runs.history.page()
        finish(runs, run)
        runs.close()
        patch.setattr(time, "sleep", lambda seconds: None)
        patch.setattr(follow_log, "sleep_unless", lambda seconds, stop: None)
        yield found


def recorded(stage: Stage, words: tuple[str, ...]) -> list[Answer]:
    """Run a verb against the real site, and return what the site answered."""
    recorder = Recorder(Local())
    stage.made = lambda: recorder
    stage.begin(forgotten="--recover" in words)
    assert run_verb(lumitui, list(words)) in CODES
    assert recorder.answers, "it asks the site"
    return recorder.answers


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_spoilt_answer_is_a_sentence(
    stage: Stage, capsysbinary: pytest.CaptureFixture[bytes], verb: str, count: int
) -> None:
    words = VERBS[verb]
    answers = recorded(stage, words)
    rng = random.Random(verb)

    def take(text: bytes) -> None:
        number = rng.randrange(len(answers))
        told = answers[number]
        out = told.out if isinstance(told, Result) else told
        match rng.randrange(4):
            case 0:
                lie = Lie(answers, number, text)
            case 1:
                lie = Lie(answers, number, out, rng.choice([1, 4, 5, 44, 74, 255]), text)
            case 2:
                lie = Lie(answers, number, b"", rng.choice([0, 255]))
            case _:
                lie = Lie(answers, number, next(worse([out], 1, rng.randrange(1 << 30))))
        lie.ends = "--follow" in words
        stage.made = lambda: lie
        stage.begin(forgotten="--recover" in words)
        code = run_verb(lumitui, list(words))
        said = capsysbinary.readouterr().err.decode("utf-8", "replace")
        assert code in CODES, (code, said[-2000:])
        for sign in ("internal error", "Traceback"):
            assert sign not in said, said[-2000:]
        assert len(said) < 20_000
        if code:
            assert said.startswith(("error: ", "warning: ", "note: ")) or "error: " in said

    seeds = [answer.out if isinstance(answer, Result) else answer for answer in answers]
    survive(worse([*seeds, *GARBAGE], count, seed=len(verb)), take)


SLURM_VERBS = {
    "status": ("status",),
    "cancel": ("cancel", "last", "--yes"),
    "logs": ("logs", "last"),
    "doctor": ("site", "check", "lumi"),
    "cluster": ("site", "live", "lumi"),
    "prune": ("site", "prune", "lumi", "--yes"),
    "recover": ("history", "--recover", "lumi", "--account", "project_462000001"),
}
SLURM_ANSWERS = [
    ANSWER.replace(b"M ", b"MARKER ").replace(b"M-job", b"MARKER-job"),
    DOCTOR,
    b"MARKER gone 0\nMARKER end\nMARKER cancelled 1\nscancel: error: x\nMARKER end\n"
    b"MARKER done\nMARKER end\n",
    b"0123456789abcdef01234567 3 12\n- 1 2\n",
    b"MARKER folders\n./project/runs/a\nMARKER end\n"
    b"MARKER signs 0\nlocked\nreceipt 7\nMARKER end\n",
    b"12\nthe end of a log\n",
    b"MARKER nodes\nsmall-g|up|3-00:00:00|1-4|idle|8\nMARKER-status=0\n\nMARKER end\n"
    b"MARKER queue\n7|RUNNING|small-g|1|0:02|5:00|17|None|a\nMARKER-status=0\n\nMARKER end\n",
]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("verb", SLURM_VERBS)
def test_a_spoilt_answer_of_slurm_is_a_sentence(
    stage: Stage, capsysbinary: pytest.CaptureFixture[bytes], verb: str, count: int
) -> None:
    """Every request of a verb is answered with the same text."""
    words = SLURM_VERBS[verb]
    chance = random.Random(verb)

    def take(text: bytes) -> None:
        site = FixedAnswer(text, chance.choice([0, 0, 0, 1, 255]), text[:5000])
        stage.begin(forgotten=True)
        runs = Runs(stage.settings)
        run = a_run("vit-tiny-000001", site="lumi", state=State.RUNNING, job_id="317")
        runs.history.begin(replace(run, folder="/s/runs/a"))
        runs.close()
        stage.made, stage.scheduler = lambda: site, Slurm
        try:
            code = run_verb(lumitui, list(words))
        finally:
            stage.scheduler = Process
        said = capsysbinary.readouterr().err.decode("utf-8", "replace")
        assert code in CODES, (code, said[-2000:])
        for sign in ("internal error", "Traceback"):
            assert sign not in said, said[-2000:]
        assert len(said) < 50_000

    survive(worse([*SLURM_ANSWERS, *GARBAGE], count, seed=len(verb)), take)
