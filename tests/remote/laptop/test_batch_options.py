"""What is read from #SBATCH lines, and what is refused in sbatch's words (22.05)."""

import re
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.remote.laptop.batch_options import BatchRequest, Refused, options_of, read_request


def test_a_request_is_read_from_the_lines_above_the_first_command() -> None:
    script = """#!/bin/bash -l

# a comment
#SBATCH --nodes=2 -n 8   # how many
#SBATCH --ntasks-per-node 4
#SBATCH -c7
#SBATCH --gpus-per-node=mi250:4 --signal=USR1@30
#SBATCH -t 00:10:00 --exclusive --account="project one" -p local
set -e
#SBATCH --nodes=5
"""
    assert read_request(script) == BatchRequest(
        nodes=2,
        tasks=8,
        tasks_per_node=4,
        cpus_per_task=7,
        gpus_per_node="mi250:4",
        limit=600,
        signal=signal.SIGUSR1,
        before=30,
        account="project one",
        partition="local",
    )


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--time=5", {"limit": 300}),
        ("--time=1:30", {"limit": 90}),
        ("--time=00:00:05", {"limit": 5}),
        ("--time=1-2", {"limit": 93600}),
        ("--time=0", {"limit": None}),
        ("--time=UNLIMITED", {"limit": None}),
        ("--signal=SIGTERM", {"signal": signal.SIGTERM, "before": 60}),
        ("--signal=B:10@5", {"signal": 10, "before": 5, "to_script": True}),
        ("--nodes=2-4", {"nodes": 2, "tasks": 2}),
        ("--ntasks=3", {"tasks": 3}),
    ],
)
def test_options_are_read_as_sbatch_reads_them(option: str, expected: dict[str, object]) -> None:
    request = read_request(f"#!/bin/sh\n#SBATCH {option}\n")
    assert {name: getattr(request, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--nodes=x", 'Invalid numeric value "x" for --nodes.'),
        ("--nodes=0", "less than one"),
        ("--ntasks-per-node=-2", "Invalid numeric value"),
        ("--time=soon", "Invalid --time specification"),
        ("--signal=NOPE@3", "Invalid --signal specification"),
        ("--signal=_IGN@3", "Invalid --signal specification"),
        ("--nodes=4 --ntasks=2", "node configuration is not available"),
        ("--nodes=100 --ntasks-per-node=100", "More processors requested than permitted"),
        ("--frobnicate", "unrecognized option '--frobnicate'"),
        ("-Z", "unrecognized option '-Z'"),
        ("nodes=3", "unrecognized option 'nodes=3'"),
        ("--array=1-3", "not available here"),
        ("--time", "requires an argument"),
        ('--account="x', "No closing quotation"),
    ],
)
def test_nonsense_is_refused(option: str, words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)):
        read_request(f"#!/bin/sh\n#SBATCH {option}\n")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo hi\n", "does not look like a batch script"),
        ("#!/bin/bash\r\necho hi\r\n", "DOS line breaks"),
    ],
)
def test_what_is_no_batch_script_is_refused(script: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        options_of(script)


@given(st.text(alphabet=st.sampled_from("-=@:#'\" ntNcABtime09.,\n"), max_size=60))
def test_any_directive_is_read_or_refused(text: str) -> None:
    try:
        request = read_request(f"#!/bin/sh\n#SBATCH {text}\n")
    except Refused as error:
        assert str(error)
    else:
        assert 1 <= request.nodes <= request.tasks
