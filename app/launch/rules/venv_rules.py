"""The adviser's rules about `venv:`: packages must be reachable, fit, and cost little."""

import re
from collections.abc import Iterator

from lumitui.app.job.fields.venv_field import package_of
from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.transfer.environments.image_names import versions_in

_HOME = re.compile(r"^(~|\$\{?HOME\b|(/gpfs)?/(home|users)/)")
_WHEEL = re.compile(
    r"(?P<name>[^-]+)-[^-]+(?:-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)


def reaches_index(site: Site) -> bool:
    """Return whether `site` can reach a package index where it builds environments."""
    return site.venv.index and (site.internet_on_compute_nodes or site.venv.build != "job")


def _reach(launch: Launch, place: Placement) -> Iterator[Finding]:
    venv, site = launch.spec.venv, place.site
    if venv is None or venv.wheels:
        return
    if reaches_index(site):
        return
    where = "its nodes" if site.venv.build == "job" else "its login nodes"
    yield hit(
        "venv-offline",
        "venv",
        f"{site.name} builds environments on {where}, which cannot reach a package index.",
        "Download wheels into a folder of the project with `pip download --dest wheels "
        f"--platform manylinux2014_{site.node.architecture} --only-binary=:all: …`, and set "
        "`venv: {packages: […], wheels: wheels}`.",
    )


def _fit(launch: Launch, place: Placement) -> Iterator[Finding]:
    venv = launch.spec.venv
    if venv is None or venv.sent is None:
        return
    python, machine = python_of(place), place.site.node.architecture
    fitting: set[str] = set()
    others: dict[str, str] = {}
    for name in venv.sent.wheels:
        if not (match := _WHEEL.fullmatch(name)):
            continue
        if _runs_on(match, python, machine):
            fitting.add(package_of(match["name"]))
        else:
            others.setdefault(package_of(match["name"]), name)
    for package, name in others.items():
        if package not in fitting:
            yield hit(
                "venv-wheel",
                "venv",
                f"The wheel {name} does not fit: the job's Python is {python or 'unknown'}, its "
                f"nodes are {machine}.",
                f"Download the one that fits: `pip download --dest {venv.wheels} "
                f"{f'--python-version {python} ' if python else ''}--platform "
                f"manylinux2014_{machine} --only-binary=:all: {package}`.",
            )


def python_of(place: Placement) -> str:
    """Return the version (`3.12`) of the Python that builds the environment; "" if unknown."""
    container = place.container
    if container is None:
        return place.site.venv.python
    listing = container.listing
    version = versions_in(place.image, listing.names).get("python", "") if listing else ""
    return ".".join(version.split(".")[:2]) or container.python_version


def _runs_on(wheel: re.Match[str], python: str, machine: str) -> bool:
    platform = wheel["platform"]
    if platform != "any" and not re.search(rf"linux.*_{machine}(\.|$)", platform):
        return False
    if not python or "py3" in wheel["python"].split("."):
        return True
    major, minor = map(int, python.split("."))
    tags = [re.fullmatch(r"cp(\d)(\d+)", tag) for tag in wheel["python"].split(".")]
    versions = [(int(one[1]), int(one[2])) for one in tags if one]
    if wheel["abi"] == "abi3":
        return any(version <= (major, minor) for version in versions)
    return (major, minor) in versions


def _replaced(launch: Launch, place: Placement) -> Iterator[Finding]:
    venv = launch.spec.venv
    kept = set(map(package_of, place.site.venv.keeps))
    lines = [line for line in (venv.lines if venv else ()) if package_of(line) in kept]
    if lines:
        has = "the image's" if place.container else "the modules'"
        yield hit(
            "venv-replaces",
            "venv",
            f"`venv:` requests {', '.join(lines)}, which would replace {has} own. A package "
            f"index's build is not for {place.site.title}'s GPUs and network.",
            f"Leave out {', '.join(map(package_of, lines))}, or choose another image: "
            f"`lumitui site images {place.site.name}`.",
        )


def _cost(launch: Launch, place: Placement) -> Iterator[Finding]:
    venv, price = launch.spec.venv, launch.price
    if venv is None or place.site.venv.build != "job" or not price.per_hour:
        return
    yield hit(
        "venv-in-job",
        "venv",
        "The first job with this environment builds it before the launch, while its GPUs wait: "
        f"{price.per_hour / 60:.2g} {price.unit} per minute. Later jobs reuse it.",
        "Run the job on one node first.",
    )


def _home(launch: Launch, place: Placement) -> Iterator[Finding]:
    path = launch.spec.container.venv
    if path and _HOME.match(path):
        yield hit(
            "venv-home",
            "container.venv",
            f"The environment {path} is in a home folder, which is small, and often slow or "
            "missing on compute nodes.",
            "Build one beside the runs with `venv:`, or move it to the project's scratch.",
        )


RULES: tuple[LaunchRule, ...] = (_reach, _fit, _replaced, _cost, _home)
