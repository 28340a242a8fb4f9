"""A script becomes a job file whose own script does the same, or it is said what differs."""

import json
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.knowledge.bash import read_script
from lumitui.app.launch.from_script.from_script import adopt
from lumitui.app.launch.from_script.import_report import (
    ImportReport,
    import_lines,
    import_report,
    job_file_text,
)
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.own_scripts import import_script
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.attacks.spoilt_text import survive
from tests.support.jobs.sites.official_jobs import sites
from tests.support.program.command_line import Here, envelope, told
from tests.support.program.home import Home
from tests.support.systems.rows import Row, table

LUMI = """#!/bin/bash -l
#SBATCH --job-name=vit-ddp
#SBATCH --account=project_462000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --mem-per-gpu=60G
#SBATCH --time=12:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --exclude=nid005001
#SBATCH --signal=SIGUSR1@300
module load Local-LAIF lumi-aif-singularity-bindings
module load rclone
export NCCL_DEBUG=INFO OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK DATA=$SCRATCH/data
export HF_TOKEN=a-value-that-is-secret
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
SIF=/appl/local/laifs/containers/lumi-multitorch-old.sif
cp -r $DATA /tmp/data
srun --cpu-bind=mask_cpu:fe000000000000 singularity run -B /scratch/x:/data "$SIF" bash -c \\
  'export RANK=$SLURM_PROCID; python -u src/train.py --epochs 10 --out $DATA --name "a b"'
"""


def imported(text: str, site: Site, name: str = "job") -> ImportReport:
    report = import_report(read_script(text, site=site), site, name)
    written = parse_job(job_file_text(report, "x.sh"), "job")
    assert written == report.spec, "what is written is what was meant"
    return report


def lost(found: ImportReport) -> str:
    return "\n".join(f"{item.what}: {item.words}" for item in found.lost)


def test_a_script_of_lumis_kind_is_carried_over_and_the_rest_is_named() -> None:
    found = imported(LUMI, sites()["lumi"])
    spec = found.spec
    assert (spec.name, spec.account, spec.nodes) == ("vit-ddp", "project_462000001", 2)
    assert (spec.launcher, spec.script) == ("srun", "src/train.py")
    assert spec.args == ("--epochs", "10", "--out", "$SCRATCH/data", "--name", "a b")
    assert spec.env == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "7", "DATA": "$SCRATCH/data"}
    assert spec.secrets == ("HF_TOKEN",) and spec.signal == "USR1@300"
    assert spec.sbatch == ("--exclude=nid005001",)
    assert spec.container.image == "/appl/local/laifs/containers/lumi-multitorch-old.sif"
    assert spec.container.binds == ("/scratch/x:/data",)
    assert spec.cpus_per_task is None and spec.memory is None, "the profile asks for the same"
    for words in ("HF_TOKEN", "module load rclone", "cp -r"):
        assert words in lost(found)
    derived = {item.what.partition("=")[0] for item in found.derived}
    assert {"MASTER_ADDR", "RANK", "module load Local-LAIF"} <= derived
    binding = "srun --cpu-bind=mask_cpu:fe000000000000"
    profile = "variables of the site's profile"
    assert {item.what for item in found.changed} == {
        "OMP_NUM_THREADS", "$SCRATCH", binding, profile,
        "working folder", "srun's options", "--open-mode",
    }  # fmt: skip


def test_relative_paths_of_a_container_are_lost_since_the_job_starts_elsewhere() -> None:
    image = "../resources/lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif"
    text = LUMI.replace("/appl/local/laifs/containers/lumi-multitorch-old.sif", image)
    text = text.replace("-B /scratch/x:/data", "-B ../x.sqsh:/user-software:image-src=/ -B ../d:/d")
    found = imported(text, sites()["lumi"])
    container = found.spec.container
    assert (container.image, container.venv, container.binds) == (None, None, ())
    assert container.generation == "legacy", "its name still shows the modules that it needs"
    for what, key in ((image, "image"), ("-B ../x.sqsh", "venv"), ("-B ../d:/d", "binds")):
        line = next(line for line in lost(found).splitlines() if line.startswith(what))
        assert line.endswith(f"`container.{key}:`") or "`container.image:`;" in line


