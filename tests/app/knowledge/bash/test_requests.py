"""`#SBATCH` lines mean what sbatch takes them for."""

import pytest

from lumitui.app.knowledge.script_job import ScriptJob
from tests.support.rules.script_findings import job_of


def job(*lines: str, body: str = "srun python t.py") -> ScriptJob:
    head = "".join(f"#SBATCH {line}\n" for line in lines)
    return job_of(f"#!/bin/bash\n{head}{body}\n")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("-N2", "nodes", "2"),
        ("-N 2 -n16", "ntasks", "16"),
        ("--tasks-per-node=8", "ntasks-per-node", "8"),
        ("--gpus-per-n 8", "gpus-per-node", "8"),
        ("--part=small-g", "partition", "small-g"),
        ("-J 'a b'  # the name", "job-name", "a b"),
        ('--comment="x #1"', "comment", "x #1"),
        ("-Hk -c 7", "cpus-per-task", "7"),
        ("--exclusive", "exclusive", None),
        ("--exclusive=user", "exclusive", "user"),
    ],
)  # fmt: skip
def test_options_are_read_as_getopt_reads_them(line: str, name: str, value: str | None) -> None:
    read = job(line)
    option = read.options.get(name)
    assert read.troubles == ()
    assert option is not None and option.value == value


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("--nodes = 2", "stray-word"),
        ("--gpus-per=2", "unknown-directive"),
        ("--job_name=x", "unknown-directive"),
        ("--nodes", "unknown-directive"),
        ("--output=$HOME/x", "directive-with-variable"),
        ("hetjob", "not-understood"),
    ],
)  # fmt: skip
def test_what_sbatch_refuses_is_a_trouble_with_its_place(line: str, trouble: str) -> None:
    (found,) = job(line).troubles
    assert (found.id, found.at.line) == (trouble, 2)


def test_lines_below_the_first_command_are_none_but_text_in_a_heredoc_may_be() -> None:
    read = job("-N 2", body="date\n#SBATCH -N 4\ncat >x.sh <<EOF\n#SBATCH -N 8\nEOF\n")
    assert read.resources.nodes == 2
    assert [(item.id, item.at.line) for item in read.troubles] == [("directive-after-command", 4)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("-N 2", "--ntasks-per-node=8"), {"tasks": 16, "tasks_per_node": 8}),
        (("-N 2", "-n 16"), {"tasks": 16, "tasks_per_node": 8}),
        (("-n 1",), {"nodes": None, "tasks_per_node": 1}),
        (("-N 2-4",), {"nodes": 2}),
        (("--gres=gpu:a100:4,nvme:100",), {"gpus_per_node": 4, "gpu_type": "a100"}),
        (("--gres=gpu",), {"gpus_per_node": 1}),
        (("-N 2", "-G 16"), {"gpus_per_node": 8, "gpus_total": True}),
        (("-N 2", "-n 16", "--gpus-per-task=1"), {"gpus_per_node": 8}),
        (("--mem=480G",), {"memory_gib": 480}),
        (("--mem=1T",), {"memory_gib": 1024}),
        (("--mem=2048",), {"memory_gib": 2}),
        (("--mem-per-gpu=60G", "--gpus-per-node=8"), {"memory_gib": 480}),
        (("--mem-per-cpu=2G", "-n 1", "-c 7"), {"memory_gib": 14}),
        (("-t 1-12",), {"seconds": 36 * 3600}),
        (("-t 90",), {"seconds": 90 * 60}),
        (("-t soon",), {"seconds": None}),
    ],
)  # fmt: skip
def test_requests_become_numbers(lines: tuple[str, ...], expected: dict[str, object]) -> None:
    asked = job(*lines).resources
    assert {name: getattr(asked, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("srun python t.py", (8, 16)),
        ("srun -N 1 -n 4 python t.py", (4, 4)),
        ("srun -N 1 python t.py", (8, 8)),
        ("srun --ntasks-per-node=1 torchrun --nproc-per-node=8 --nnodes=2 t.py", (8, 16)),
        ("srun -n $SLURM_NTASKS python t.py", (8, 16)),
        ("srun -n $TASKS python t.py", (None, None)),
        ("mpirun -np 16 python t.py", (8, 16)),
        ("python t.py", (1, 1)),
    ],
)  # fmt: skip
def test_ranks_follow_from_the_request_and_the_launch(
    line: str, ranks: tuple[int | None, int | None]
) -> None:
    rank = job("-N 2", "--ntasks-per-node=8", "--gpus-per-node=8", body=line).rank
    assert (rank.per_node, rank.world_size) == ranks


def test_modules_are_those_that_stay_loaded() -> None:
    body = "module load a b/1\nml -q purge\nml -q c d\nmodule swap c e\nmodule unload d\n"
    assert job(body=body).modules == ("e",)


def test_a_container_that_sbatch_enters_holds_for_the_steps_without_one() -> None:
    body = "python a.py\nsrun --container-image=b.sqsh python b.py\n"
    steps = job("--container-image=a.sqsh", "--container-mounts=/x:/x", body=body).steps
    calls = [step.container for step in steps if step.container]
    assert [call.image.known for call in calls if call.image] == ["a.sqsh", "b.sqsh"]
    assert [word.known for word in calls[0].binds] == ["/x:/x"]


def test_what_slurm_does_with_the_job_is_read_in_every_spelling() -> None:
    seen = job("--exclude=nid001", "--signal=B:USR1@60", "--requeue", "-a 0-9%3", "-x nid002")
    assert seen.troubles == ()
    assert seen.options.value("exclude") == "nid002"
    assert seen.options.value("signal") == "B:USR1@60"
    assert seen.resources.array == "0-9%3"


@pytest.mark.parametrize(
    "line",
    [
        "#SBATCH --oom-kill-step",
        "#SBATCH --oom-kill-step=1",
        "#SBATCH --consolidate-segments",
        "#SBATCH --spread-segments",
        "srun --wait-for-children python train.py",
        "srun --spread-segments --consolidate-segments python train.py",
        "srun --mem-update 20G --ignore-signals USR1 --async python train.py",
        "srun --parsable python train.py",
        "srun --exclusive=allocation python train.py",
    ],
)
def test_options_of_slurm_24_11_to_26_05_are_options(line: str) -> None:
    read = job_of(f"#!/bin/bash\n{line}\n")
    assert not read.troubles
    if line.startswith("srun"):
        assert [step.program.text for step in read.steps if step.program] == ["train.py"]


def test_types_of_gpus_are_counted_together() -> None:
    for option in ("--gpus-per-task=a100:1,v100:1", "--gpus-per-node=a100:1,v100:1"):
        read = job(option, "--ntasks-per-node=1")
        assert read.resources.gpus_per_node == 2
    two = job("--ntasks-per-node=1", body="srun --gpus-per-task=a100:1,v100:1 python t.py")
    assert two.rank.visible_gpus is None
