"""What follows from a job file and a profile."""

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.job.spec import changed
from lumitui.app.launch.compose import compose
from lumitui.app.launch.draft.job_form import fields, read
from lumitui.app.launch.draft.node_map import bind_text
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.launch.layout import rank_bindings
from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import MACHINERY
from tests.support.attacks.hostile_text import fuzzed, passable
from tests.support.guide.scripts import MASKS, RESERVED_MASK
from tests.support.jobs.sites.lumi_job import JOB, LUMI, job


@given(ranks=st.integers(1, 8))
def test_masks_have_no_reserved_core_and_no_overlap_and_are_one_a_rank(ranks: int) -> None:
    launch = compose(job(gpus_per_node=ranks), LUMI)
    masks = [int(mask, 16) for mask in launch.layout.masks]
    assert len(masks) == ranks == launch.layout.tasks_per_node
    assert all(mask & RESERVED_MASK == 0 and mask for mask in masks)
    together = 0
    for mask in masks:
        assert together & mask == 0
        together |= mask
    assert launch.layout.masks == MASKS[:ranks]
    assert f'CPU_BIND_MASKS="{",".join(MASKS[:ranks])}"' in launch.script


@st.composite
def nodes_of_any_shape(draw: st.DrawFn) -> Site:
    cores = draw(st.integers(2, 128))
    order = draw(st.permutations(range(cores)))
    gpus = draw(st.integers(1, min(8, cores - 1)))
    reserved = order[: draw(st.integers(0, cores - gpus))]
    free = order[len(reserved) :]
    share = len(free) // gpus
    lists = [format_cores(free[i * share : (i + 1) * share]) for i in range(gpus)]
    data = LUMI.model_dump(mode="json")
    data["node"] |= {
        "cores": cores,
        "reserved_cores": format_cores(reserved),
        "gpus": gpus,
        "gpu_cores": lists,
        "gpu_numa": [],
        "gpu_bus": [],
    }
    return Site.model_validate(data)


@settings(max_examples=60)
@given(site=nodes_of_any_shape(), data=st.data())
def test_masks_are_right_for_any_node(site: Site, data: st.DataObject) -> None:
    ranks = data.draw(st.integers(1, site.node.gpus))
    bound = rank_bindings(site.node, ranks)
    seen: set[int] = set()
    for rank, item in enumerate(bound):
        bits = int(item.mask, 16)
        cores = {core for core in range(bits.bit_length()) if bits >> core & 1}
        assert cores == site.node.cores_of_gpu[rank]
        assert cores <= site.node.usable_cores
        assert not cores & seen
        seen |= cores
    assert all(item.mask in bind_text(site, ranks) for item in bound)


def test_masks_are_refused_on_shared_allocations() -> None:
    with pytest.raises(InputError, match="shared nodes Slurm chooses"):
        compose(job(partition="small-g", binding="masks"), LUMI)
    launch = compose(job(partition="small-g"), LUMI)
    assert launch.layout.masks == ()
    assert "cpu-bind" not in launch.script


def test_exclusive_nodes_of_a_shared_partition_get_masks_and_all_memory() -> None:
    launch = compose(job(partition="small-g", exclusive=True), LUMI)
    assert launch.layout.masks == MASKS
    assert "#SBATCH --exclusive\n#SBATCH --mem=480G\n" in launch.script


def test_torchrun_gets_no_masks() -> None:
    launch = compose(job(launcher="torchrun"), LUMI)
    assert launch.layout.masks == ()
    assert "--numa-binding=exclusive" in launch.script
    with pytest.raises(InputError, match="cannot use masks"):
        compose(job(launcher="torchrun", binding="masks"), LUMI)


@pytest.mark.parametrize("gpus", range(1, 9))
def test_torchrun_gets_all_cores_of_a_whole_node_and_its_share_of_a_shared_one(gpus: int) -> None:
    def cores(**changes: object) -> int:
        launch = compose(job(launcher="torchrun", gpus_per_node=gpus, **changes), LUMI)
        (asked,) = re.findall(r"--cpus-per-task=(\d+)", launch.script)
        return int(asked)

    assert cores() == 56
    assert cores(partition="small-g", exclusive=True) == 56
    assert cores(container={"generation": "legacy"}) == 56
    assert cores(container={"none": True}) == 56
    assert cores(partition="small-g") == 7 * gpus
    assert cores(cpus_per_task=9) == 9


