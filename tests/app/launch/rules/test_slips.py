"""Slips in a job file that no script has: paths of a laptop, outputs of a grid, secrets, ranks."""

import re
from pathlib import Path

import pytest

from lumitui.app.job.grid import cells
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.rules.mistakes import shared_outputs
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import BUILT_IN, Sites

SITES = Sites([BUILT_IN])
JOB = """name: vit
site: lumi
account: project_462000001
partition: standard-g
nodes: 1
time: "01:00:00"
script: train.py
"""


def said(files: dict[str, str] | None = None, /, **changes: object) -> dict[str, str]:
    spec = changed(parse_job(JOB, "job.yaml"), changes, "t")
    site = SITES.load(spec.site)
    return {one.rule: f"{one.severity} {one.message} {one.do}"
            for one in findings(compose(spec, site), site, files)}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"args": ["--data", "/Users/anna/imagenet"]}, "laptop-path"),
        ({"args": ["--data=C:\\data\\imagenet"]}, "laptop-path"),
        ({"env": {"HF_HOME": "/Users/anna/.cache/huggingface"}}, "laptop-path"),
        ({"container": {"binds": ["/Users/anna/data:/data"]}}, "laptop-path"),
        ({"links": {"data": "/content/drive/MyDrive/data"}}, "laptop-path"),
        ({"container": {"image": "../images/pt.sif"}}, "relative-path"),
        ({"container": {"image": "pt.sif"}}, "relative-path"),
        ({"container": {"venv": "../extra.sqsh"}}, "relative-path"),
        ({"container": {"binds": ["../data:/data"]}}, "relative-path"),
        ({"container": {"none": True}}, "bare-python"),
        ({"sbatch": ["--dependency=afterok:123456"]}, "dependency-number"),
        ({"ship_secrets": ["*"]}, "ship-all-secrets"),
        ({"ship_secrets": ["**/*"]}, "ship-all-secrets"),
        ({"container": {"image": "~/pt.sif"}}, "literal-tilde"),
        ({"container": {"image": "$HOME/pt.sif"}}, "literal-variable"),
        ({"env": {"HF_HOME": "~/hf"}}, "literal-tilde"),
        ({"env": {"HF_HOME": "/tmp/hf-$SLURM_JOB_ID"}}, "literal-variable"),
        ({"env": {"MIOPEN_USER_DB_PATH": "/tmp/miopen-alice"}}, "cache-name-shared"),
        ({"nodes": 4, "env": {"FI_PROVIDER": "tcp"}}, "network-off"),
        ({"time": "00:03:00", "signal": "USR1@120"}, "signal-early"),
    ],
)
def test_a_slip_is_named(changes: dict[str, object], rule: str) -> None:
    assert rule in said(**changes)


BARE = SITES.load("lumi").model_copy(
    update={"default_container": None, "python_on_compute_nodes": False}
)
"""A site that runs jobs without a container, on nodes that have no Python."""


@pytest.mark.parametrize(
    ("changes", "speaks"),
    [
        ({}, True),
        ({"venv": ["einops"]}, True),
        ({"modules": ["cray-python"]}, False),
        ({"container": {"generation": "laif"}}, False),
        ({"env": {"PATH": "/projappl/project_462000001/env/bin:/usr/bin"}}, False),
        ({"script": "run.sh"}, False),
    ],
)
def test_a_job_for_nodes_without_python_is_warned(changes: dict[str, object], speaks: bool) -> None:
    spec = changed(parse_job(JOB, "job.yaml"), changes, "t")
    found = [one for one in findings(compose(spec, BARE), BARE) if one.rule == "bare-python"]
    assert bool(found) is speaks
    for one in found:
        assert "The nodes of lumi have no python3" in one.message and "127" in one.message
        assert "`container: {generation: laif}`" in one.do and "`modules:" in one.do
        assert (one.severity, one.at.field) == ("warning", "modules"), "`f` opens this row"
        assert "add it to the profile: `modules:" in one.do


def test_an_image_that_the_nodes_lack_is_not_advised() -> None:
    without = {name: one.model_copy(update={"image": ""}) for name, one in BARE.containers.items()}
    site = BARE.model_copy(update={"containers": without})
    (found,) = [
        one
        for one in findings(compose(parse_job(JOB, "job.yaml"), site), site)
        if one.rule == "bare-python"
    ]
    assert "`container: {image: /path.sif}`" in found.do