def test_variables_that_double_each_other_take_no_minutes() -> None:
    doubled = "\n".join(f"A{n}=$A{n - 1}$A{n - 1}" for n in range(1, 61))

    def take(first: bytes) -> None:
        text = LUMI.replace("SIF=", f"{first.decode()}\n{doubled}\nSIF=", 1)
        assert "A60=$A59$A59" in lost(imported(text, sites()["lumi"]))

    survive(iter((b"A0=x", b"A0=$SLURM_JOB_ID", b"A0=xxxxxxxxxx")), take)


def test_a_long_value_that_the_command_repeats_leaves_the_job_file_readable() -> None:
    text = LUMI.replace("SIF=", f"LONG={'x' * 60_000}\nSIF=", 1)
    found = imported(text.replace("--epochs", "$LONG $LONG --epochs"), sites()["lumi"])
    assert "$LONG: only the site knows its value" in lost(found)


def test_no_value_of_a_secret_is_repeated() -> None:
    more = [
        "MY_TOKEN=a-value-that-is-secret", "wandb login --relogin a-value-that-is-secret",
        "if true; then export API_KEY='a-value-that-is-secret'; fi",
        "HF_TOKEN=a-value-that-is-secret",
        "huggingface-cli login --token a-value-that-is-secret", "export HF_TOKEN",
        "curl -u me --password=a-value-that-is-secret https://x", "S=\"a-value-that-is-secret\"",
    ]  # fmt: skip
    more[-1] = more[-1].replace("S=", "export DB_PASSWORD=")
    script = LUMI.replace("SIF=", "\n".join([*more, "SIF="]), 1)
    found = imported(script, sites()["lumi"])
    assert "a-value-that-is-secret" not in repr(found)
    assert "a-value-that-is-secret" not in job_file_text(found, "x.sh")
    assert "wandb login --relogin …" in job_file_text(found, "x.sh")


def test_what_a_job_file_cannot_say_is_lost_loudly() -> None:
    text = LUMI.replace("#SBATCH --exclude", "#SBATCH --array=0-9 --wait\n#SBATCH --exclude")
    text = text.replace("src/train.py", "/users/me/train.py").replace("12:00:00", "720")
    found = imported(text, sites()["lumi"])
    assert "--array=0-9: list the values under `grid:` to start a run for each" in lost(found)
    assert "/users/me/train.py: it is outside the project" in lost(found)
    assert found.spec.script == "train.py" and found.spec.time == "12:00:00"
    assert not any("--wait" in option for option in found.spec.sbatch)


def test_a_line_that_sbatch_ignores_is_lost_and_has_one_fate() -> None:
    text = LUMI.replace("#SBATCH --exclude", "# SBATCH --mail-type=END\n#SBATCH --exclude")
    text = text.replace("--nodes=2", "--nodes=2 --frobnicate=1 stray") + "#SBATCH --mem=0\n"
    found = imported(text, sites()["lumi"])
    for line in ("# SBATCH --mail-type=END", "#SBATCH --mem=0"):
        assert f"{line}: sbatch ignores this line, so the job file omits it" in lost(found)
    assert "--frobnicate=1: sbatch has no option `--frobnicate=1`" in lost(found)
    assert "stray: `stray` is neither an option" in lost(found)
    whats = [one.what for part in (found.kept, found.derived, found.lost) for one in part]
    assert not {what for what in whats if what.startswith("#") and whats.count(what) > 1}
    assert not {one.what for one in found.derived} & {one.what for one in found.lost}


ARRAY = """module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SINGULARITYENV_PREPEND_PATH=/own/bin SINGULARITYENV_HF_HOME=/x
MASKS="0xfe"
MASKS="$MASKS,0xfe00"
MASKS="0xff"
LRS=(0.1 0.01)
TMP_CACHE=$(mktemp -d)
OUT=$TMP_CACHE/out
mkdir -p /scratch/x
srun --kill-on-bad-exit=0 python train.py --lr ${LRS[$SLURM_ARRAY_TASK_ID]}
"""