@pytest.mark.parametrize(
    ("torch", "handled"), [("u24r64f21m43t29-20260319_153422", False), ("", True)]
)
def test_torchrun_gets_no_option_that_came_after_its_images_torch(
    torch: str, handled: bool
) -> None:
    folder = "/appl/local/laifs/containers"
    image = f"{folder}/lumi-multitorch-{torch}/lumi-multitorch-full-{torch}.sif" if torch else None
    launch = compose(
        job(
            **{"launcher": "torchrun", "script": None, "trainer": "ddp"},
            container={"image": image},
        ),
        LUMI,
    )
    # torch 2.9 knows the one, 2.10 brought the other (pytorch, torch/distributed/run.py).
    assert "--numa-binding=exclusive" in launch.script
    assert ("--signals-to-handle" in launch.script) is handled
    # A bundled trainer is told by a file; any other program by a signal that torchrun passes on.
    assert "#SBATCH --signal=B:USR1@" in launch.script
    other = job(launcher="torchrun", signal="USR1@60", container={"image": image})
    sent = re.findall(r"#SBATCH --signal=(\S+)", compose(other, LUMI).script)
    assert sent == ["USR1@60" if handled else "TERM@60"]


def test_an_image_at_a_site_without_containers_is_refused_with_the_line_to_add() -> None:
    site = LUMI.model_copy(update={"containers": {}, "default_container": None})
    with pytest.raises(InputError) as caught:
        compose(job(container={"image": "/appl/torch.sif"}), site)
    line = "containers: {singularity: {image: /appl/torch.sif, call: [singularity, exec]}}"
    assert f"Add `{line}` to the profile" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partition": "gpu"}, "has no partition 'gpu'"),
        ({"launcher": "mpi"}, "'mpi' is not a launcher"),
        ({"gpus_per_node": 9}, "more than the 8 GPUs per node"),
        ({"container": {"generation": "old"}}, "no container generation 'old'"),
        ({"launcher": "plain", "nodes": 2}, "only on one node"),
        ({"launcher": "plain", "gpus_per_node": 2}, "starts one rank, which cannot use 1 node"),
        ({"strategy": "single", "gpus_per_node": 2}, "starts one rank, which cannot use 1 node"),
    ],
)
def test_what_cannot_be_composed_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        compose(job(**changes), LUMI)
    assert caught.value.hint


@fuzzed(80)
@given(
    args=st.lists(passable, max_size=4),
    value=passable,
    launcher=st.sampled_from(["srun", "torchrun"]),
)
def test_bash_reads_arguments_and_values_back_unchanged(
    args: list[str], value: str, launcher: str
) -> None:
    # The launch line itself, with srun and everything before the program replaced by a printer.
    launch = compose(
        job(args=args, env={"TEXT": value}, launcher=launcher, container={"none": True}), LUMI
    )
    script = launch.script
    export = script[script.index("export TEXT=") :]
    program = script[script.index("lumitui_run launch ") :]
    program = program[program.index('"$RUN_DIR"/code/') :]
    shell = f"RUN_DIR=/run\nresume=()\n{_first_statement(export)}\n"
    shell += f"printf '%s\\0' \"$TEXT\" {program}\n"
    printed = subprocess.run(["bash", "-eu", "-c", shell], capture_output=True, check=True)
    words = printed.stdout.decode().split("\0")[:-1]
    assert words == [value, "/run/code/train.py", *args]


def _first_statement(text: str) -> str:
    return text[: text.index("\n\n# Rendezvous\n")]


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
@pytest.mark.parametrize(
    "container", [{"none": True}, {"generation": "laif"}, {"generation": "legacy"}]
)
def test_folders_of_the_nodes_do_not_depend_on_the_container(
    container: dict[str, object], launcher: str
) -> None:
    script = compose(job(nodes=2, launcher=launcher, container=container), LUMI).script
    interface = 'export NCCL_SOCKET_IFNAME="hsn0,hsn1,hsn2,hsn3"\n' in script
    assert interface is (container != {"generation": "laif"})
    made = next(line for line in script.splitlines() if line.startswith("lumitui_node_tmp "))
    for name in ("MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_USER_DB_PATH"):
        folder = re.search(rf'export {name}="\${{NODE_TMP}}/(.*)"\n', script)
        assert folder and folder[1] in made.split()
        assert script.index(made) < script.index(folder[0])


