"""Which line, exception or rank of a log counts, where several could; and very long logs."""

import pytest

from lumitui.app.knowledge.causes.cause_table import EVERY
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.knowledge.failure.matching import Evidence, literals
from lumitui.app.knowledge.failure.message_lines import read
from lumitui.remote.site.states import State
from tests.exam.corpus import benign, excerpts, wordings
from tests.support.jobs.failed_logs import why
from tests.support.jobs.small_jobs import hello_job


def test_a_row_of_an_unknown_cause_shows_the_line_that_says_most() -> None:
    first = why("step 1\nsolver failed to make the thing\nbye\n")[0]
    assert (first.id, first.brief) == ("unknown", "solver failed to make the thing")


@pytest.mark.parametrize("traceback", ['Traceback (most recent call last):\n  File "a.py"\n', ""])
def test_under_a_launcher_an_exception_without_a_label_is_of_the_rank_it_names(
    traceback: str,
) -> None:
    spec = hello_job(launcher="torchrun")
    found = why(f"{traceback}OddError: 3\n", rank=3, spec=spec)
    assert (found[0].id, found[0].rank) == ("exception", 3)
    assert found[0].sentence == "Rank 3 raised an exception."


def test_of_very_many_lines_of_trouble_the_first_and_the_last_are_read() -> None:
    names = ("".join(chr(97 + n // 26**at % 26) for at in range(4)) for n in range(20_000))
    log = "".join(f"error: {name} failed\nstep {at}\n" for at, name in enumerate(names))
    evidence = Evidence(read(log), None, None)
    assert len(evidence.candidates) == 3000
    assert evidence.candidates[-1] > 19_000


def test_a_launchers_exception_without_its_traceback_names_no_cause() -> None:
    log = """\
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 7)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
"""
    assert [item.id for item in why(log)] == ["unknown"]


def test_shared_memory_that_could_not_be_opened_for_want_of_files_is_a_want_of_files() -> None:
    log = """\
RuntimeError: unable to open shared memory object </torch_1_2> in read-write mode
    nfd = dup(fd)
OSError: [Errno 24] Too many open files
"""
    assert why(log)[0].id == "open-files"


def test_a_step_that_still_waits_at_the_end_of_the_log_is_the_cause() -> None:
    waits = "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
    assert why(waits)[0].id == "unknown"
    timed_out = diagnose(RunEnd(State.TIMEOUT, rc=1, log=waits))
    assert timed_out[0].id == "step-waited"
    assert why(waits + waits.replace("temporarily", "still"))[0].id == "step-waited"
    refused = "srun: error: Unable to create step for job 7: Memory required by task is not here\n"
    assert why(waits * 2 + refused)[0].id == "step-refused"


LINES = (
    *(line for lines in wordings().values() for line in lines),
    *(line for item in excerpts() for line in item.lines),
    *benign(),
)


def test_a_line_that_fits_a_rule_has_one_of_the_texts_that_it_is_looked_up_by() -> None:
    texts = {id(rule): literals(rule.pattern.pattern) for rule in EVERY}
    fits = [(rule, line) for rule in EVERY for line in LINES if rule.pattern.search(line)]
    assert len(fits) > 1000
    for rule, line in fits:
        known = texts[id(rule)]
        assert known is None or any(text in line.lower() for text in known), (rule.id, line)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"Bus error|[Ss]egmentation fault", {"bus error", "egmentation fault"}),
        (r"(?i:no GPUs? (?:found|seen))\b", {"no gpu"}),
        (r"colou?r(?!blind) lost", {" lost"}),
        (r"x{0,3}(?P<what>out of memory)+", {"out of memory"}),
        (r"(?<!not )found[^|)]\.so", {"found"}),
    ],
)
def test_the_texts_of_a_pattern(pattern: str, expected: set[str]) -> None:
    assert set(literals(pattern) or ()) == expected


@pytest.mark.parametrize("pattern", [r"\d+|out of memory", r"(?:lost)?", r"[abc]+"])
def test_a_pattern_without_a_text_is_tried_on_every_line(pattern: str) -> None:
    assert literals(pattern) is None


@pytest.mark.parametrize(
    "after", ["srun: error: nid005001: task 0: Exited with exit code 1", "wandb: "]
)
def test_a_line_of_a_launcher_behind_a_cut_traceback_is_no_exception(after: str) -> None:
    log = f"""\
E0604 21:29:58.325 2768 api.py:869] failed (exitcode: -9) local_rank: 1 (pid: 9) of binary: python
Traceback (most recent call last):
  File "/opt/bin/torchrun", line 8, in <module>
    sys.exit(main())
{after}
"""
    assert why(log)[0].id == "host-memory"


def test_a_thrown_object_of_a_watchdog_says_less_than_its_words() -> None:
    log = """\
terminate called after throwing an instance of 'c10::DistBackendError'
[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)
"""
    assert why(log)[0].id == "collective-timeout"
    alone = why("terminate called after throwing an instance of 'std::runtime_error'\n")[0]
    assert alone.sentence == "A process crashed outside of Python (std::runtime_error)."


@pytest.mark.parametrize("prefix", ["bench.nid1 [stderr] ", "[pod/trainer-0/pytorch] ", "[3] "])
def test_what_a_launcher_writes_before_each_line_hides_no_exception(prefix: str) -> None:
    lines = ("Traceback (most recent call last):", '  File "a.py", line 3, in f', "OddError: 3")
    found = why("".join(f"{prefix}{line}\n" for line in lines))[0]
    assert (found.id, found.place) == ("exception", "a.py:3 (f)")


def test_an_exception_that_python_ignored_comes_before_no_other_cause() -> None:
    log = """\
nid1:7:9 [0] NCCL WARN NET/OFI Request completed with error. RC: 5. Error: Input/output error.
Exception ignored in: <function Pool.__del__ at 0x7f>
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/pool.py", line 271, in __del__
    self._change_notifier.put(None)
AttributeError: 'NoneType' object has no attribute 'put'
"""
    assert [item.id for item in why(log)] == ["network"]
    cut = 'Traceback (most recent call last):\n  File "/opt/bin/torchrun", line 8, in <module>\n'
    assert [item.id for item in why(cut + log)] == ["network"]


TRACEBACK = """\
Traceback (most recent call last):
  File "/scratch/run/train.py", line 8, in main
    work()
  File "{file}", line 70, in {function}
    raise error
{raised}
"""


PATH = "FileNotFoundError: [Errno 2] No such file or directory: 'plot-it'"
NAME = "socket.gaierror: [Errno -2] Name or service not known"


@pytest.mark.parametrize(
    ("file", "function", "raised", "cause"),
    [
        ("/usr/lib/python3.11/subprocess.py", "_execute_child", PATH, "no-command"),
        ("/usr/lib/python3.11/pathlib.py", "open", PATH, "no-file"),
        ("/env/torch/distributed/rendezvous.py", "_tcp_rendezvous_handler", NAME, "rendezvous"),
        ("/env/urllib3/connection.py", "_new_conn", NAME, "no-internet"),
        ("/env/tool/io.py", "run", "ToolError: open /x/y: permission denied", "permission"),
        ("/env/tool/io.py", "run", "ToolError: mmap: Cannot allocate memory", "host-memory"),
        ("/env/tool/io.py", "run", "ToolError: it is not allowed", "exception"),
    ],
)
def test_the_cause_of_an_exception(file: str, function: str, raised: str, cause: str) -> None:
    assert why(TRACEBACK.format(file=file, function=function, raised=raised))[0].id == cause
