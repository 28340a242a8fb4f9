"""What the adviser says of `venv:`: packages that cannot be reached, do not fit, or cost."""

from functools import cache

import pytest

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.rules.script_texts import installs_findings
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.accounts import own_account

HASH = "0" * 64


class Loaded:
    """The built-in sites, each read once."""

    load = staticmethod(cache(Sites((BUILT_IN,)).load))


@pytest.fixture(scope="module")
def sites() -> type[Loaded]:
    return Loaded


def job(site: Site, venv: str = "", more: str = "") -> JobSpec:
    partition = next(iter(site.partitions))
    text = f"name: a\nsite: {site.name}\npartition: {partition}\ntime: '0:10:00'\nscript: a.py\n"
    account = f"account: {own_account(site)}\n"
    return parse_job(f"{text}{account}{f'venv: {venv}' if venv else ''}\n{more}", "job")


def said(site: Site, spec: JobSpec) -> dict[str, Finding]:
    found = findings(compose(spec, site), site)
    return {item.rule: item for item in found if item.rule.startswith("venv")}


def wheels(*names: str) -> str:
    sent = ", ".join(f"{name}: {HASH!r}" for name in names)
    return f"{{packages: [tiny], wheels: w, sent: {{wheels: {{{sent}}}}}}}"


@pytest.mark.parametrize("name", ["lumi", "roihu", "karolina", "laptop"])
def test_packages_come_from_an_index_where_there_is_one(sites: type[Loaded], name: str) -> None:
    assert said(sites.load(name), job(sites.load(name), "[einops]")) == {}


def test_without_an_index_wheels_are_asked_for(sites: type[Loaded]) -> None:
    site = sites.load("mn5")
    found = said(site, job(site, "[einops]"))["venv-offline"]
    assert (found.severity, found.at.field) == ("error", "venv")
    assert "pip download" in found.do
    assert said(site, job(site, "{packages: [einops], wheels: /gpfs/scratch/w}")) == {}
    # Nodes that reach nothing cannot build either.
    offline = sites.load("karolina")
    recipe = offline.venv.model_copy(update={"build": "job"})
    in_job = offline.model_copy(update={"venv": recipe})
    assert "its nodes" in said(in_job, job(offline, "[einops]"))["venv-offline"].message


@pytest.mark.parametrize(
    ("site", "name", "fits"),
    [
        ("lumi", "tiny-1-py3-none-any.whl", True),
        ("lumi", "tiny-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("lumi", "tiny-1-cp38-abi3-manylinux_2_17_x86_64.whl", True),
        ("lumi", "tiny-1-cp313-abi3-manylinux_2_17_x86_64.whl", False),
        ("lumi", "tiny-1-cp311-cp311-manylinux_2_17_x86_64.whl", False),
        ("lumi", "tiny-1-cp312-cp312-macosx_11_0_arm64.whl", False),
        ("lumi", "tiny-1-cp312-cp312-win_amd64.whl", False),
        ("roihu", "tiny-1-cp312-cp312-manylinux_2_17_x86_64.whl", False),
        ("roihu", "tiny-1-cp312-cp312-manylinux_2_17_aarch64.whl", True),
        ("karolina", "tiny-1-cp312-cp312-linux_x86_64.whl", False),
        ("puhti", "tiny-1-cp39-cp39-linux_x86_64.whl", True),  # its Python is not known
    ],
)
def test_a_wheel_for_another_python_or_machine_is_named(
    sites: type[Loaded], site: str, name: str, fits: bool
) -> None:
    place = sites.load(site)
    found = said(place, job(place, wheels(name)))
    assert ("venv-wheel" not in found) is fits
    if not fits:
        assert name in found["venv-wheel"].message
        # One of several that fits is enough.
        both = said(place, job(place, wheels(name, "tiny-1-py3-none-any.whl")))
        assert "venv-wheel" not in both


def test_the_images_name_says_its_python(sites: type[Loaded]) -> None:
    lumi = sites.load("lumi")
    image = (
        "/appl/local/containers/sif-images/lumi-pytorch-rocm-6.1.3-python-3.10-pytorch-v2.4.1.sif"
    )
    more = f"container: {{generation: legacy, image: {image}}}"
    old = said(lumi, job(lumi, wheels("tiny-1-cp310-cp310-linux_x86_64.whl"), more))
    assert "venv-wheel" not in old
    new = said(lumi, job(lumi, wheels("tiny-1-cp312-cp312-linux_x86_64.whl"), more))
    assert "3.10" in new["venv-wheel"].message


def test_another_torch_than_the_images_is_warned_of(sites: type[Loaded]) -> None:
    lumi = sites.load("lumi")
    found = said(lumi, job(lumi, "[torch==2.9, einops]"))["venv-replaces"]
    assert found.severity == "warning"
    assert "site images lumi" in found.do


def test_what_a_build_in_the_job_costs_is_said(sites: type[Loaded]) -> None:
    lumi = sites.load("lumi")
    in_job = lumi.model_copy(update={"venv": lumi.venv.model_copy(update={"build": "job"})})
    found = said(in_job, job(lumi, "[einops]"))["venv-in-job"]
    assert "0.067 GPU-hours per minute" in found.message


@pytest.mark.parametrize(
    "path", ["/users/me/e.sqsh", "/home/me/e.sqsh", "/gpfs/home/bsc/me/e.sqsh"]
)
def test_an_environment_in_a_home_folder_is_warned_of(sites: type[Loaded], path: str) -> None:
    lumi = sites.load("lumi")
    assert "venv-home" in said(lumi, job(lumi, more=f"container: {{venv: {path}}}"))
    other = said(lumi, job(lumi, more="container: {venv: /scratch/project_462000001/e.sqsh}"))
    assert other == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("pip install einops\n", "pip install einops"),
        ("set -e\n  python -m pip install --user x\n", "python -m pip install --user x"),
        ("uv pip install x\n", "uv pip install x"),
        ('subprocess.run(["pip", "install", "x"])\n', 'subprocess.run(["pip", "install", "x"])'),
        ("# pip install einops\n", ""),
        ("pip install --no-index --find-links w x\n", ""),
        ("print('pipe installation')\n", ""),
    ],
)
def test_a_script_that_installs_packages_itself(text: str, line: str) -> None:
    site = Loaded.load("lumi")
    messages = [one.message for one in installs_findings({"a.py": text}, job(site), site)]
    assert [f"`{line}`" in message for message in messages] == ([True] if line else [])


def test_where_nodes_reach_nothing_that_is_a_warning(sites: type[Loaded]) -> None:
    for name, severity in (("mn5", "warning"), ("lumi", "note")):
        site = sites.load(name)
        (finding,) = installs_findings({"a.py": "pip install x"}, job(site), site)
        assert (finding.severity, finding.at.field) == (severity, "script")