def test_each_note_is_true_of_what_the_script_does() -> None:
    head = LUMI[: LUMI.index("module load")].replace("#!/bin/bash -l", "#!/bin/bash")
    found = imported(
        head.replace("#SBATCH --exclude", "#SBATCH --open-mode=truncate\n#SBATCH --exclude")
        + ARRAY,
        sites()["lumi"],
    )
    derived = {item.what: item.words for item in found.derived}
    changes = {item.what: item.words for item in found.changed}
    assert derived["module use /appl/local/laifs/modules"] == (
        "the profile replaces it with `module load Local-LAIF lumi-aif-singularity-bindings`"
    )
    assert derived['MASKS="0xfe"'] == "a later assignment extends it"
    assert derived['MASKS="$MASKS,0xfe00"'] == "a later assignment overrides it"
    assert found.spec.env == {"SINGULARITYENV_PREPEND_PATH": "/own/bin", "HF_HOME": "/x"}
    assert "list its values under `grid:`" in lost(found)
    assert "LRS=(0.1 0.01): `args:` has no arrays" in lost(found) and "LRS" not in derived
    for what in ("TMP_CACHE=$(mktemp -d)", "OUT=$TMP_CACHE/out"):
        assert f"{what}: it differs in each job, because mktemp creates it" in lost(found)
    assert "mkdir -p /scratch/x: the program must create the folder" in lost(found)
    assert changes["first line"] == "#!/bin/bash → #!/bin/bash -l"
    assert changes["--open-mode=truncate"] == "truncate → append"
    assert "--open-mode=truncate" not in derived
    assert changes["working folder"].startswith("where sbatch is called → $RUN_DIR/code")
    assert changes["srun --kill-on-bad-exit=0"] == "0 → 1"
    assert changes["srun's options"] == "not set → --label"
    assert "TORCHINDUCTOR_CACHE_DIR" in changes["variables of the site's profile"]
    assert "PYTHONUNBUFFERED=1" in changes["variables of the site's profile"]


def test_the_arguments_are_kept_and_a_folder_that_no_module_needs_is_not_replaced() -> None:
    own = "module load Local-LAIF lumi-aif-singularity-bindings\n"
    text = LUMI.replace(own, "module use /appl/local/laifs/modules\n")
    found = imported(text.replace("train.py", "train.py --lr 0.1"), sites()["lumi"])
    assert found.spec.args[:2] == ("--lr", "0.1")
    (kept,) = (one.what for one in found.kept if one.words == "`args:`")
    assert kept.startswith("--lr 0.1")
    derived = {item.what: item.words for item in found.derived}
    assert derived["module use /appl/local/laifs/modules"] == "the job loads no module from it"


def test_the_profile_replaces_only_the_folder_of_its_own_modules() -> None:
    own = "module load Local-LAIF lumi-aif-singularity-bindings\n"
    text = LUMI.replace(own, f"module use /a\n{own}module use /b\nmodule use /c\n")
    derived = {one.what: one.words for one in imported(text, sites()["lumi"]).derived}
    assert derived["module use /a"].startswith("the profile replaces it with `module load Local-")
    for folder in ("/b", "/c"):
        assert derived[f"module use {folder}"] == "the job loads no module from it"


def test_an_image_that_the_script_names_stays_pinned_if_the_profiles_default_moves() -> None:
    image = sites()["lumi"].containers["laif"].image
    text = LUMI.replace("/appl/local/laifs/containers/lumi-multitorch-old.sif", image)
    assert imported(text, sites()["lumi"]).spec.container.image == image


AROUND = """#SBATCH --requeue
module load Local-LAIF/99
trap 'echo ended' EXIT
stage() { cp -r /a /tmp; }
srun python prepare.py --split
if [ -f ckpt/last.pt ]; then RESUME="--resume ckpt/last.pt"; fi
for lr in 1 2; do
  srun -c 3 python train.py $RESUME < input.txt 2>&1 | tee train.log
done
python eval.py
"""


