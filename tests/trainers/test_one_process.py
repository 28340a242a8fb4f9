"""The trainers in one process: checkpoints, what they refuse and what they report."""

import ast
import importlib
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import TRAINER_MODULES, TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.ranks import (
    STOPPED_EARLY,
    Load,
    checkpoints,
    clean_environ,
    reported,
    train_alone,
)

# ------------------------------------------------------------------------------- the folder


def library_names() -> set[str]:
    """What a file beside a trainer would hide: sys.path starts with the trainer's own folder."""
    well_known = {"accelerate", "datasets", "evaluate", "horovod", "lightning", "transformers"}
    installed = set(importlib.metadata.packages_distributions())
    return well_known | installed | set(sys.stdlib_module_names)


def test_no_trainer_is_named_like_a_library() -> None:
    assert {"torch", "json", "lightning"} <= library_names()
    assert not library_names() & set(TRAINER_MODULES)


SIGNAL_IN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), signal.SIGUSR1)
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch")
def test_a_process_ignores_a_projects_packages_and_notes_a_signal_while_it_imports(
    tmp_path: Path,
) -> None:
    for name in TRAINER_MODULES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    (tmp_path / "sitecustomize.py").write_text(SIGNAL_IN_IMPORT)
    done = subprocess.run(
        [PYTHON, str(TRAINERS / SHORT[0]), *SHORT[1:]],
        env=clean_environ(tmp_path) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (STOPPED_EARLY, "")
    assert "stopped by SIGUSR1 after step 1; checkpoints/start-0001-step-" in done.stdout


def test_every_trainer_listens_for_signals_before_it_imports_anything_else() -> None:
    """What comes before is Python's own `__future__`; the two tools train nothing."""
    tools = ("pack.py", "export_weights.py")
    trainers = {path for path in TRAINERS.glob("*.py") if path.name not in tools}
    assert len(trainers) >= 3
    for path in trainers:
        first = next(
            node
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        )
        assert isinstance(first, ast.ImportFrom) and first.module == "monitor.stop_request", path


def test_trainers_import_nothing_of_the_laptop() -> None:
    for path in TRAINERS.rglob("*.py"):
        assert not re.search(r"(?m)^\s*(import|from) lumitui", path.read_text()), path


LOADED = """
import os, sys
from pathlib import Path
here, leave = str(Path(sys.argv[0]).parent), os._exit
def counted(code):
    files = {str(getattr(one, "__file__", "")) for one in list(sys.modules.values())}
    files = sorted(one.removeprefix(here) for one in files if one.startswith(here))
    print("loaded", *files, flush=True)
    leave(code)
os._exit = counted
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_training_loads_only_the_files_that_it_uses(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, before=LOADED)
    assert code == 0, said
    (files,) = (line.split()[1:] for line in said.splitlines() if line.startswith("loaded "))
    assert "/models/digits.py" in files and "/models/llama.py" not in files
    assert len(files) <= 30, files


STEPPED = """
import sys
from pathlib import Path
from monitor.heartbeat import Heart
here, real, files = str(Path(sys.argv[0]).parent), Heart.step, set()
def called(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(here):
        files.add(name.removeprefix(here))
def step(self, number):
    if number == 3:
        sys.setprofile(called)
    elif number == 4:
        sys.setprofile(None)
        print("stepped", *sorted(files), flush=True)
    real(self, number)
Heart.step = step
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_step_runs_through_six_files(tmp_path: Path) -> None:
    """Who reads what a training does reads these; what a step came to is read after several."""
    words = (*SHORT, "--batch-size", "8", "--steps", "4")
    code, said = train_alone(tmp_path, *words, before=STEPPED)
    assert code == 0, said
    (files,) = (line.split()[1:] for line in said.splitlines() if line.startswith("stepped "))
    assert files == [
        "/data/loading.py",
        "/data/samples.py",
        "/engine/training.py",
        "/models/digits.py",
        "/monitor/heartbeat.py",
        "/strategies/pytorch.py",
    ]


@pytest.mark.usefixtures("needs_torch")
def test_packing_loads_no_model() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(TRAINERS)!r}); import pack; "
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'models']"
    )
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------ the learning rate


def test_the_learning_rate_warms_up_and_falls_to_nothing(load: Load) -> None:
    rates = [load("strategies.pytorch").cosine(0.02, done / 1000) for done in range(1001)]
    assert rates[0] == pytest.approx(0.002)
    assert rates.index(max(rates)) == pytest.approx(50, abs=1)
    assert max(rates) == pytest.approx(0.02, rel=0.01)
    assert rates[1000] == pytest.approx(0)


def test_without_lightning_a_sentence_says_what_to_install(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(load("engine.exits").UsageError, match="Install `lightning` in"):
        load("strategies.lightning")


# ------------------------------------------------------------------------- checkpoints


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self.path,)