@pytest.mark.parametrize(
    "changes",
    [
        {"args": ["--data", "/scratch/project_462000001/Users/anna"]},
        {"args": ["--template", "a:b", "--ratio", "C:2"]},
        {"container": {"binds": ["/scratch/project_462000001/data:/Users/data"]}},
        {"container": {"none": True}, "env": {"PYTHONPATH": "/projappl/project_462000001/env"}},
        {"container": {"none": True}, "script": "run.sh"},
        {"container": {"none": True}, "modules": ["pytorch/2.7"]},
        {"ship_secrets": ["config/dev.env"]},
        {"ship_secrets": ["keys/*.pem"]},
        {"nodes": 4, "env": {"NCCL_IB_DISABLE": "1"}},
    ],
)
def test_what_only_looks_like_one_is_none(changes: dict[str, object]) -> None:
    wrong = [words for words in said(**changes).values() if not words.startswith("note")]
    assert wrong == []


def grid(lines: str) -> list[str]:
    spec = parse_job(JOB + lines, "job.yaml")
    return [one.message for one in shared_outputs(cells(spec))]


def test_runs_of_a_grid_that_write_to_one_place_are_named() -> None:
    for option in ("--out", "--output_dir", "--save-dir", "--checkpoint-path", "--ckpt_dir"):
        lines = f"args: [{option}, /scratch/p/out]\ngrid: {{lr: [1, 2]}}\n"
        assert [option in message for message in grid(lines)] == [True]
        assert len(grid(f"args: [{option}=/scratch/p/out]\ngrid: {{lr: [1, 2]}}\n")) == 1


@pytest.mark.parametrize(
    "lines",
    [
        "args: [--out, results]\ngrid: {lr: [1, 2]}\n",
        "args: [--data, /scratch/p/out]\ngrid: {lr: [1, 2]}\n",
        "args: [--out, /scratch/p/a]\ngrid: {--out: [/scratch/p/a, /scratch/p/b]}\n",
        "args: [--out, /scratch/p/a]\ngrid: {lr: [1]}\n",
        "args: [--out, /scratch/p/a]\n",
        "args: [--log-level, /x]\ngrid: {lr: [1, 2]}\n",
    ],
)
def test_runs_that_write_apart_are_not(lines: str) -> None:
    assert grid(lines) == []


RUN = "#!/bin/bash\ntorchrun --standalone --nproc_per_node=8 train.py --epochs 3\n"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (RUN, {}),
        (RUN, {"launcher": "torchrun"}),
        ("srun -n 8 python train.py\n", {}),
        ("exec deepspeed --num_gpus 8 train.py\n", {}),
        ("accelerate launch --num_processes 8 train.py\n", {}),
    ],
)
def test_a_script_that_starts_ranks_in_each_rank_is_named(
    text: str, changes: dict[str, object]
) -> None:
    found = said({"run.sh": text}, script="run.sh", **changes)
    assert "script: train.py" in found["launcher-in-each-task"]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("#!/bin/bash\n# torchrun train.py\nexec python train.py\n", {}),
        ('echo "torchrun is not used"\npython train.py\n', {}),
        ('if [ "$SLURM_LOCALID" = 0 ]; then torchrun --nproc_per_node=8 train.py; fi\n', {}),
        ("torchrun --nproc_per_node=1 train.py\n", {}),
        (RUN, {"gpus_per_node": 1, "partition": "small-g"}),
    ],
)
def test_a_script_that_starts_one_program_is_not(text: str, changes: dict[str, object]) -> None:
    found = said({"run.sh": text}, script="run.sh", **changes)
    assert "launcher-in-each-task" not in found


@pytest.mark.parametrize(
    ("changes", "rule", "words"),
    [
        ({"time": "5-00:00:00"}, "time-limit", "`chain: 3`"),
        ({"partition": "dev-g", "time": "12:00:00"}, "time-limit", "Use standard-g"),
        ({"sbatch": ["--array=0-9"]}, "own-option", "`grid:`"),
        ({"sbatch": ["-W"]}, "own-option", "Omit --wait"),
        ({"sbatch": ["--mem=60G"]}, "own-option", "Use `memory:`"),
        ({"sbatch": ["--output=logs/%j.out"]}, "own-option", "Omit --output"),
        ({"env": {"HF_HOME": "/users/anna/hf"}}, "lumi-hf-home", "Remove HF_HOME from `env:`"),
        ({"env": {"ROCR_VISIBLE_DEVICES": "0"}}, "visible-devices", "LOCAL_RANK 1 or higher"),
        ({"container": {"image": "~/pt.sif"}}, "literal-tilde", "Write the full path"),
        ({"launcher": "plain"}, "idle-gpus", "Set `launcher: srun` for a rank on each GPU"),
        ({"launcher": "plain"}, "idle-gpus", "`launcher: plain` starts one rank"),
        (
            {"strategy": "single", "gpus_per_node": 1},
            "idle-gpus",
            "Set `strategy: ddp` and `gpus_per_node: 8`",
        ),
        ({"gpus_per_node": 1}, "idle-gpus", "Use all 8"),
        ({"proof": "strict", "binding": "none"}, "strict-unchecked", "Omit `binding: none`"),
        ({"proof": "strict", "partition": "small-g"}, "strict-unchecked", "on whole nodes"),
        (
            {"partition": "small-g", "gpus_per_node": 1, "memory": "480G"},
            "share-memory",
            "Omit `memory:`",
        ),
        ({"sbatch": ["--cpu-bind=none"]}, "unknown-directive", "Omit it; `binding:`"),
        ({"sbatch": ["--label"]}, "unknown-directive", "Omit it."),
    ],
)
def test_a_finding_says_what_to_write(changes: dict[str, object], rule: str, words: str) -> None:
    assert words in said(**changes)[rule]