def test_what_stands_around_the_program_is_lost_by_name() -> None:
    head = LUMI[: LUMI.index("module load")]
    found = imported(head + AROUND, sites()["lumi"])
    said = {item.what for item in found.lost}
    assert {
        "--requeue", "trap 'echo ended' EXIT", "stage() { cp -r /a /tmp; }",
        "srun python prepare.py --split",
        "if [ -f ckpt/last.pt ]; then RESUME=\"--resume ckpt/last.pt\"; fi",
        "for lr in 1 2; do", "< input.txt", "2>&1", "| tee train.log", "python eval.py",
    } <= said  # fmt: skip
    assert "srun --cpus-per-task: 3 → 7" in {f"{one.what}: {one.words}" for one in found.changed}


WRAPPED = """#!/bin/bash
#SBATCH --account=project_462000001 --partition=standard-g --nodes=2 --time=30
#SBATCH --gpus-per-node=8 --ntasks-per-node=8
SIF=/appl/local/containers/sif-images/lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif
cat << EOF > select_gpu
#!/bin/bash
export ROCR_VISIBLE_DEVICES=\\$SLURM_LOCALID
exec \\$*
EOF
chmod +x ./select_gpu
srun ./select_gpu {program}
"""


@pytest.mark.parametrize(
    "program",
    [
        "singularity exec $SIF bash -c '$WITH_CONDA; python -u train.py --steps 5'",
        "singularity exec $SIF bash -c '$WITH_CONDA; RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID "
        "python -u train.py --steps 5'",
        "singularity exec $SIF conda-python-distributed -u train.py --steps 5",
        "./train.py --steps 5",
    ],
)
def test_a_wrapper_that_selects_the_gpu_is_derived_and_its_program_kept(program: str) -> None:
    found = imported(WRAPPED.replace("{program}", program), sites()["lumi"])
    assert (found.spec.script, found.spec.args) == ("train.py", ("--steps", "5"))
    derived = {item.what.partition("=")[0] for item in found.derived}
    assert {"ROCR_VISIBLE_DEVICES", "./select_gpu", "chmod +x ./select_gpu"} <= derived
    assert lost(found) == ""


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('device = "cuda" if torch.cuda.is_available() else "cpu"', True),
        ('torch.cuda.set_device(0); device = "cuda"', True),
        ('device = "cuda"; torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))', False),
    ],
)
def test_ranks_that_would_share_gpu_0_without_their_wrapper_are_lost(
    line: str, named: bool, tmp_path: Path
) -> None:
    program = "singularity exec $SIF bash -c '$WITH_CONDA; python train.py --steps 5'"
    (tmp_path / "train.py").write_text(
        f"import os, torch\nimport torch.distributed as dist\ndist.init_process_group()\n{line}\n"
        "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).to(device))\n"
    )
    script = WRAPPED.replace("{program}", program)
    found = import_script(script.encode(), tmp_path / "x.sh", Sites([BUILT_IN]))
    assert ("GPU 0" in lost(found.report)) is named


@pytest.mark.parametrize("text", ['exec "$@"', "exec $*"])
def test_a_wrapper_beside_the_script_is_read_as_one_that_it_writes(
    text: str, tmp_path: Path
) -> None:
    here = f"#!/bin/bash\nexport ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\n{text}\n"
    (tmp_path / "select_gpu").write_text(here)
    head, _, end = WRAPPED.partition("cat <<")
    program = "singularity exec $SIF bash -c '$WITH_CONDA; python train.py --steps 5'"
    script = head + "srun" + end.partition("srun")[2].replace("{program}", program)
    found = import_script(script.encode(), tmp_path / "x.sh", Sites([BUILT_IN]))
    assert found.report.spec.script == "train.py" and lost(found.report) == ""
    derived = {item.what.partition("=")[0] for item in found.report.derived}
    assert {"ROCR_VISIBLE_DEVICES", "./select_gpu"} <= derived
    (tmp_path / "select_gpu").unlink()
    alone = import_script(script.encode(), tmp_path / "x.sh", Sites([BUILT_IN])).report
    assert alone.spec.script == "train.py" and "./select_gpu: the new launch" in lost(alone)


