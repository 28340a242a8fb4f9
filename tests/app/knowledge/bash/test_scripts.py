"""Job scripts as they are read: their parts, odd texts, and what each command gets."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.knowledge.rule import RULE_FAILED
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.process_counts import amount
from tests.support.rules.script_findings import findings_in, job_of, rules_in


def read(text: str, **files: str) -> ScriptJob:
    return job_of(f"#!/bin/bash\n{text}", files=files)


LUMI_SCRIPT = r"""#!/bin/bash -l
#SBATCH --job-name=x   # a comment
#SBATCH -N 4 --gpus-per-node=8
#SBATCH --tasks-per-node 8
#SBATCH -c7
#SBATCH --mem=480G -t 2-00:00:00 -p standard-g --account=project_465000001
module purge
module load LUMI PyTorch/2.3
SIF=/appl/local/x.sif
export NCCL_SOCKET_IFNAME=hsn MASTER_PORT=$((20000 + 5))
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
cat << EOF > select_gpu
#!/bin/bash
export ROCR_VISIBLE_DEVICES=\$SLURM_LOCALID
exec "\$@"
EOF
chmod +x ./select_gpu
CPU_BIND="mask_cpu:fe000000000000,fe00000000000000"
CMD="train.py --batch ${BATCH:-32}"
srun hostname
srun --cpu-bind=${CPU_BIND} ./select_gpu singularity exec -B /scratch:/scratch,/x "$SIF" bash -c "
  export RANK=\$SLURM_PROCID
  python -u $CMD --port $MASTER_PORT --addr $MASTER_ADDR
" &
wait
"""


def test_lumis_kind_of_script_is_read_to_its_program() -> None:
    job = job_of(LUMI_SCRIPT)
    assert job.troubles == ()
    asked = job.resources
    assert (asked.nodes, asked.tasks_per_node, asked.cpus_per_task, asked.gpus_per_node) == (
        4, 8, 7, 8,
    )  # fmt: skip
    assert (asked.partition, asked.seconds, asked.memory_gib) == ("standard-g", 172_800, 480)
    assert job.modules == ("LUMI", "PyTorch/2.3")
    assert [step.trains for step in job.steps] == [False, True]
    (step,) = job.training
    assert step.container is not None and step.container.image is not None
    assert step.container.image.known == "/appl/local/x.sif"
    assert [bind.known for bind in step.container.binds] == ["/scratch:/scratch", "/x"]
    assert step.program is not None and step.program.known == "train.py"
    assert [word.known for word in step.arguments] == [
        "--batch", "32", "--port", "20005", "--addr", "$MASTER_ADDR",
    ]  # fmt: skip
    assert (step.background, step.program_shell) == (True, "container")
    assert (job.rank.per_node, job.rank.world_size, job.rank.visible_gpus) == (8, 32, "one")


def test_each_variable_knows_its_shell_and_its_place() -> None:
    job = job_of(LUMI_SCRIPT)
    rank, visible = job.variable("RANK"), job.variable("ROCR_VISIBLE_DEVICES")
    assert rank is not None and visible is not None
    assert (rank.shell, rank.step) == ("container", 1)
    assert (rank.value, rank.at.line) == ("$SLURM_PROCID", 22)
    assert (visible.shell, visible.at.line) == ("task", 14)
    port = job.variable("MASTER_PORT")
    assert port is not None and (port.value, port.exported) == ("20005", True)


def test_variables_of_the_batch_shell_and_of_the_task_are_told_apart() -> None:
    job = read(
        """D=/data\nsrun bash -c "python t.py $D $SLURM_JOB_ID \\$SLURM_PROCID" x '$HOME'\n"""
    )
    words = job.training[0].arguments
    assert [(word.known, word.expanded_in) for word in words] == [
        ("/data", "task"),
        ("$SLURM_JOB_ID", "batch"),
        ("$SLURM_PROCID", "task"),
    ]


def test_a_variable_in_front_of_a_program_is_the_tasks_own() -> None:
    job = read("srun -n 4 bash -c 'RANK=$SLURM_PROCID python train.py'\n")
    variable = job.variable("RANK")
    assert variable is not None
    assert (variable.value, variable.shell, variable.step) == ("$SLURM_PROCID", "task", 0)


def test_a_variable_in_single_quotes_is_expanded_by_nobody() -> None:
    word = read("srun python t.py '$HOME/x' \"$HOME/x\"").training[0].arguments
    assert [each.expanded_in for each in word] == ["never", "batch"]


def test_a_variable_without_quotes_becomes_several_words() -> None:
    job = read('A=(--lr "1 2")\nB="--x 3"\nsrun python t.py $B "$B" "${A[@]}" ${A[@]}')
    assert [word.known for word in job.training[0].arguments] == [
        "--x", "3", "--x 3", "--lr", "1 2", "--lr", "1", "2",
    ]  # fmt: skip


def test_a_word_from_a_variable_stands_where_the_variable_is_set() -> None:
    job = read("ARGS='--nnodes 3 t.py'\nsrun torchrun $ARGS")
    option = job.training[0].launcher_options.get("nnodes")
    assert option is not None and (option.at.line, option.at.column) == (2, 7)


def test_what_only_some_branches_set_is_not_known() -> None:
    job = read('X=1\nif [ -n "$Y" ]; then X=2; else X=3; fi\nsrun python t.py $X')
    assert job.training[0].arguments[0].value is None


def test_functions_are_read_where_they_are_called() -> None:
    job = read('go() { srun -n "$1" python t.py "$@"; }\ngo 4 a')
    (step,) = job.training
    assert step.srun is not None and step.srun.value("ntasks") == "4"
    assert [word.known for word in step.arguments] == ["4", "a"]


def test_launchers_and_their_options_are_known() -> None:
    lines = {
        "srun torchrun --nproc_per_node=8 -m pkg.train --lr 1": ("torchrun", "pkg.train"),
        "python -m torch.distributed.run --nnodes 2 t.py": ("torchrun", "t.py"),
        "deepspeed --num_gpus 8 t.py --deepspeed c.json": ("deepspeed", "t.py"),
        "accelerate launch --num_processes 8 t.py": ("accelerate", "t.py"),
        "mpirun -np 8 --mca pml ucx python t.py": ("mpirun", "t.py"),
        "timeout -s INT 1h numactl -N 0 python -u t.py": ("plain", "t.py"),
        "srun ./wrap.sh python t.py": ("plain", "t.py"),
        "time env A=1 python3.11 -W ignore t.py": ("plain", "t.py"),
    }
    for line, (launcher, program) in lines.items():
        (step,) = read(line).steps
        assert (step.launcher, step.program and step.program.known) == (launcher, program), line


def test_what_only_looks_at_the_node_does_not_train() -> None:
    for line in ("srun hostname", "srun bash -c 'echo $HOSTNAME'", "srun rocm-smi",
                 "python -c 'import torch'", "srun tar xf d.tar -C /tmp",
                 "singularity exec x.sif pip list"):  # fmt: skip
        assert [step.trains for step in read(line).steps] == [False], line


def test_a_program_in_a_folder_that_only_the_job_knows_is_the_main_one() -> None:
    wrapped = """mpirun.mpich -n 4 bash -c '"$@" || { ended=$?; exit "$ended"; }' rank \\
  "$RUN_DIR"/code/run.sh --steps 2