def test_the_fix_for_one_rank_on_a_whole_node_does_not_start_more_ranks() -> None:
    spec = changed(parse_job(JOB, "job.yaml"), {"launcher": "plain"}, "t")
    site = SITES.load(spec.site)
    (one,) = [one for one in findings(compose(spec, site), site) if one.rule == "idle-gpus"]
    assert one.fix is not None and (one.fix.at.field, one.fix.value) == ("partition", "small-g")
    assert "For one rank, use the shared partition small-g" in one.do


@pytest.mark.parametrize(
    "changes",
    [
        {"launcher": "plain"},
        {"strategy": "single"},
        {"proof": "strict", "binding": "none"},
        {"partition": "small-g", "gpus_per_node": 1, "memory": "480G"},
    ],
)
def test_a_fix_that_is_offered_is_taken_and_ends_its_finding(changes: dict[str, object]) -> None:
    spec = changed(parse_job(JOB, "job.yaml"), changes, "t")
    site = SITES.load(spec.site)
    (one,) = [one for one in findings(compose(spec, site), site)
              if one.rule in ("idle-gpus", "strict-unchecked", "share-memory")]  # fmt: skip
    assert one.fix is not None
    left = {
        key: value for key, value in (changes | {one.fix.at.field: one.fix.value}).items() if value
    }
    better = changed(parse_job(JOB, "job.yaml"), left, "t")
    assert one.rule not in {each.rule for each in findings(compose(better, site), site)}


GROUP = """import os, argparse, torch
import torch.distributed as dist
p = argparse.ArgumentParser()
p.add_argument("--local_rank", type=int)
a = p.parse_args()
torch.cuda.set_device(a.local_rank)
os.environ["MASTER_PORT"] = "29500"
{group}
"""


@pytest.mark.parametrize(
    ("group", "changes", "rule", "words"),
    [
        ('dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500")', {"nodes": 2},
         "master-in-program", "Omit init_method: MASTER_ADDR is already set"),
        ('os.environ["MASTER_ADDR"] = "localhost"', {"nodes": 2},
         "master-in-program", "Remove the line: MASTER_ADDR is already set"),
        ("torch.multiprocessing.spawn(main, nprocs=8)", {},
         "spawn-in-ranks", "with the rank from the environment."),
    ],
)  # fmt: skip
def test_what_is_said_of_a_program_can_be_done_in_a_job_file(
    group: str, changes: dict[str, object], rule: str, words: str
) -> None:
    assert words in said({"train.py": GROUP.replace("{group}", group)}, **changes)[rule]


def test_an_option_that_is_refused_is_not_named_a_second_time() -> None:
    assert "option-twice" not in said(sbatch=["--output=logs/%j.out"])


@pytest.mark.parametrize("key", ["binds: [/capstor/data:/data]", "venv: /capstor/env.sqsh"])
def test_binds_are_refused_where_containers_take_none(key: str) -> None:
    text = JOB.replace("lumi", "alps").replace("standard-g", "normal").replace("project_", "a")
    spec = parse_job(f"{text}container:\n  image: /capstor/pt.toml\n  {key}\n", "job.yaml")
    with pytest.raises(InputError, match="no effect at alps"):
        compose(spec, SITES.load("alps"))


def test_a_call_without_binds_stays_whole_with_staged_data(tmp_path: Path) -> None:
    text = JOB.replace("lumi", "alps").replace("standard-g", "normal").replace("project_", "a")
    text += f"container: {{image: /capstor/pt.toml}}\nstage: {{DATA: {tmp_path}}}\n"
    script = compose(parse_job(text, "job.yaml"), SITES.load("alps")).script
    assert '--environment "$SIF"' in script


def test_a_job_file_without_an_account_is_told_so() -> None:
    assert "error The job file names no account, but lumi" in said(account="none")["account"]