def test_what_else_a_wrapper_does_is_kept_or_lost() -> None:
    more = "export OMP_NUM_THREADS=3\nif true; then export X=1; fi\ncp a b\nexec numactl \\$*"
    text = WRAPPED.replace("{program}", "python train.py").replace("exec \\$*", more)
    found = imported(text, sites()["lumi"])
    assert found.spec.script == "train.py" and found.spec.env == {"OMP_NUM_THREADS": "3"}
    for words in ("numactl: the new launch does not have it", "cp a b: the job runs", "if true"):
        assert words in lost(found)


GUIDE = """#!/bin/bash
#SBATCH --account=project_462000001 --partition=standard-g --nodes=1 --time=15
#SBATCH --gpus-per-node=8 --ntasks-per-node=8
MASKS="0xfe,0xfe00,0xfe0000,0xfe000000,0xfe00000000,0xfe0000000000,0xfe000000000000,0xfe00000000000000"
srun --cpu-bind=mask_cpu=$MASKS singularity exec lumi.sif bash -c "export RANK=\\$SLURM_PROCID && \
  export LOCAL_RANK=\\$SLURM_LOCALID && source venv/bin/activate && python train.py"
"""


def test_each_part_of_a_chain_has_one_fate() -> None:
    found = imported(GUIDE, sites()["lumi"])
    assert {"RANK", "LOCAL_RANK"} <= {item.what.partition("=")[0] for item in found.derived}
    assert lost(found).count("RANK") == 0 and lost(found).count("source") == 1
    either = GUIDE.replace("source venv", "test -d venv && A=1 && source venv")
    assert "a job file has no conditions" in lost(imported(either, sites()["lumi"]))


def test_each_key_has_its_own_line_whatever_the_job_file_contains() -> None:
    found = imported(GUIDE.replace("lumi.sif", "/x/lumi.sif"), sites()["lumi"])
    plain = imported(GUIDE, sites()["lumi"])
    for report in (found, plain):
        text = job_file_text(report, "x.sh")
        assert all(f"\n{key}:" in text for key in report.keys)


CACHES = LUMI.replace(
    "export NCCL_DEBUG=INFO",
    "export MIOPEN_USER_DB_PATH=/tmp/db-$USER\n"
    "mkdir -p $MIOPEN_USER_DB_PATH\nmkdir -p $DATA\nexport NCCL_DEBUG=INFO",
)


def test_a_cache_on_the_node_becomes_the_profiles_folder_of_each_job() -> None:
    found = imported(CACHES, sites()["lumi"])
    assert "MIOPEN_USER_DB_PATH" not in found.spec.env
    changed = [item.words for item in found.changed if item.what == "MIOPEN_USER_DB_PATH"]
    assert changed == ["/tmp/db-$USER → ${NODE_TMP}/miopen-config (the profile's)"]
    assert "mkdir -p $MIOPEN_USER_DB_PATH" in {item.what for item in found.derived}
    assert "mkdir -p $DATA" in lost(found), "the profile does not set it"
    kept = {item.what.partition("=")[0] for item in found.kept}
    assert not kept & {item.what.partition("=")[0] for item in found.derived}, "one list each"


def test_what_became_no_key_is_not_kept() -> None:
    found = imported(GUIDE, sites()["lumi"])
    assert {item.words.strip("`:").partition(".")[0] for item in found.kept} <= found.keys.keys()
    assert "--gpus-per-node=8" in {item.what for item in found.derived}


def test_the_terminal_shows_the_new_value_of_what_changed() -> None:
    lines = " ".join(" ".join(import_lines(imported(GUIDE, sites()["lumi"]))).split())
    assert "srun --cpu-bind=mask_cpu=$MASKS: mask_cpu=0xfe," in lines
    assert "… → the profile's cores for each GPU" in lines


@pytest.mark.parametrize("stage", [1, 2, None])
def test_deepspeeds_configuration_becomes_its_key_and_the_strategy_of_its_stage(
    stage: int | None, tmp_path: Path
) -> None:
    words = "--lr 1 --deepspeed --deepspeed_config ds.json"
    config = {"train_batch_size": 4} | ({"zero_optimization": {"stage": stage}} if stage else {})
    (tmp_path / "ds.json").write_text(json.dumps(config))
    script = GUIDE.replace("train.py", f"train.py {words}").encode()
    found = import_script(script, tmp_path / "x.sh", Sites([BUILT_IN])).report
    spec = found.spec
    assert spec.deepspeed is not None and spec.deepspeed.config == "ds.json"
    assert spec.args == ("--lr", "1"), "lumitui adds the other words itself"
    assert spec.strategy == (f"zero{stage}" if stage else "ddp")
    whats = {item.what for item in (*found.changed, *found.lost)}
    assert not any("argument" in what or "deepspeed" in what for what in whats)


