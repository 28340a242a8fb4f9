"""What careful people write, beside a slip that looks like it."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from tests.support.rules.script_findings import findings_in, rules_in, site_of

HEAD = {
    "lumi": "#!/bin/bash\n#SBATCH -A project_465000123 -p standard-g -N 1 --ntasks-per-node=8 "
    "--gpus-per-node=8 -c 7 --mem=480G -t 5:00:00\n",
    "karolina": "#!/bin/bash\n#SBATCH -A OPEN-30-12 -p qgpu -N 2 --gpus-per-node=8 "
    "--ntasks-per-node=8 -c 16 -t 12:00:00\n",
    "mn5": "#!/bin/bash\n#SBATCH -A ehpc123 -q acc_ehpc -N 1 -n 1 -c 80 --gres=gpu:4 -t 4:00:00\n",
}
DDP = "import os\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"
RUN = "torchrun --standalone --nproc_per_node=4 train.py --workers 7"
OWN = "export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID"
ONE = "torchrun --standalone --nproc_per_node=1 train.py"
MEET = "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$H:29400 x.py"
STATIC = 'torchrun --nnodes=2 --nproc_per_node=8 --node_rank="$me" --master_addr=$FIRST x.py'
GRID = (
    "X=(a b)\nS=(0 1)\nn=${#S[@]}\ni=$((SLURM_ARRAY_TASK_ID / n))\nj=$((SLURM_ARRAY_TASK_ID % n))\n"
    "echo ${X[$i]} ${S[j]}\n"
)
NAME = "u24r64f21m43t29-20260319_153422"
FOLDER = f"/appl/local/laifs/containers/lumi-multitorch-{NAME}"
TWO = "torchrun --standalone --nproc_per_node=2 train.py"


def beside(*lists: str) -> str:
    """Return launches beside each other, each with its GPUs."""
    return "".join(f"CUDA_VISIBLE_DEVICES={each} {TWO} &\n" for each in lists) + "wait\n"


def said(site: str, text: str, files: dict[str, str] | None = None) -> set[str]:
    return rules_in(HEAD[site] + text, site, {"train.py": DDP, **(files or {})})


@pytest.mark.parametrize(
    ("rule", "site", "good", "bad"),
    [
        ("misspelt-variable", "lumi", "source ./env.sh\necho $DATA_DIR\nDATA_DIRS=1\n",
         "echo $DATA_DIR\nDATA_DIRS=1\n"),
        ("misspelt-variable", "lumi", ". known.sh\necho $BASE $FROM_FILE\n",
         ". known.sh\necho $BASE_ $FROM_FILE\n"),
        ("misspelt-variable", "lumi", "source ./env.sh\necho $SLURM_PROCID\n",
         "source ./env.sh\necho $SLURM_PROCD\n"),
        ("launcher-tasks", "lumi", f"srun bash -c '{OWN}; {ONE}'\n", f"srun bash -c '{ONE}'\n"),
        ("launcher-tasks", "lumi", f"run() {{ {OWN}; {ONE}; }}\nexport -f run\nsrun bash -c run\n",
         f"run() {{ {OWN}; {ONE[:-9]}2 train.py; }}\nexport -f run\nsrun bash -c run\n"),
        ("launcher-tasks", "lumi", f"srun bash -c '{OWN}; {ONE}'\n",
         f"srun bash -c '{OWN}; {ONE.replace('--standalone ', '')}'\n"),
        ("unclosed-quote", "mn5", f"torchrun `# four of 'em` {RUN[8:]}\n",
         f"torchrun `# four {RUN[8:]}\n"),
        ("torchrun-processes", "mn5", f"torchrun \\\n `# all GPUs` \\\n {RUN[8:]}\n",
         "torchrun \\\n `# all GPUs` \\\n --standalone train.py\n"),
        ("mn5-visible-devices", "mn5", beside("0,1", "2,3"), beside("0,1", "1,2")),
        ("mn5-visible-devices", "mn5", beside("0", "1", "2,3"), beside("0", "1")),
        ("mn5-visible-devices", "mn5", beside("0,1", "2,3"), beside("0,1,2,3")),
        ("mn5-visible-devices", "mn5",
         f"go() {{\n  CUDA_VISIBLE_DEVICES=$1 {TWO} --lr $2 &\n}}\ngo 0,1 1\ngo 2,3 2\nwait\n",
         f"go() {{\n  CUDA_VISIBLE_DEVICES=$1 {TWO} --lr $2\n}}\ngo 0,1 1\ngo 2,3 2\n"),
        ("step-tasks", "mn5", "srun -n 2 -c 40 --multi-prog x.conf\n",
         "srun -n 2 -c 60 --multi-prog x.conf\n"),
        ("step-tasks", "mn5", "srun -n 4 -c 20 python train.py\n", "srun -n 4 python train.py\n"),
        ("mpirun-count", "karolina", "mpirun --map-by ppr:8:node:PE=16 python train.py\n",
         "mpirun --map-by ppr:4:node:PE=16 python train.py\n"),
        ("address-of-each-node", "karolina",
         f"srun -n 2 -N 2 bash -c 'H=$(scontrol show hostnames | head -1); {MEET}'\n",
         f"srun -n 2 -N 2 bash -c 'H=$(hostname -s); {MEET}'\n"),
        ("address-of-each-node", "karolina",
         f"export H=$(hostname)\nsrun -n 2 -N 2 bash -c '{MEET}'\n",
         f"srun -n 2 -N 2 bash -c 'export H=$HOSTNAME; {MEET}'\n"),
        ("rank-set-in-batch", "karolina",
         f"srun -n 2 -N 2 bash -c 'me=${{SLURM_NODEID:-0}}; {STATIC}'\n",
         f"me=${{SLURM_NODEID:-0}}\nL=({STATIC})\nsrun -n 2 -N 2 \"${{L[@]}}\" x.py\n"),
        ("array-beyond-list", "mn5", f"#SBATCH -a 0-3\n{GRID}", f"#SBATCH -a 0-5\n{GRID}"),
        ("array-beyond-list", "mn5",
         "#SBATCH -a 1-9\nX=(a b)\necho ${X[$((SLURM_ARRAY_TASK_ID % 2))]}\n",
         "#SBATCH -a 1-9\nX=(a b)\necho ${X[$((SLURM_ARRAY_TASK_ID % 3))]}\n"),
        ("array-beyond-list", "mn5",
         "#SBATCH -a 0-9\nX=(a b)\nif [ $Y ]; then i=0; fi\necho ${X[$i]} ${X[Z]}\n",
         "#SBATCH -a 0-9\nX=(a b)\ni=$SLURM_ARRAY_TASK_ID\necho ${X[i]}\n"),
    ],
)  # fmt: skip
def test_a_rule_tells_what_is_careful_from_a_slip(
    rule: str, site: str, good: str, bad: str
) -> None:
    files = {"known.sh": "BASE=/x\nFROM_FILE=$BASE/y\n"}
    assert rule not in said(site, good, files)
    assert rule in said(site, bad, files)


def test_a_limit_that_nobody_has_checked_is_no_error() -> None:
    text = HEAD["karolina"].replace("-t 12", "-t 72") + "srun hostname\n"
    site = site_of("karolina")
    held = {"partitions.qgpu.max_time"}
    assert held <= set(site.unverified)
    checked = site.model_copy(
        update={"unverified": [each for each in site.unverified if each not in held]}
    )
    for at, severity in ((site, "warning"), (checked, "error")):
        found = findings(read_script(text, site=at), at)
        assert [item.severity for item in found if item.rule == "time-limit"] == [severity]


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        ("mpirun-count", "mpirun -np 8 --map-by ppr:4:node:PE=16 python train.py\n", "ppr:8:node"),
        ("mpirun-count", "mpirun -np 8 python train.py\n", "Omit the number"),
    ],
)  # fmt: skip
def test_the_advice_fits_what_is_written(rule: str, text: str, words: str) -> None:
    name = text.split()[-1]
    program = f"import os\nimport torch\n\nrank = int(os.environ['OMPI_COMM_WORLD_{name}'])\n"
    every = findings_in(HEAD["karolina"] + text, "karolina", {"ranks.py": program})
    (found,) = (item for item in every if item.rule == rule)
    assert words in found.do


CONFIG = '{"train_batch_size": %s, "fp16": {"enabled": %s}, "bf16": {"enabled": true}}'
FULL = "#SBATCH -p dev-g -N 2 --ntasks-per-node=8 --cpus-per-task=7 --gpus-per-node=8\n"


def warned(site: str, text: str, **files: str) -> set[str]:
    """Return the errors and warnings about a script."""
    found = findings_in(f"#!/bin/bash\n{text}", site, files)
    return {item.rule for item in found if item.severity != "note"}


@pytest.mark.parametrize(
    ("rule", "site", "right", "wrong"),
    [
        ("account", "karolina", "#SBATCH -A OPEN-30-35", "#SBATCH -A OPEN_30_35"),
        ("unknown-directive", "roihu", "#SBATCH --argos=no", "#SBATCH --gpu-per-node=4"),
        ("partition-missing", "alps", "#SBATCH -A a06", None),
    ],
)  # fmt: skip
def test_a_rule_is_silent_about_what_works(
    rule: str, site: str, right: str, wrong: str | None
) -> None:
    assert rule not in warned(site, right)
    assert wrong is None or rule in warned(site, wrong)


def test_a_configuration_is_read_without_the_program_that_reads_it() -> None:
    line = FULL + "srun python train.py --deepspeed_config c.json"
    assert "fp16-and-bf16" in warned("lumi", line, **{"c.json": CONFIG % (32, "true")})
    assert "fp16-and-bf16" not in warned("lumi", line, **{"c.json": CONFIG % (32, "false")})
    assert "deepspeed-batch" in warned("lumi", line, **{"c.json": CONFIG % (24, "false")})
