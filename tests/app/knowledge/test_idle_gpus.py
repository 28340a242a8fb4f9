"""Processes that leave GPUs idle, and advice on cores that does not hide them."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.script_check import fixed
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.node import NodeShape
from tests.support.rules.script_findings import findings_in, site_of

HEAD = (
    "#!/bin/bash\n#SBATCH -A project_2001659 -p gpumedium -N 1 -t 1:00:00\n"
    "#SBATCH --gpus-per-node=gh200:4 --ntasks-per-node={tasks}\n#SBATCH --cpus-per-task={cores}\n"
)
LONE = "import torch\n\nmodel = torch.nn.Linear(1, 1).to('cuda')\n"


def of(rule: str, text: str, **files: str) -> list[Finding]:
    found = findings_in(text, "roihu", {f"{name}.py": each for name, each in files.items()})
    return [each for each in found if each.rule == rule]


@pytest.mark.parametrize("launch", ["srun python3 t.py", "python3 t.py"])
def test_one_process_on_four_gpus_is_told_of_the_idle_gpus_and_not_to_take_more_cores(
    launch: str,
) -> None:
    text = HEAD.format(tasks=1, cores=32) + f"{launch}\n"
    (known,) = of("more-tasks-than-gpus", text, t=LONE)
    assert (
        known.severity == "warning" and "starts one process, which uses one GPU." in known.message
    )
    assert "or request" not in known.do and known.do.startswith("Request one GPU, or start a rank")
    (unknown,) = of("more-tasks-than-gpus", text)
    assert unknown.severity == "note" and "unless the program" in unknown.message
    assert not of("idle-cores", text, t=LONE) and not of("idle-cores", text)


def test_one_process_on_two_gpus_of_a_node_is_told_of_the_idle_one() -> None:
    text = HEAD.replace("gh200:4", "gh200:2").format(tasks=1, cores=32) + "srun python3 t.py\n"
    (known,) = of("more-tasks-than-gpus", text, t=LONE)
    assert known.message.startswith("The job has 2 GPUs, but starts one process")


@pytest.mark.parametrize(
    ("launch", "program"),
    [
        ("srun python3 t.py", "import torch\ntorch.multiprocessing.spawn(main, nprocs=4)\n"),
        ("srun python3 t.py", "import lightning\nlightning.Trainer(devices=4)\n"),
        ("python3 t.py", "model = torch.nn.DataParallel(model)\n"),
        ("python3 t.py", "model = AutoModel.from_pretrained('m', device_map='auto')\n"),
        ("python3 t.py --tensor-parallel-size 4", LONE),
        ("python3 -m vllm.entrypoints.openai.api_server", LONE),
        ("srun --gpus=1 python3 t.py", LONE),
        ("CUDA_VISIBLE_DEVICES=0 python3 t.py &\npython3 t.py &\nwait", LONE),
        ("torchrun --standalone --nproc_per_node=4 t.py", LONE),
    ],
)  # fmt: skip
def test_a_process_that_may_use_all_gpus_is_none_of_those(launch: str, program: str) -> None:
    text = HEAD.format(tasks=1, cores=288) + f"{launch}\n"
    assert not of("more-tasks-than-gpus", text, t=program)


def test_the_fix_of_idle_cores_reaches_srun_too() -> None:
    text = HEAD.format(tasks=4, cores=8) + "srun --cpus-per-task=8 python3 t.py\n"
    batch, step = of("idle-cores", text)
    assert (batch.at.line, step.at.line) == (4, 5)
    better, _count = fixed(text, [batch, step])
    assert better.count("--cpus-per-task=72") == 2 and not of("idle-cores", better)
    (left,) = of("idle-cores", fixed(text, [batch])[0])
    assert left.at.line == 5, "a fix of #SBATCH alone is not enough"


@pytest.mark.parametrize(
    ("tasks", "cores", "gpus", "speaks"),
    [(2, 8, 2, True), (1, 16, 2, False), (2, 72, 2, False), (1, 8, 1, True)],
    ids=["a rank each", "one process on both", "all cores", "one GPU"],
)
def test_idle_cores_of_a_node_with_few_gpus_are_named_unless_a_process_leaves_a_gpu_idle(
    tasks: int, cores: int, gpus: int, speaks: bool
) -> None:
    roihu = site_of("roihu")
    each = {"gpus": gpus, "cores": 72 * gpus, "gpu_cores": (), "gpu_numa": (), "gpu_bus": ()}
    node = NodeShape.model_validate(roihu.node.model_dump() | each)
    site = roihu.model_copy(update={"node": node})
    text = HEAD.format(tasks=tasks, cores=cores).replace("gh200:4", f"gh200:{gpus}")
    job = read_script(f"{text}srun python3 t.py\n", site=site, files={"t.py": LONE})
    found = [one for one in findings(job, site) if one.rule == "idle-cores"]
    assert bool(found) is speaks
    if found:
        what = f"all {gpus} GPUs" if gpus > 1 else "the GPU"
        words = f"The job takes {what} of each node, but only {tasks * cores} of its"
        assert found[0].message.startswith(words) and found[0].do == "Write --cpus-per-task=72."


def test_the_advice_on_few_cores_is_enough_at_once() -> None:
    site = site_of("roihu").model_copy(update={"srun_inherits_cpus": False})
    text = HEAD.format(tasks=4, cores=1).replace("#SBATCH --cpus-per-task=1\n", "")
    advised = f"{text}#SBATCH --cpus-per-task=72\nexport SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n"
    few, done = (
        {each.rule: each.do for each in findings(read_script(job, site=site), site)}
        for job in (f"{text}srun python3 t.py\n", f"{advised}srun python3 t.py\n")
    )
    assert few["few-cores"] == (
        "Write #SBATCH --cpus-per-task=72 and, before srun, "
        "`export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK`."
    )
    assert not {"few-cores", "srun-cores"} & done.keys()


@pytest.mark.parametrize(
    ("launch", "wrong"),
    [
        ("export LOCAL_RANK=0\nsrun python3 t.py", True),
        ("srun bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=0; python3 t.py'", True),
        ("srun bash -c 'export LOCAL_RANK=$SLURM_LOCALID; python3 t.py'", False),
        ("srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID LOCAL_RANK=0 python3 t.py'", False),
        ("srun --gpus-per-task=1 bash -c 'LOCAL_RANK=0 python3 t.py'", False),
    ],
)
def test_the_local_rank_0_in_all_ranks_is_one_gpu_for_all(launch: str, wrong: bool) -> None:
    found = of("one-gpu-for-all", HEAD.format(tasks=4, cores=72) + f"{launch}\n")
    assert [each.severity for each in found] == ["error"] * wrong


def test_a_wrong_mask_names_the_site_in_its_command() -> None:
    text = HEAD.format(tasks=4, cores=72) + "srun --cpu-bind=map_cpu:72,0,144,216 python3 t.py\n"
    (order,) = of("mask-order", text)
    assert "`lumitui bind roihu` prints" in order.do
