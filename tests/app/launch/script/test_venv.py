"""Words of staged data in the script, and `venv:`: its name, its build, the job that uses it."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.placement import placement_of
from lumitui.app.launch.program_call import link_target, named_in, word
from lumitui.app.launch.venv_script import name_in, venv_name
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import VENV_SCRIPT
from lumitui.remote.site.sites import BUILT_IN, Sites


@pytest.fixture(scope="module")
def lumi() -> Site:
    return Sites((BUILT_IN,)).load("lumi")


@pytest.fixture(scope="module")
def laptop() -> Site:
    return Sites((BUILT_IN,)).load("laptop")


def job(venv: str, more: str = "", place: str = "{site: lumi, partition: standard-g}") -> JobSpec:
    site, partition = place.strip("{}").split(", ")
    text = f"name: a\n{site}\n{partition}\naccount: project_462000001\ntime: '1:00:00'\n"
    return parse_job(f"{text}script: train.py\nlauncher: torchrun\nvenv: {venv}\n{more}", "job")


ON_LAPTOP = "{site: laptop, partition: local}"


def name_of(spec: JobSpec, site: Site) -> str:
    return venv_name(placement_of(spec, site))


def test_what_decides_what_is_in_it_decides_its_name(lumi: Site) -> None:
    name = name_of(job("[einops==0.8]"), lumi)
    assert name == name_of(job("[einops==0.8]", "nodes: 4"), lumi)
    old = lumi.containers["laif"].image.replace("20260415", "20260513")
    others = [
        name_of(job("[einops==0.9]"), lumi),
        name_of(job("[einops==0.8, tqdm]"), lumi),
        name_of(job("[einops==0.8]", f"container: {{image: {old}}}"), lumi),
        name_of(job("[einops==0.8]", "container: {generation: legacy}"), lumi),
        name_of(job("[einops==0.8]", "container: {none: true}"), lumi),
        name_of(job("{packages: [einops==0.8], wheels: /scratch/w}"), lumi),
        name_of(job("[einops==0.8]"), lumi.model_copy(update={
            "venv": lumi.venv.model_copy(update={"keeps": ("torch",)})})),
    ]  # fmt: skip
    assert len({name, *others}) == len(others) + 1


def test_the_script_builds_in_the_image_and_the_job_mounts_it(lumi: Site) -> None:
    launch = compose(job("[einops==0.8]"), lumi)
    script = launch.texts[VENV_SCRIPT]
    assert 'singularity run -B "$data/tree:"/user-software -B "$data" "$SIF"' in script
    assert "mksquashfs" in script and "-processors 1 -no-xattrs" in script
    assert '-B "$VENV":/user-software:image-src=/ "$SIF" /user-software/bin/python' in launch.script
    assert name_in(launch.script) == name_of(job("[einops==0.8]"), lumi)
    assert "PYTHONNOUSERSITE" in launch.script


def test_without_a_container_the_sites_modules_make_it(lumi: Site) -> None:
    site = lumi.model_copy(update={"modules": ("module load pytorch/2.9",)})
    launch = compose(job("[einops]", "container: {none: true}"), site)
    script = launch.texts[VENV_SCRIPT]
    assert "  module load pytorch/2.9\n" in script
    assert "singularity" not in script and "mksquashfs" not in script
    assert '"$VENV"/bin/python -m torch.distributed.run' in launch.script
    assert '. "$VENV/bin/activate"' in launch.script


def test_what_is_built_for_the_gpus_stays_unless_it_is_asked_for(lumi: Site) -> None:
    kept = compose(job("[lightning]"), lumi).texts[VENV_SCRIPT]
    asked = compose(job("[Torch==2.9, deepspeed>0.18]"), lumi).texts[VENV_SCRIPT]
    assert " torch torchvision " in kept and " deepspeed " in kept
    assert " torchvision " in asked and " torch torchvision" not in asked
    assert " deepspeed " not in asked


def test_what_is_staged_can_be_the_image_and_the_wheels(lumi: Site) -> None:
    more = "stage: {WHEELS: wheels, IMG: own.sif, DATA: data}\ncontainer: {image: $STAGE_IMG}"
    spec = job("{packages: [einops], wheels: $STAGE_WHEELS}", more)
    script = compose(spec, lumi).texts[VENV_SCRIPT]
    lines = script.splitlines()
    assert ': "${STAGE_IMG:=$(readlink -f "$here/stage/IMG")}"' in lines
    assert 'SIF="$STAGE_IMG"' in lines
    assert '  wheels="$STAGE_WHEELS"' in lines
    # Other wheels under the same name are another environment.
    assert 'readlink -f "$SIF" "$STAGE_WHEELS" | cksum' in script
    assert "STAGE_DATA" not in script


def test_an_exported_job_builds_its_own(lumi: Site) -> None:
    script = plain_script(compose(job("[einops]"), lumi), lumi, "a")
    assert 'VENV=$(bash venv.sh "$RUN_DIR/venvs")' in script


@pytest.mark.parametrize(
    ("venv", "more", "words"),
    [
        ("[]", "", "lists no package"),
        ("r.txt", "", "code lacks the files of"),
        ("[einops]", "container: {venv: /scratch/e.sqsh}", "cannot be combined"),
        ("[-e .]", "", "is a path"),
    ],
)
def test_what_cannot_be_built_is_refused(lumi: Site, venv: str, more: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        compose(job(venv, more), lumi)


HOSTILE = "x; $(touch /tmp/a) `id` 'q\" \\"


@pytest.mark.parametrize("folder", ["", "/scratch/{account}/{user}/it's $(id)"])
@pytest.mark.parametrize("place", ["lumi", "laptop"])
def test_a_hostile_line_stays_one_word(
    request: pytest.FixtureRequest, place: str, folder: str
) -> None:
    site: Site = request.getfixturevalue(place)
    site = site.model_copy(update={"venv": site.venv.model_copy(update={"folder": folder})})
    spec = job(
        "[einops]", place=ON_LAPTOP if place == "laptop" else "{site: lumi, partition: dev-g}"
    )
    assert spec.venv
    spec = spec.model_copy(
        update={"venv": spec.venv.model_copy(update={"packages": (HOSTILE, "einops")})}
    )
    script = compose(spec, site).texts[VENV_SCRIPT]
    line = next(line for line in script.splitlines() if line.startswith("  printf '%s\\n' "))
    said = subprocess.run(
        ["bash", "-c", line.removesuffix(" >requirements.txt")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == f"{HOSTILE}\neinops\n"
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


_PIECES = st.sampled_from(
    [
        "$STAGE_DATA",
        "${STAGE_DATA}",
        "$STAGE_OTHER",
        "$HOME",
        "'",
        '"',
        "`x`",
        "$(x)",
        "\\",
        " ",
        "a",
    ]
)


@given(st.lists(_PIECES, max_size=8))
def test_only_what_is_staged_expands(pieces: list[str]) -> None:
    text = "".join(pieces)
    shell = ["sh", "-c", f"STAGE_DATA='/a b'; printf '%s|' {word(text, ['DATA'])}"]
    said = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    expected = "".join("/a b" if "STAGE_DATA" in piece else piece for piece in pieces)
    assert said == f"{expected}|"


def test_names_and_links() -> None:
    assert list(named_in("--a=$STAGE_DATA:${STAGE_X} $STAGEX")) == ["DATA", "X"]
    assert (
        link_target("data", "D") == "../stage/D"
        and link_target("a/b/c/", "D") == "../../../stage/D"
    )