@pytest.mark.parametrize(
    ("line", "there", "home", "keys"),
    [
        # sub/run.sh runs in sub, the job file is beside it or above it.
        ("../train.py", "train.py", "sub", ("..", "sub", "train.py")),
        ("../train.py", "train.py", ".", (".", "sub", "train.py")),
        ("train.py", "sub/train.py", ".", (".", "sub", "sub/train.py")),
        # sub/run.sh runs in the folder above, where lumitui is called.
        ("sub/train.py", "sub/train.py", ".", (".", ".", "sub/train.py")),
        ("sub/train.py", "sub/train.py", "sub", ("..", ".", "sub/train.py")),
        # Where it is not, nobody knows.
        ("../train.py", "other.py", "sub", (".", ".", "train.py")),
    ],
)
def test_a_program_is_found_where_the_script_runs(
    line: str, there: str, home: str, keys: tuple[str, str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "sub").mkdir()
    (tmp_path / there).touch()
    monkeypatch.chdir(tmp_path)
    script, path = GUIDE.replace("train.py", line).encode(), Path("sub") / "run.sh"
    found = import_script(script, path, Sites([BUILT_IN]), home=Path(home)).report
    assert (found.spec.project, found.spec.workdir, found.spec.script) == keys
    assert ("outside the project" in lost(found)) == (there == "other.py")
    assert "depends on where you call sbatch" not in lost(found)
    if line == "train.py":
        (tmp_path / "train.py").touch()
        both = import_script(script, path, Sites([BUILT_IN]), home=Path(home)).report
        assert (both.spec.workdir, both.spec.script) == (".", "train.py")
        assert f"{tmp_path / there} has the same path; which one runs depends on" in lost(both)


def test_a_program_that_needs_the_folder_beside_it_gets_the_keys_that_send_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "05").mkdir()
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "images.hdf5").touch()
    (tmp_path / "05" / "train.py").write_text(
        "import sys\nsys.path.append('..')\nfrom resources.data import Images\n"
        "Images('../resources/images.hdf5'); open('../absent.txt')\n"
    )
    script = GUIDE.replace("train.py", "train.py --deepspeed_config ds.json")
    found = import_script(script.encode(), tmp_path / "05" / "x.sh", Sites([BUILT_IN])).report
    spec = found.spec
    assert (spec.project, spec.workdir, spec.script) == ("..", "05", "05/train.py")
    assert spec.deepspeed and spec.deepspeed.config == "05/ds.json", "paths of the project"
    assert [item.what for item in found.changed][-1:] == ["../resources/images.hdf5, ../resources"]
    assert "absent.txt" not in found.changed[-1].what, "an unused default often leads nowhere"


@pytest.mark.parametrize("name", ["", "requirements.txt", "uv.lock"])
def test_an_environment_of_the_site_becomes_venv_whose_file_the_preview_misses(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    if name:
        (tmp_path / name).touch()
    (tmp_path / "x.sh").write_text(GUIDE)
    found = import_script(GUIDE.encode(), tmp_path / "x.sh", Sites([BUILT_IN]))
    assert f"\nvenv: {name or 'requirements.txt'}\n" in found.text
    told = lost(found.report)
    asked = "which must list every package" if name else "in which you list its packages"
    assert "source venv/bin/activate: " in told and asked in told
    if not name:
        with pytest.raises(InputError, match=r"Cannot read the requirements") as error:
            with_requirements(found.report.spec, tmp_path)
        assert error.value.hint == "Write the packages into it, or remove `venv:`."


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("source /project/p/venv/bin/activate", "/project/p/venv"),
        ("source $HOME/envs/vit/bin/activate", "$HOME/envs/vit"),
        (". ~/envs/vit/bin/activate", "$HOME/envs/vit"),
        ("E=/project/p/venv\nsource $E/bin/activate", "/project/p/venv"),
        ("conda activate vit", "vit"),
    ],
)
def test_an_environment_whose_place_the_script_names_is_kept(line: str, kept: str) -> None:
    head = LUMI[: LUMI.index("module load")]
    found = imported(f"{head}{line}\nsrun python train.py\n", sites()["lumi"])
    assert found.spec.activate == (kept,) and found.spec.venv is None
    assert "activate" not in lost(found)
    inside = GUIDE.replace("venv/bin", "/venv/bin")
    assert imported(inside, sites()["lumi"]).spec.activate == ("/venv",)