"""
    (step,) = read(wrapped).training
    assert (step.launcher, step.mpirun) == ("mpirun", "mpirun.mpich")
    assert step.program is not None and step.program.known == "$RUN_DIR/code/run.sh"
    assert [word.known for word in step.arguments] == ["--steps", "2"]


def test_deepspeeds_launcher_of_one_node_is_deepspeed() -> None:
    line = "srun python -m deepspeed.launcher.launch --world_info=e30= --no_python python a.py 1"
    (step,) = read(line).training
    assert step.launcher == "deepspeed" and step.python
    assert step.program is not None and step.program.known == "a.py"


def test_a_script_that_the_batch_script_runs_has_steps_of_its_own() -> None:
    job = read(
        "bash sub/run.sh a", **{"sub/run.sh": "srun hostname\nexport X=1\nsrun python t.py $1\n"}
    )
    assert [step.trains for step in job.steps] == [False, True]
    (step,) = job.training
    assert (step.at.file, step.at.line) == ("sub/run.sh", 3)
    assert [word.known for word in step.arguments] == ["a"]


def test_what_a_command_of_a_step_gets_alone_is_kept() -> None:
    variable = read("srun bash -c 'OMP_NUM_THREADS=7 python t.py'").variable("OMP_NUM_THREADS")
    assert variable is not None
    assert (variable.value, variable.shell, variable.step) == ("7", "task", 0)


def test_each_commands_step_exists() -> None:
    job = read("bash -c 'echo a; X=1 true'\nX=$(srun hostname)\nbash <<EOF\nA=1 ls\nEOF\n")
    assert [command.step for command in job.commands if command.step is not None] == []


def test_operators_on_known_values_are_worked_out() -> None:
    words = {
        "${P##*/}": "c.tar.gz", "${P%%.*}": "/a/b/c", "${P%.gz}": "/a/b/c.tar",
        "${P#*/}": "a/b/c.tar.gz",
        "${P/b/x}": "/a/x/c.tar.gz", "${P:0:2}": "/a", "${#P}": "13", "${P^^}": "/A/B/C.TAR.GZ",
        "${NOTSET:-d e}": "d", "${P:+yes}": "yes", "$((2 * (3 + N)))": "14", "$((7 / 2))": "3",
    }  # fmt: skip
    for word, expected in words.items():
        job = read(f"P=/a/b/c.tar.gz\nN=4\nsrun python t.py {word}")
        assert job.training[0].arguments[0].known == expected, word
    unknown = read("P=/a/b\nsrun python t.py $((P / 0)) ${SLURM_CPUS_PER_TASK:-8} $SLURM_NNODES")
    assert [word.value for word in unknown.training[0].arguments] == [None, None, None]


_TWO = """#!/bin/bash
#SBATCH -A open-30-11 -p qgpu -N 2 --ntasks-per-node=1 --gpus=16 -t 1:00:00
#SBATCH hetjob
#SBATCH -A open-30-11 -p qcpu -N 1 -n 1
srun --het-group=1 python serve.py &
srun --het-group=0 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=$H:$PORT train.py
wait
"""


def test_only_the_first_component_is_the_request() -> None:
    job = job_of(_TWO, "karolina")
    assert (job.resources.partition, job.nodes) == ("qgpu", 2)
    assert [step.program.text for step in job.training if step.program] == ["train.py"]
    found = findings_in(_TWO, "karolina")
    assert [each.rule for each in found if each.severity != "note"] == []


def test_options_given_twice_in_one_component_are_still_found() -> None:
    assert "option-twice" in rules_in(_TWO.replace("#SBATCH hetjob\n", ""), "karolina")


def test_variables_of_slurm_have_the_numbers_of_the_request() -> None:
    job = job_of(_TWO, "karolina")
    assert amount(job, "$SLURM_GPUS") == 16
    assert amount(job, "${SLURM_GPUS_ON_NODE}") == 8
    assert amount(job, "$SLURM_NNODES") == amount(job, "2")
    assert amount(job, "$GPUS") is None


def test_the_total_of_gpus_is_no_number_of_ranks_on_a_node() -> None:
    one = _TWO.replace("--nproc_per_node=8", "--nproc_per_node=$SLURM_GPUS")
    assert "torchrun-processes" in rules_in(one, "karolina")


_SIGNS = list("\n\n\n \t;|&<>(){}[]$\"'`\\=#*!~")
_WORDS = (
    "$(( )) $( ${ <<EOF EOF if then fi for in do done case esac srun singularity exec bash -c "
    "python torchrun --nproc_per_node export A=1 A=( $A ${A:- ${A[@]} f() f eval source é"
)
WORDS = st.sampled_from(
    [*_SIGNS, *_WORDS.split(), "#SBATCH -N 2", "#SBATCH --", "\0", "\r\n", "\udcff"]
)


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_no_order_of_bashs_words_raises(text: str) -> None:
    job = job_of(text)
    assert {command.step for command in job.commands} <= {None, *range(len(job.steps))}
    assert RULE_FAILED not in rules_in(text)


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert RULE_FAILED not in rules_in(text)


def test_a_letter_of_any_script_is_a_letter() -> None:
    job = job_of("#!/bin/bash\n{\U000f7dc0w\x12\nΩ=1 srun 訓練.py é{x\n")
    assert [step.program.text for step in job.steps if step.program] == ["訓練.py"]


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "#!", "(" * 10_000 + "b" + ")" * 10_000, "$(" * 10_000, '"$(' * 5_000,
        "|" * 100_000, "a=(\n" * 50_000, "srun x\n" * 700_000, "X=1\n" + "X=$X$X$X$X\n" * 200,
        "f() { f; f; }\nf\n", "a && " * 5_000 + "b", "if a; then\n" * 2_000, "`" * 9_999,
        "\n".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}" for n in range(40)) + "\nf0\n",
    ],
    ids=lambda text: f"{text[:8]!r}*{len(text)}",
)  # fmt: skip
def test_no_size_raises_or_takes_long(text: str) -> None:
    job_of(text)


@pytest.mark.parametrize(
    "text",
    [
        '[[$X ["a" [ $Y] <<E\n' * 5_000,
        "rm -rf /x/$UNSET_NAME/* $OTHER_NAME\n" * 2_000,
        "".join(f"export VAR_{n}X=1\necho $VAR_{n}Y $SLURM_PROCD\n" for n in range(1_200)),
        "srun -n 1 ./a &\n" * 600,
    ],
    ids=lambda text: f"{text[:20]!r}*{len(text)}",
)
def test_the_rules_take_no_time_that_grows_with_the_square(text: str) -> None:
    start = time.process_time()
    assert RULE_FAILED not in rules_in(f"#!/bin/bash\n#SBATCH --mem=1G\n{text}")
    assert time.process_time() - start < 10