def test_a_folder_that_is_not_the_jobs_alone_is_not_among_its_own() -> None:
    kept = LUMI.model_copy(update={"node_directories": ("/scratch/shared", "${NODE_TMP}/x")})
    script = compose(JOB, kept).script
    assert 'lumitui_on_nodes mkdir -p "/scratch/shared"\n' in script
    assert re.search(r'^lumitui_node_tmp "/tmp" x #', script, re.MULTILINE)


def test_a_job_that_needs_no_folder_on_its_nodes_makes_none() -> None:
    plain = LUMI.model_copy(update={"node_directories": (), "environment": {}})
    assert "node_tmp" not in compose(JOB, plain).script


def test_torchrun_calls_a_node_as_slurm_does_where_there_are_several() -> None:
    named = "bash -c 'export PET_LOCAL_ADDR=$SLURMD_NODENAME; exec \"$@\"' node"
    for nodes, launcher, there in (
        (2, "torchrun", True),
        (1, "torchrun", False),
        (2, "srun", False),
    ):
        spec = job(nodes=nodes, launcher=launcher, container={"none": True})
        assert (named in compose(spec, LUMI).script) is there


def test_a_hang_ends_a_bundled_trainer_after_the_time_that_the_job_gives() -> None:
    assert "HANG" not in compose(job(script=None, trainer="ddp"), LUMI).script
    asked = job(script=None, trainer="ddp", hang="10:00")
    assert 'export TRAINER_HANG_SECONDS="600"\n' in compose(asked, LUMI).script
    with pytest.raises(InputError, match="it must be at least a minute"):
        job(script=None, trainer="ddp", hang="0:30")


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_no_step_but_the_launch_holds_anything(launcher: str) -> None:
    script = compose(changed(JOB, {"launcher": launcher}, "t"), LUMI).script
    parts = (TEMPLATES / "job" / name for name in (MACHINERY, "proof.sh"))
    machinery = "".join(part.read_text() for part in parts)
    steps = re.findall(r"(?:^|\s)srun (--|\\\")(\w*)", machinery)
    assert steps and {word for _, word in steps} == {"overlap"}
    steps = [line for line in script.splitlines() if re.search(r"(^|\s)srun --", line)]
    assert len(steps) == 1 and "--overlap" not in steps[0]


def test_own_modules_are_loaded_after_the_profiles_and_an_environment_is_built_with_them() -> None:
    plain = compose(job(container={"none": True}), LUMI).script
    spec = job(
        container={"none": True}, modules=["rocm/6.2.2", "cray-python@3.11"], venv=["einops"]
    )
    launch = compose(spec, LUMI)
    assert "module load rocm/6.2.2" not in plain
    before, line, after = launch.script.partition("module load rocm/6.2.2 cray-python@3.11\n")
    assert line and "lumitui_venv" in after
    assert [text for text in LUMI.modules if text not in before] == []
    assert line in launch.texts["venv.sh"]
    for wrong in (["-x"], ["module purge"], ["ml purge"], "ml purge"):
        with pytest.raises(InputError, match="is not a module like PyTorch"):
            changed(spec, {"modules": wrong}, "a test")


@pytest.mark.parametrize("line", ["ml A/1 B", "module load A/1 B", "ml load A/1 module add B"])
def test_the_line_of_a_wiki_that_loads_modules_names_them(line: str) -> None:
    for value in (line, [line], line.split()):
        assert changed(JOB, {"modules": value}, "a test").modules == ("A/1", "B")
    field = next(one for one in fields({}, None, {}, ()) if one.key == "modules")
    assert read(field, line) == ["A/1", "B"]


def test_a_job_that_waits_is_not_composed_without_what_it_waits_for() -> None:
    with pytest.raises(InputError, match="cannot wait"):
        compose(job(after="vit-1n"), LUMI)
