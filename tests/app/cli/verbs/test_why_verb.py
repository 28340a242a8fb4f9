"""`lumitui why` explains any log: the likeliest cause, its line, what to do."""

import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lumitui.app.explain.actions import letter_of_log
from lumitui.app.history.history import History
from lumitui.app.knowledge.causes.cause_table import EVERY
from lumitui.app.knowledge.causes.meanings import EXIT_CODES, OF_THE_FIRST, STATE_RULES
from lumitui.app.knowledge.causes.own_causes import OWN
from lumitui.app.knowledge.causes.resource_causes import REFUSED
from lumitui.app.knowledge.causes.script_words import in_script_words
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import PROGRAM, Here, envelope, environ, told
from tests.support.program.home import Home

LOG = """\
3: [W socket.cpp:663] [c10d] The client socket has failed to connect (errno: 111 - Connection refused).
3: RuntimeError: No HIP GPUs are available
srun: error: nid005001: task 3: Exited with exit code 1
"""  # noqa: E501


def test_a_log_of_anybodys_is_explained(here: Here, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text(LOG)
    shown = here("why", "--log", str(log), "--exit", "1")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "The program saw no GPU (rank 3, on nid005001)."
    assert lines[2] == "  2> RuntimeError: No HIP GPUs are available"
    data = envelope(here("why", "--log", str(log), "--json"))["data"]
    assert (data["why"][0]["id"], data["why"][0]["rank"], data["lines"]) == ("no-gpu", 3, [])


def test_what_no_rule_knows_is_said_with_the_lines_that_say_most(
    here: Here, tmp_path: Path
) -> None:
    log = tmp_path / "job.out"
    log.write_text("step 1\nsolver failed at x=3\nWARNING: x\nmesh error 7\nbye\n")
    data = envelope(here("why", "--log", str(log), "--json"))["data"]
    assert [item["id"] for item in data["why"]] == ["unknown"]
    assert data["lines"] == ["solver failed at x=3", "mesh error 7"]


def test_a_log_that_is_not_there_and_a_job_that_is_not_named_are_refused(
    here: Here, tmp_path: Path
) -> None:
    told(here("why", "--log", str(tmp_path / "none")), 2, "Cannot read")
    told(here("why"), 2, "either RUN or --log FILE")


def test_a_line_keeps_its_number_behind_progress_bars_and_before_the_end_that_is_read(
    here: Here, tmp_path: Path
) -> None:
    log = tmp_path / "job.out"
    many = "step done, and the loss is small\n" * 150_000
    log.write_text(f"{many}1%\r2%\r3%\nModuleNotFoundError: No module named 'einops'\n", newline="")
    data = envelope(here("why", "--log", str(log), "--json"))["data"]
    assert data["why"][0]["number"] == 150_002


def advised(here: Here) -> dict[str, str]:
    """Return the keys that `why` advises for the last run, whose code lies beside the project."""
    shown = " ".join(here("why", "last").stdout.split())
    if "is outside the project, so lumitui did not send it." not in shown:
        return {}
    return dict(
        word.split(": ", 1) for word in re.findall(r"`(\w+: [^`]+)`", shown) if "stage" not in word
    )


@pytest.mark.parametrize(
    ("program", "keys"),
    [
        ("import beside.part", {"workdir": "work", "env": "{PYTHONPATH: ..}"}),
        ("import sys; sys.path.append('..'); from beside import part", {"workdir": "work"}),
        ("open('../beside/part.py')", {"workdir": "work"}),
        ("open('beside/part.py')", {"workdir": "."}),
        ("import os; open(os.path.abspath('..') + '/beside/part.py')", {"workdir": "work"}),
    ],
)  # fmt: skip
def test_code_beside_the_project_gets_the_keys_that_send_it(
    here: Here, job: Path, program: str, keys: dict[str, str]
) -> None:
    (job.parent / "hello.py").write_text(f"{program}\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    assert advised(here) == {}
    (job.parent.parent / "beside").mkdir()
    (job.parent.parent / "beside" / "part.py").write_text("")
    found = advised(here)
    assert found == {"project": "..", "script": "work/hello.py", **keys}
    text = job.read_text().replace("script: hello.py\n", "")
    job.write_text(text + "".join(f"{key}: {value}\n" for key, value in found.items()))
    assert here("submit", str(job), "--yes", "--wait").returncode == 0


def test_a_job_file_with_a_module_path_keeps_it(here: Here, job: Path) -> None:
    job.write_text(f"{job.read_text()}env: {{PYTHONPATH: '..:../lib'}}\n")
    (job.parent / "hello.py").write_text("import beside.part\n")
    (job.parent.parent / "beside").mkdir()
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    assert advised(here) == {"project": "..", "script": "work/hello.py", "workdir": "work"}


def test_a_file_that_the_project_itself_has_is_not_sought_beside_it(here: Here, job: Path) -> None:
    (job.parent / "hello.py").write_text("raise FileNotFoundError(2, 'No such file', 'hello.py')\n")
    (job.parent.parent / "hello.py").touch()
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    assert advised(here) == {}


def test_what_holds_no_log_is_refused_and_stdin_is_read(
    home: Home, here: Here, tmp_path: Path
) -> None:
    told(here("why", "--log", "/dev/zero"), 2, "is not a log file")
    told(here("why", "--log", str(tmp_path)), 2, "is not a log file")
    (tmp_path / "job.out").write_text("")
    told(here("why", "--log", str(tmp_path / "job.out")), 2, "is empty")
    told(here("why", str(tmp_path)), 2, "is not a log file")
    told(here("why", str(tmp_path / "none.out")), 2, "Cannot read the log")
    (tmp_path / "my job.sh").write_text("#!/bin/bash\nsrun true\n")
    told(here("why", str(tmp_path / "my job.sh")), 2, "is a script", "my job.sh'` checks")
    with subprocess.Popen(["printf", "RuntimeError: No HIP GPUs are available"], stdout=-1) as pipe:
        shown = subprocess.run(
            [*PROGRAM, "why", "--log", "-"],
            stdin=pipe.stdout,
            env=environ(home),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert shown.stdout.startswith("The program saw no GPU.")


def test_the_line_of_an_unknown_end_is_shown_once(here: Here, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text("solver failed at x=3\nmesh error 7\n")
    assert here("why", "--log", str(log)).stdout.count("mesh error 7") == 1


def test_of_a_run_that_waits_in_vain_it_says_so(here: Here, home: Home) -> None:
    history = History(home.settings.history)
    never = {"state": State.QUEUED, "job_id": "7", "reason": "DependencyNeverSatisfied"}
    history.begin(a_run("late-000001", site="laptop", **never))
    history.close()
    done = here("why", "late-000001")
    assert done.returncode == 0
    assert "did not end as required: cancel it (DependencyNeverSatisfied)" in done.stderr


def test_a_run_without_a_failure_is_named_since_a_name_means_its_newest(
    here: Here, home: Home
) -> None:
    with closing(History(home.settings.history)) as history:
        run = a_run("hello-000001", site="laptop", state=State.DONE, job_id=None)
        history.begin(run)
    name = run.spec.name
    assert here("why", "hello-000001").stderr == "hello-000001: It did not fail: it is done.\n"
    newest = here("why", name).stderr
    assert newest == f"hello-000001, the newest run of {name}: It did not fail: it is done.\n"


def test_a_fix_names_the_site_of_its_run(here: Here, job: Path, tmp_path: Path) -> None:
    log = "srun: error: CPU binding outside of job step allocation, allocated CPUs are: "
    log += "0xFEFEFEFEFEFEFEFE."
    (job.parent / "hello.py").write_text(f"import sys\nprint('{log}')\nsys.exit(1)\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    assert "`lumitui bind laptop` prints masks" in " ".join(here("why", "last").stdout.split())
    (tmp_path / "log").write_text(log)
    assert "`lumitui bind SITE`" in here("why", "--log", str(tmp_path / "log")).stdout


def test_the_code_that_raised_the_first_cause_comes_before_the_second_cause(
    here: Here, job: Path
) -> None:
    program = "import sys\nprint('RuntimeError: Connection closed by peer')\nsys.stdout.flush()\n"
    (job.parent / "hello.py").write_text(f"{program}import nothing_here\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    answer = envelope(here("why", "last", "--json"))["data"]
    assert len(answer["why"]) > 1 and answer["code"]
    lines = [line.strip() for line in here("why", "last").stdout.splitlines()]
    code = next(at for at, line in enumerate(lines) if "4  import nothing_here" in line)
    second = answer["why"][1]["line"].strip()
    assert code < next(at for at, line in enumerate(lines) if line.endswith(second))


def test_a_path_instead_of_a_run_is_read_and_a_log_alone_gives_a_letter(
    here: Here, tmp_path: Path
) -> None:
    log = tmp_path / "slurm-1234.out"
    log.write_text(LOG)
    shown = here("why", str(log))
    assert shown.returncode == 0 and shown.stdout.startswith("The program saw no GPU (rank 3")
    letter = here("why", "--log", str(log), "--helpdesk").stdout
    assert letter.startswith("Subject: a job failed: The program saw no GPU.\n\nJob:        1234\n")
    assert "Ended on:   nid005001" in letter and "  RuntimeError: No HIP GPUs" in letter


def test_a_log_without_a_job_file_gets_advice_for_sbatch_and_its_failed_task(
    here: Here, tmp_path: Path
) -> None:
    log = tmp_path / "job.out"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    end = "srun: error: acn01: task 3: {}\nsrun: error: acn01: tasks 0-2: Terminated\n"
    log.write_text(oom + end.format("Exited with exit code 1"))
    shown = here("why", "--log", str(log)).stdout
    assert "(rank 3, on acn01)" in shown and "(FSDP or DeepSpeed)" in shown
    log.write_text("slurmstepd: error: Detected 1 oom_kill event in StepId=9.0.\n")
    log.write_text(log.read_text() + end.format("Out Of Memory"))
    shown = here("why", "--log", str(log)).stdout
    assert "(rank 3, on acn01)" in shown and "memory (`--mem`)" in shown


def test_no_fix_for_a_script_names_a_key_of_a_job_file() -> None:
    of_lumitui = {*OWN, EXIT_CODES[78]}
    tables = (*EVERY, *STATE_RULES.values(), *EXIT_CODES.values(), *OF_THE_FIRST.values())
    fixes = [in_script_words(rule.do) for rule in (*tables, REFUSED) if rule not in of_lumitui]
    assert [fix for fix in fixes if re.search(r"`[a-z_]+:[ `]|job file", fix)] == []


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("slurm-123.out", "123"),
        ("slurm-20261129_4.out", "20261129_4"),
        ("resnet50-12345678.out", "12345678"),
        ("job.o12345678", "12345678"),
        ("train_20261129_12345678.log", "12345678"),
        ("2026-11-29T10-11-12-12345678.log", "12345678"),
        ("imagenet_2012_12345678.err", "12345678"),
        ("train-20261129.log", ""),
        ("train-2026-11-29.log", ""),
        ("20261129-101112.log", ""),
        ("llama-4096-a100.log", ""),
        ("1764417600.log", ""),
        ("12345678-12345679.log", ""),
    ],
)
def test_a_date_or_a_size_in_a_logs_name_is_no_job(name: str, job: str) -> None:
    line = letter_of_log((), f"/logs-20261129/1234567/{name}").splitlines()[2]
    assert line == f"Job:        {job or 'write its ID here'}"


def test_a_cause_stays_known_once_the_folder_is_deleted(here: Here, home: Home, job: Path) -> None:
    (job.parent / "hello.py").write_text("import nothing_here\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    with closing(History(home.settings.history)) as history:
        assert "nothing_here" in here("why", "last").stdout
        (run,) = history.page()
        assert run.cause
        shutil.rmtree(run.folder)
        shown = here("why", run.id).stdout
        assert "its log is empty or missing" in shown and "Read the whole log" not in shown
        assert history.get(run.id).cause == run.cause
        assert (
            "folder no longer exists" in here("fetch", run.id, "--to", str(job.parent / "f")).stderr
        )