def test_a_swap_and_a_quiet_purge_have_one_fate() -> None:
    head = LUMI[: LUMI.index("module load")]
    body = "ml -q purge\nmodule swap PrgEnv-cray PrgEnv-gnu\n"
    body += "srun singularity exec /appl/x.sif python train.py\n"
    found = imported(head + body, sites()["lumi"])
    notes = (*found.kept, *found.derived, *found.changed, *found.lost)
    said = [one.what for one in notes if {"purge", "swap", "PrgEnv-gnu"} & {*one.what.split()}]
    assert sorted(said) == ["ml -q purge", "module swap PrgEnv-cray PrgEnv-gnu"]


def test_another_version_of_a_module_than_the_profiles_is_lost() -> None:
    head = LUMI[: LUMI.index("module load")].replace("standard-g", "qgpu")
    site = sites()["karolina"]
    found = imported(f"{head}module load PyTorch/1.0\nsrun python train.py\n", site)
    assert "module load PyTorch/1.0: the profile loads PyTorch, in its default version" in lost(
        found
    )


@pytest.mark.parametrize(
    ("launch", "derived", "changed", "lost"),
    [
        (
            "torchrun --nnodes=$SLURM_NNODES --nproc_per_node=2 --max_restarts=3 --tee 3 train.py",
            {"torchrun --nnodes=$SLURM_NNODES"},
            {"torchrun --nproc_per_node=2: 2 → 8"},
            {"torchrun --max_restarts=3", "torchrun --tee 3"},
        ),
        (
            "accelerate launch --num_processes=16 --num_machines=1 --use_fsdp "
            "--mixed_precision bf16 --config_file a.yaml train.py",
            {"accelerate --num_processes=16"},
            {"accelerate --num_machines=1: 1 → 2"},
            {"accelerate --use_fsdp", "accelerate --mixed_precision bf16",
             "accelerate --config_file a.yaml"},
        ),
        (
            "deepspeed --include localhost:0,1 --module train.py",
            set(),
            set(),
            {"deepspeed --include localhost:0,1", "deepspeed --module"},
        ),
    ],
)  # fmt: skip
def test_an_option_of_the_launcher_is_derived_only_where_the_new_launch_has_the_same(
    launch: str, derived: set[str], changed: set[str], lost: set[str]
) -> None:
    text = LUMI[: LUMI.index("srun --cpu-bind")].replace("ntasks-per-node=8", "ntasks-per-node=1")
    options = imported(f"{text}srun {launch}\n", sites()["lumi"])
    own = launch.split()[0]
    assert {item.what for item in options.derived if item.what.startswith(own)} == derived
    of_launcher = (item for item in options.changed if item.what.startswith(own))
    assert {f"{item.what}: {item.words}" for item in of_launcher} == changed
    assert {item.what for item in options.lost if item.what.startswith(own)} == lost


def test_a_binding_that_the_site_has_not_is_lost_with_the_launcher_that_binds() -> None:
    site = sites()["lumi"].model_copy(update={"containers": {}, "default_container": None})
    text = LUMI[: LUMI.index("SIF=")].replace("ntasks-per-node=8", "ntasks-per-node=1")
    found = imported(f"{text}srun torchrun --numa-binding=exclusive train.py\n", site)
    (words,) = (item.words for item in found.lost if "numa-binding" in item.what)
    assert words == "this site's profile does not bind torchrun's ranks; `launcher: srun` does"


