"""What public scripts write and a first reading took for something else."""

from lumitui.app.knowledge.script_job import ContainerCall, JobStep, ScriptJob
from tests.support.rules.script_findings import job_of


def read(text: str) -> ScriptJob:
    return job_of(f"#!/bin/bash\n{text}")


def only_step(text: str) -> JobStep:
    (step,) = read(text).training
    return step


def call_of(line: str) -> ContainerCall:
    call = only_step(line).container
    assert call is not None
    return call


def program_of(text: str) -> str:
    program = only_step(text).program
    assert program is not None
    return program.known


def test_expansions_with_a_blank_between_them_are_both_known() -> None:
    text = 'A="python -u"\nP="t.py"\nexport CMD="$A $P"\nS=" \\\n    "\nsrun $S bash -c "R=1 $CMD"'
    assert program_of(text) == "t.py"


def test_a_sites_wrapper_of_a_container_is_a_container() -> None:
    lines = {
        "srun singularity_wrapper exec deepspeed t.py": ("singularity_wrapper", None),
        "srun singularity_wrapper exec bash -c 'accelerate launch t.py'": (
            "singularity_wrapper", None,
        ),
        "srun apptainer_wrapper exec x.sif python t.py": ("apptainer_wrapper", "x.sif"),
        "srun bsc_singularity exec --nv /images/torch python t.py": (
            "bsc_singularity", "/images/torch",
        ),
    }  # fmt: skip
    for line, (wrapper, image) in lines.items():
        call = call_of(line)
        assert (call.program, call.image and call.image.known) == (wrapper, image), line
        assert program_of(line) == "t.py", line


def test_a_program_that_only_the_person_knows_is_the_main_one_in_a_container() -> None:
    assert program_of("singularity exec x.sif $1") == "$1"


def test_gpus_in_all_are_those_of_the_node_where_there_is_one() -> None:
    for asked, gpus in (
        ("--gpus=2", 2),
        ("--gpus=2 --ntasks=1", 2),
        ("--gpus=8 --nodes=2", 4),
        ("--gpus=8 --ntasks=8", None),
        ("--gpus=7 --nodes=2", None),
    ):
        assert read(f"#SBATCH {asked}\npython t.py").resources.gpus_per_node == gpus, asked


def test_what_follows_a_stray_word_keeps_its_value() -> None:
    options = read("#SBATCH --gres gpu: <n>\n#SBATCH --account <me>\n#SBATCH --qos a").options
    assert [(option.name, option.value) for option in options.all] == [
        ("gres", "gpu:"), ("account", "<me>"), ("qos", "a"),
    ]  # fmt: skip