def test_a_file_that_is_no_checkpoint_is_refused(load: Load, tmp_path: Path) -> None:
    checkpoint, exits, torch = load("saving.files"), load("engine.exits"), load("torch")
    whole = io.BytesIO()
    torch.save({"model": {"step": 1}}, whole)
    contents = {
        "cut": whole.getvalue()[:-100],
        "empty": b"",
        "text": b"step 1",
        "other": pickle.dumps([1, 2], protocol=2),
        "code": pickle.dumps(Attack(str(tmp_path / "attacked")), protocol=2),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(exits.UsageError, match="not a readable checkpoint"):
            checkpoint.load(path, torch.device("cpu"))
    assert not (tmp_path / "attacked").exists()


# ----------------------------------------------------------------------- what it tells


def step(load: Load, seconds: float, ended: float) -> Any:
    return load("engine.reporting").Step(3, 1, 0.1, math.nan, math.inf, seconds, ended)


def test_metrics_survive_a_torn_line_and_numbers_json_has_not(load: Load, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "lo')
    report = load("engine.reporting").Reporter(tmp_path, 0, 10)
    report.step(step(load, 0.5, time.monotonic()), samples=8, skipped=1)
    torn, mine = (tmp_path / "metrics.jsonl").read_text().splitlines()[1:]
    assert torn == '{"step": 2, "lo'
    assert json.loads(mine) | {"seconds": 0} == {
        "step": 3,
        "epoch": 1,
        "loss": None,
        "grad_norm": None,
        "lr": 0.1,
        "skipped": 1,
        "samples_per_s": 16.0,
        "seconds": 0,
    }
    load("engine.reporting").Reporter(tmp_path / "other", 1, 10).end(step=3, figure=0.5)
    assert not (tmp_path / "other").exists()  # only rank 0 speaks


def test_the_throughput_is_of_all_the_time_and_says_where_it_went(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(load("engine.reporting").time, "monotonic", lambda: now[0])
    report = load("engine.reporting").Reporter(tmp_path, 0, 10)
    for seconds in (1, 1, 1, 9):  # nine in ten of the fourth are a loader that stalls
        report.step(step(load, seconds, now[0] + seconds), samples=8)
        now[0] += seconds
    for part in ("save_s", "test_s"):
        with report.timed(part):
            now[0] += 2
    report.end(step=3, figure=0.5)
    told = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert (told["samples_per_s"], told["median_samples_per_s"]) == (32 / 16, 8)
    spent = {"step_s": 12.0, "save_s": 2.0, "test_s": 2.0, "other_s": 0.0}
    assert told.items() >= spent.items()


def test_attempts_are_counted_from_one(load: Load) -> None:
    attempt = load("monitor.metrics").attempt
    assert attempt({}) == 1
    assert attempt({"SLURM_RESTART_COUNT": "2"}) == 3
    assert attempt({"SLURM_RESTART_COUNT": "2", "RUN_ATTEMPT": "7"}) == 7


@pytest.mark.parametrize("words", ["--lr -1", "--lr nan", "--clip inf", "--weight-decay=-1"])
def test_a_rate_that_is_no_rate_is_refused(
    load: Load, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = load("engine.arguments").parser_of("ddp.py")
    assert parser.parse_args(["--lr", "1e30", "--clip", "0"]).lr == 1e30
    with pytest.raises(SystemExit):
        parser.parse_args(words.split())
    assert "is not a number of at least 0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch")
def test_the_sample_teaches_the_network(tmp_path: Path) -> None:
    code, output = train_alone(tmp_path, "ddp.py", "--epochs", "1", "--eval", "end")
    assert code == 0, output
    told = reported(tmp_path)
    assert told[0].items() >= {"event": "start", "world_size": 1, "global_batch": 32}.items()
    assert [line["step"] for line in told if "loss" in line] == list(range(1, 251))
    assert told[-1]["event"] == "end"
    accuracy = told[-1]["test_accuracy"]
    assert isinstance(accuracy, float)
    assert accuracy >= 0.9
    assert output.splitlines()[-1] == f"test accuracy {accuracy:.4f}"
    assert checkpoints(tmp_path)


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--data", "/nowhere"), "ddp.py: There is no data folder /nowhere. Give --data"),
        (("--epochs", "0"), "'0' is not a whole number of at least 1"),
        (("--limit", "31"), "31 training samples are fewer than one global batch of 32 x 1"),
    ],
)
def test_wrong_arguments_give_a_sentence(
    tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    code, output = train_alone(tmp_path, "ddp.py", *words)
    assert code == 2
    assert complaint in output
    assert "Traceback" not in output
    assert not (tmp_path / "checkpoints").exists()


SHORT = ("ddp.py", "--limit", "64", "--steps", "1", "--eval", "never")


@pytest.mark.usefixtures("needs_torch")
def test_a_seed_may_have_any_size_but_may_not_change(tmp_path: Path) -> None:
    code, output = train_alone(tmp_path, *SHORT, "--seed", str(2**70 + 1))
    assert code == 0, output
    code, output = train_alone(tmp_path, *SHORT, "--resume")
    assert code == 2
    assert f"made with seed {2**70 + 1}, but this run uses 0" in output


@pytest.mark.usefixtures("needs_torch")
def test_an_error_leaves_its_file_and_a_new_attempt_removes_it(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    assert train_alone(tmp_path, *SHORT)[0] == 2
    error = json.loads((tmp_path / "errors" / "rank-0.json").read_text())["message"]
    assert "cannot be written there" in error["message"]
    assert int(error["extraInfo"]["timestamp"]) > 1_700_000_000
    (tmp_path / "checkpoints").unlink()
    assert train_alone(tmp_path, *SHORT)[0] == 0
    assert not list((tmp_path / "errors").iterdir())