def test_a_script_that_trains_nothing_is_refused() -> None:
    job = read_script("#!/bin/bash\necho hello\n", site=sites()["lumi"])
    with pytest.raises(InputError, match="starts no program"):
        adopt(job, sites()["lumi"], "x", Notes())


def script_of(row: Row) -> str:
    options = [f"#SBATCH --{name}={text}".rstrip("=") for name, text in row.asks.items()]
    return "\n".join(["#!/bin/bash", *options, row.launch, ""])


SAID = {
    "image": "--", "arguments": "the variable became", "cores per task": "--cpus-per-task",
    "memory per node": "--mem", "seconds": "--time", "GPUs per node": "GPUs", "srun": "no srun",
    "partition": "--partition",
}  # fmt: skip
"""Of what differs, the words that a note must have; the rest follows from those."""
FOLLOWS = {"account", "ranks", "tasks per node", "launcher", "image"}
"""Not asked by the script, a placeholder there, or what a job of one rank for each GPU is."""


def test_the_scripts_of_all_sites_documents_are_imported_and_every_change_is_said() -> None:
    silent, refused = list[str](), list[str]()
    for row in table().rows:
        site = sites()[table().site_of(row)]
        try:
            found = imported(script_of(row), site, row.name)
        except InputError as error:
            refused.append(f"{row.name}: {error.message}")
            continue
        said = [*found.lost, *found.derived]
        asked = " ".join(row.asks)
        for item in found.changed:
            name = SAID.get(item.what, item.what)
            told_of = any(name in f"{one.what} {one.words}" for one in said)
            # What the script does not ask for, it leaves to the site; so does the note.
            unasked = item.words.startswith(("not set", "1 ")) or name.strip("-") not in asked
            if not (told_of or unasked or item.what in FOLLOWS):
                silent.append(f"{row.name}: {item.what}: {item.words}")
    assert silent == []
    assert len(refused) == 1 and "more than the 4 GPUs per node at mn5" in refused[0]


def test_the_verb_writes_the_job_file_once_and_never_over_one(
    here: Here, home: Home, tmp_path: Path
) -> None:
    script, job = tmp_path / "train.sh", tmp_path / "job.yaml"
    script.write_text(LUMI)
    done = here("import", str(script), "-o", str(job))
    assert done.returncode == 0, done.stderr
    assert "site: lumi, guessed from " in done.stderr and "lost: module load rclone" in done.stderr
    assert parse_job(job.read_text(), "job").site == "lumi"
    assert not home.settings.history.exists(), "an import needs no history"
    told(here("import", str(script), "--site", "lumi", "-o", str(job)), 2, "already")
    data = envelope(here("import", str(script), "--site", "lumi", "-o", f"{job}2", "--json"))
    assert {"kept", "derived", "changed", "lost"} <= set(data["data"])
    script.write_text("")
    told(here("import", str(script), "--site", "lumi"), 2, "is empty")


@pytest.mark.parametrize(
    ("program", "ranks"),
    [
        (None, 1),
        ("import torch\ntorch.nn.Linear(1, 1).to('cuda')\n", 1),
        ("import lightning\nlightning.Trainer(devices=8, num_nodes=1)\n", 8),
    ],
)
@pytest.mark.parametrize("launch", ["srun python3 t.py", "python3 t.py"])
def test_one_process_stays_one_process_unless_its_program_makes_ranks(
    program: str | None, ranks: int, launch: str, tmp_path: Path
) -> None:
    script = tmp_path / "job.sh"
    text = "#!/bin/bash\n#SBATCH -A project_462000001 -p small-g -N 1 -n 1 -c 8 -t 1:00:00\n"
    script.write_text(f"{text}#SBATCH --gpus-per-node=8 --mem=60G\n{launch}\n")
    if program is not None:
        (tmp_path / "t.py").write_text(program)
    found = import_script(script.read_bytes(), script, Sites([BUILT_IN]), "lumi", tmp_path).report
    assert (found.spec.gpus_per_node or 8) == ranks
    assert (found.spec.strategy == "single") == (ranks == 1)
    if ranks == 1:
        assert "the script starts one process" in lost(found)
        assert "`gpus_per_node: 8`, `launcher: srun` and `strategy: ddp`" in lost(found)
