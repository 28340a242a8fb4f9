"""The examples: what there is, and what `new` makes of one for a site."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.app.explain.timeline import attempts_of
from lumitui.app.history.metric_points import parse_line
from lumitui.app.job import examples
from lumitui.app.job.grid import cells
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.launcher_templates import launchers
from lumitui.app.launch.send.code.project_files import deepspeed_config
from lumitui.app.runs.guide import first_job
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.accounts import own_account
from tests.support.program.command_line import Here, envelope, told
from tests.support.program.home import Home

SITES = Sites([BUILT_IN])
GROUPS = list(examples.GROUPS.values())
BUILDS = ("resnet50-ddp", "gpt2", "resnet50-deepspeed")


def beginning(name: str, gpus: int | None = None, account: str | None = None) -> examples.Beginning:
    if name == examples.OWN_SCRIPT:
        return examples.Beginning(script="my train.py", gpus=gpus, account=account)
    return examples.Beginning(example=name, gpus=gpus, account=account)


def test_an_example_of_one_rank_is_not_written_for_several_gpus() -> None:
    lumi = SITES.load("lumi")
    with pytest.raises(InputError, match="loader-workers has one rank, which uses one GPU"):
        examples.text_for(lumi, beginning("loader-workers", 16))
    assert composed(lumi, "loader-workers", 1).layout.world_size == 1


def composed(site: Site, name: str, gpus: int | None = None) -> Launch:
    begun = beginning(name, gpus, own_account(site))
    text = examples.text_for(site, begun)
    assert max(map(len, text.splitlines())) <= 72, "whole in a terminal of 80 columns"
    written = parse_job(text, name)
    spec = cells(written)[-1].spec
    beside = dict(examples.examples()[name].files)
    own = beside.get(spec.deepspeed.config) if spec.deepspeed else None
    return compose(spec, site, deepspeed_config=own or deepspeed_config(spec, Path(".")))


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("first", "site_name"), [*enumerate(SITES.names())])
def test_every_example_composes_at_every_site_without_an_error(
    first: int, site_name: str, step: int
) -> None:
    """A fourth of the examples at each site, so that each is tried at two sites or more."""
    # A site that runs no jobs any more is an error for every job, and stays as an example.
    site = SITES.load(site_name).model_copy(update={"retired": None})
    for name in list(examples.examples())[first % step :: step]:
        launch = composed(site, name)
        errors = [item for item in findings(launch, site) if item.severity == "error"]
        assert errors == [], (name, errors)
        assert launch.spec.site == site_name
        limit = site.partitions[launch.spec.partition].max_nodes
        assert launch.spec.nodes <= limit
    for name in BUILDS[first % 3 :: min(step, 3)]:
        for gpus in (1, site.node.gpus, 2 * site.node.gpus):
            launch = composed(site, name, gpus)
            assert launch.layout.world_size == gpus, (name, gpus)
            said = findings(launch, site)
            assert [item for item in said if item.severity == "error"] == [], (name, gpus, said)


@pytest.mark.parametrize("site_name", ["lumi", "mn5"])
def test_torchtitan_is_previewed_without_a_warning(
    here: Here, tmp_path: Path, site_name: str
) -> None:
    for folder, name in (("tokenizer", "tokenizer.json"), ("data", "part.jsonl")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text('{"text": "a"}')
    job = str(tmp_path / "job.yaml")
    account = own_account(SITES.load(site_name))
    words = ("--example", "torchtitan", "--site", site_name, "--account", account)
    assert here("new", *words, "--output", job).returncode == 0
    done = here("preview", job)
    assert done.returncode == 0
    severities = {line.partition(":")[0] for line in (done.stdout + done.stderr).splitlines()}
    assert not severities & {"error", "warning"}, done.stdout
    launch = "code/train.py --module train --config llama3_8b"
    assert launch in done.stdout and "--parallelism.tensor-parallel-degree 2" in done.stdout


def test_a_job_of_a_few_gpus_gets_a_partition_that_bills_no_others() -> None:
    lumi = SITES.load("lumi")
    wanted = [("single", None, "small-g"), ("ddp", 2, "small-g"), ("ddp", 8, "standard-g"),
              ("ddp", 16, "standard-g")]  # fmt: skip
    for name, gpus, partition in wanted:
        launch = composed(lumi, name, gpus)
        assert launch.spec.partition == partition, (name, gpus)
        assert not [item for item in findings(launch, lumi) if item.rule == "idle-gpus"]


def test_every_example_says_in_one_line_what_it_is() -> None:
    found = examples.examples()
    assert {item.group for item in found.values()} == set(GROUPS)
    assert [item.group for item in found.values()] == sorted(
        (item.group for item in found.values()), key=GROUPS.index
    )
    for item in found.values():
        assert item.text.startswith(f"# {item.summary}\n# "), item.name
        assert 10 < len(item.summary) <= 53 and len(item.name) <= 18, item
        assert not item.summary.endswith("."), item
    lines = (line for item in found.values() for line in item.text.splitlines())
    assert max(map(len, lines)) <= 115


def test_the_list_is_grouped_and_the_same_for_a_program(here: Here) -> None:
    done = here("new", "--list")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if line and not line.startswith("  ")]
    assert headings[:-1] == GROUPS
    assert "  jax                 JAX, a rank for each GPU" in lines
    data = envelope(here("new", "--list", "--json"))["data"]
    assert [item["name"] for item in data] == list(examples.examples())


def test_new_writes_the_job_file_and_its_files_once(here: Here, tmp_path: Path) -> None:
    words = ("new", "--example", "mpi", "--output", str(tmp_path / "job.yaml"))
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, "the script is there"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"job.yaml": 0o600, "pi.c": 0o600, "run.sh": 0o700}
    assert here("preview", str(tmp_path / "job.yaml")).returncode == 0
    (tmp_path / "job.yaml").unlink()
    (tmp_path / "pi.c").write_text("mine")
    done = here(*words)
    assert (done.returncode, (tmp_path / "pi.c").read_text()) == (2, "mine")
    assert "already exists" in done.stderr and not (tmp_path / "job.yaml").exists()


def test_the_run_file_goes_beside_a_job_file_where_it_is_asked_for(
    here: Here, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    words = ("new", "--script", "train.py", "--run-file", "--output", str(tmp_path / "job.yaml"))
    assert here(*words).returncode == 0
    text = (tmp_path / "lumitui_run.py").read_text()
    assert text == examples.run_file()[1] and len(text.splitlines()) <= 250
    (tmp_path / "job.yaml").unlink()
    done = here(*words)
    assert done.returncode == 2 and "lumitui_run.py already exists" in done.stderr


def test_a_start_is_dated_for_the_timeline(tmp_path: Path) -> None:
    (tmp_path / "lumitui_run.py").write_text(examples.run_file()[1])
    program = [sys.executable, "-c", "import lumitui_run as run; run.start()"]
    subprocess.run(program, cwd=tmp_path, env={"RUN_DIR": str(tmp_path)}, check=True, timeout=60)
    start = parse_line((tmp_path / "metrics.jsonl").read_bytes())
    assert start is not None
    (attempt,) = attempts_of([start])
    assert attempt.began is not None


def test_the_verb_writes_for_a_script_what_the_guide_writes(here: Here, tmp_path: Path) -> None:
    (tmp_path / "fit.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\n"
        "p.parse_args()\nprint(f'loss {loss:.3f} samples/s {speed:.0f}')\n"
    )
    path = tmp_path / "verb.yaml"
    assert here("new", "--script", "fit.py", "--output", str(path)).returncode == 0
    guides = first_job(SITES.load("laptop"), "", tmp_path, "fit.py")
    assert path.read_text() == guides.read_text()
    spec = parse_job(path.read_text(), "verb")
    assert (spec.name, spec.args, [*spec.metrics]) == (
        "fit", ("--data", "DATA"), ["loss", "samples_per_s"],
    )  # fmt: skip
    path.unlink()
    assert here("new", "--script", "src/later.py", "--output", str(path)).returncode == 0
    later = parse_job(path.read_text(), "verb")
    assert (later.name, later.script, later.metrics) == ("later", "src/later.py", {})


def test_a_given_name_is_kept_and_only_a_python_program_is_read(here: Here, tmp_path: Path) -> None:
    (tmp_path / "fit.sh").write_text("print(f'loss {loss:.3f}')\n")
    path = tmp_path / "job.yaml"
    for script, words, name in (("fit.sh", (), "fit"), ("late.py", ("--name", "mine"), "mine")):
        assert here("new", "--script", script, *words, "--output", str(path)).returncode == 0
        spec = parse_job(path.read_text(), "job")
        assert (spec.name, spec.script, spec.metrics) == (name, script, {})
        path.unlink()
    (tmp_path / "broken.py").symlink_to("/proc/self/mem")
    told(here("new", "--script", "broken.py", "--output", str(path)), 1, "Cannot read", "broken.py")
    assert not path.exists()


def test_an_error_that_a_person_can_correct_is_written_and_shown(
    here: Here, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    done = here("new", "--site", "lumi", "--output", str(path))
    assert done.returncode == 0
    assert "'project_462000000' is only an example of an account at lumi." in done.stderr
    assert "account: project_462000000" in path.read_text()
    done = here("preview", str(path))
    assert "error: 'project_462000000' is only an example" in done.stderr + done.stdout
    done = here("submit", str(path), "--yes")
    assert done.returncode == 2 and "Nothing was sent." in done.stderr


def test_what_nobody_can_correct_is_not_left_behind(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    done = here("new", "--site", "lumi", "--launcher", "mpirun", "--output", str(path))
    assert done.returncode == 2, done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_site_without_a_default_image_is_given_one(
    here: Here, home: Home, tmp_path: Path
) -> None:
    profile = home.config / "sites" / "ours.yaml"
    profile.write_text(
        "extends: lumi\ncontainers: {laif: {image: '', images: null}, legacy: null}\n"
    )
    words = ("new", "--site", "ours", "--output", str(tmp_path / "job.yaml"))
    told(here(*words), 2, "no default image", "Pass the image's path on the site with --image PATH")
    assert here(*words, "--image", "/appl/ours.sif").returncode == 0
    assert "/appl/ours.sif" in (tmp_path / "job.yaml").read_text()


def test_an_image_at_a_site_with_several_kinds_needs_the_kind() -> None:
    site = SITES.load("lumi").model_copy(update={"default_container": None})
    begun = examples.Beginning(image="/appl/ours.sif", account="project_465000009")
    job = parse_job(examples.text_for(site, begun), "ddp")
    with pytest.raises(InputError, match="several container generations and no default"):
        compose(job, site)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"example": "nothing"}, "'nothing' is not an example"),
        ({"example": "ddp", "trainer": "fsdp"}, "--script, --trainer and --example cannot be"),
        ({"trainer": "resnet50-ddp"}, "'resnet50-ddp' is not a bundled trainer"),
        ({"example": "gpt2", "gpus": 12}, "12 is not a multiple of the 8 GPUs"),
    ],
)
def test_what_cannot_be_begun_gives_a_sentence(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        examples.text_for(SITES.load("lumi"), examples.Beginning(**given))  # type: ignore[arg-type]


def test_gpus_become_nodes_and_parts_of_one() -> None:
    site = SITES.load("lumi")
    found = {gpus: composed(site, "gpt2", gpus).spec for gpus in (1, 8, 16)}
    sizes = {gpus: (spec.nodes, spec.gpus_per_node) for gpus, spec in found.items()}
    assert sizes == {1: (1, 1), 8: (1, None), 16: (2, None)}


def test_a_job_takes_the_first_partition_that_it_fits() -> None:
    site = SITES.load("lumi")
    small = site.partitions["dev-g"].model_copy(update={"max_nodes": 1, "max_gpus": 4})
    tight = site.model_copy(update={"partitions": {"tiny": small, "standard-g": small.model_copy(
        update={"max_nodes": 8, "max_gpus": None, "min_gpus": 8})}})  # fmt: skip
    wanted = {1: "tiny", 4: "tiny", 8: "standard-g", 32: "standard-g", 128: "tiny"}
    for gpus, partition in wanted.items():
        text = examples.text_for(tight, beginning("gpt2", gpus))
        assert parse_job(text, "gpt2").partition == partition, gpus


def test_a_scripts_own_launcher_stays_where_the_site_has_it() -> None:
    site = SITES.load("lumi").model_copy(update={"launchers": ("torchrun", "srun")})
    assert parse_job(examples.text_for(site, beginning("jax")), "jax").launcher == "srun"
    assert parse_job(examples.text_for(site, beginning("ddp")), "ddp").launcher == "torchrun"
    assert all(item.spec.launcher in {*launchers(), "mpirun"} for item in
               examples.examples().values())  # fmt: skip


def test_the_deepspeed_configurations_are_read() -> None:
    for item in examples.examples().values():
        for name, text in item.files:
            if name.endswith(".json"):
                assert json.loads(text)["zero_optimization"]["stage"] >= 1, item.name
    assert os.access(examples.EXAMPLES, os.R_OK)


def test_an_example_does_not_warn_about_itself(here: Here, tmp_path: Path) -> None:
    done = here("new", "--example", "ddp", "--output", str(tmp_path / "job.yaml"))
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