@pytest.mark.parametrize(
    ("name", "sets"),
    [("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), ("ROCR_VISIBLE_DEVICES", "it")],
)
def test_a_list_of_gpus_names_the_variable_that_slurm_sets_in_its_place(
    name: str, sets: str
) -> None:
    texts = " ".join(said(env={name: "0,1,2,3,4,5,6,7"}).values())
    assert f"Remove {name} from `env:`: Slurm sets {sets}, " in texts


def trained(*args: str, trainer: str = "ddp") -> list[Finding]:
    strategy = {"lightning_trainer": "lightning"}.get(trainer, trainer)
    keys = {"script": None, "trainer": trainer, "strategy": strategy, "args": list(args)}
    spec, site = changed(parse_job(JOB, "job.yaml"), keys, "t"), SITES.load("lumi")
    return [one for one in findings(compose(spec, site), site) if one.rule == "unknown-argument"]


def test_an_argument_that_a_bundled_trainer_lacks_is_refused_before_the_send() -> None:
    (one,) = trained("--epochs", "2", "--learning-rate=0.1")
    assert one.severity == "error" and one.do == "Write --lr instead of --learning-rate."
    assert one.fix and one.fix.value == ("--epochs", "2", "--lr=0.1")
    assert trained("--lr", "1e-3", "--data=$STAGE_DATA", "--recompute", "-h") == []
    assert [one.fix for one in trained("--shard-size", "8")] == [None]
    assert trained("--shard-size", "8", trainer="fsdp") == []
    for trainer in ("ddp", "fsdp", "lightning_trainer"):
        assert len(trained("--deepspeed_config", "x.json", trainer=trainer)) == 1, trainer
        assert trained("--epochs", "2", trainer=trainer) == []


@pytest.mark.parametrize(
    ("args", "what", "do", "fixed"),
    [
        (["epochs=3"], "takes no argument 'epochs=3' here", "Write --epochs=3.", ("--epochs=3",)),
        (["--tf32", "yes"], "takes no argument 'yes' here", "Remove it", None),
        (["--tf32=yes"], "--tf32 takes no value", "Write only --tf32.", ("--tf32",)),
        (["--steps", "5", "--lr"], "--lr lacks a value", "Write a value after it", None),
        (["--lr", "--steps", "5"], "--lr lacks a value", "Write a value after it", None),
        (["--batch-size"], "--batch-size lacks a value", "Write a value after it", None),
        (
            ["--optimizer", "sdg"],
            "--optimizer sdg",
            "Write --optimizer sgd.",
            ("--optimizer", "sgd"),
        ),
        (["--save=shard"], "--save shard", "Write --save sharded.", ("--save=sharded",)),
        (["--precision", "x"], "--precision x", "Write --precision fp32 or bf16.", None),
        (["--epochs", "1.5"], "--epochs 1.5", "'1.5' is not a whole number of at least 1.", None),
        (["--seed", "x"], "--seed x", "Correct it: invalid int value: 'x'.", None),
        (["--lr", "-1"], "--lr -1", "'-1' is not a number of at least 0.", None),
        (["--accum", "4"], "does not define --accum", "Write --accumulate", ("--accumulate", "4")),
    ],
)
def test_the_arguments_of_a_bundled_trainer_are_checked_by_its_own_parser(
    args: list[str], what: str, do: str, fixed: tuple[str, ...] | None
) -> None:
    (one,) = trained(*args)
    assert what in one.message and do in one.do and one.severity == "error"
    assert (one.fix.value if one.fix else None) == fixed


def test_a_model_that_no_bundled_trainer_has_is_refused_with_the_nearest() -> None:
    (one,) = trained("--model", "resnet51")
    assert one.severity == "error" and one.do == "Write --model resnet50."
    (far,) = trained("--model=xyz", trainer="fsdp")
    table = (TRAINER_FOLDER / "models/table.py").read_text()
    names = re.findall(r'^    "([\w.-]+)": ', table, re.MULTILINE)
    assert sorted(far.do.removeprefix("Write --model ")[:-1].split(" or ")) == sorted(names)
    assert [trained("--model", name) for name in names] == [[]] * len(names)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {"signal": "USR1@300"},
            "error USR1@300 is due 300 s before .*: as soon as the job",
        ),
        ({"signal": "B:USR1@120"}, "warning B:USR1@120 is due .* in the first half"),
        ({"signal": "USR1@90"}, ""),
        ({"script": None, "trainer": "ddp"}, ""),
        ({"script": None, "trainer": "ddp", "time": "00:01:00"}, "error USR1@60 is due"),
    ],
)
def test_a_stop_signal_due_before_the_middle_of_the_job_is_named(
    changes: dict[str, object], found: str
) -> None:
    report = said(None, **{"time": "00:03:00"} | changes)
    assert re.match(found, report.get("signal-early", "")) and bool(found) == (
        "signal-early" in report
    )
