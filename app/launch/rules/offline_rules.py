"""The adviser's rules about nodes without internet access, staged data, and `venv:`.

The packages of an environment must be reachable, fit, and cost little.
"""

import re
from collections.abc import Iterator

from lumitui.app.job.fields.venv_field import package_of
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.program.step_program import STAGE_IT
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.program_call import named_in
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.app.launch.site_names import templates_of, without_names
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.transfer.environments.image_names import versions_in

_URL = re.compile(r"\b(?:https?|ftp|s3|gs|hf)://[^\s'\"]+")
# Arguments as in the Hugging Face examples, whose value may be a name on the hub.
_HUB_ARGUMENT = re.compile(r"--?(?:\w+[_-])?(?:model|dataset|tokenizer|repo)(?:[_-]\w+)*", re.I)
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?")
_SOURCE = "the site's profile, internet_on_compute_nodes"


def _downloads(launch: Launch, place: Placement) -> Iterator[Finding]:
    if place.site.internet_on_compute_nodes:
        return
    for key, text in _texts(launch.spec):
        yield hit(
            "offline",
            key,
            f"The nodes of {place.site.name} have no internet access, but `{key}:` contains "
            f"{text}.",
            STAGE_IT,
        )


def _texts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the job file's apparent downloads, with their keys."""
    for text in (*spec.args, *spec.resume):
        if match := _URL.search(text):
            yield "args", match[0]
    for argument, value in _arguments(spec.args):
        if _HUB_ARGUMENT.fullmatch(argument) and _is_hub_name(argument, value):
            yield "args", f"{value} ({argument})"
    for name, text in spec.env.items():
        if (match := _URL.search(text)) and not name.lower().endswith("proxy"):
            yield f"env.{name}", match[0]
    image = spec.container.image or ""
    if re.match(r"(?:docker|oras|library|shub)://", image):
        yield "container.image", image


def _arguments(args: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(args):
        argument, equals, value = text.partition("=")
        if argument.startswith("-") and equals:
            yield argument, value
        elif argument.startswith("-") and number + 1 < len(args):
            yield argument, args[number + 1]


def _is_hub_name(argument: str, value: str) -> bool:
    """Return whether a value is a name on the hub; a bare word only for arguments that take one."""
    if not _HUB_NAME.fullmatch(value) or value.startswith("."):
        return False
    return (
        "/" in value or re.search(r"name[_-]or[_-]path|dataset[_-]name|repo", argument) is not None
    )


def _names(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    texts = [("args", text) for text in spec.args]
    texts += [(f"env.{name}", text) for name, text in spec.env.items()]
    texts += [("container.image", spec.container.image or "")]
    for key, text in texts:
        for name in named_in(text):
            if name not in spec.stage:
                yield hit(
                    "stage-name",
                    key,
                    f"`{key}:` uses $STAGE_{name}, but `stage:` has no {name}.",
                    f"Add `stage: {{{name}: PATH}}`, or correct the name.",
                )


def _replaced(launch: Launch, place: Placement) -> Iterator[Finding]:
    """Yield a finding for each variable of staged data that the job file also sets."""
    spec = launch.spec
    for key, names in (("env", spec.env), ("secrets", spec.secrets)):
        for name in names:
            staged = name.removeprefix("STAGE_")
            if staged != name and staged in spec.stage:
                yield hit(
                    "stage-variable",
                    f"env.{name}" if key == "env" else key,
                    f"`{key}:` sets {name}, which lumitui sets to the path of the staged {staged}.",
                    f"Remove it from `{key}:`, or rename one of the two.",
                    final=True,
                )


_SHELL = re.compile(
    r"\$(?:(?!STAGE_|AFTER_DIR)[A-Za-z_]\w*|[@*#]|\d|\((?=\w)"
    r"|\{(?!STAGE_|AFTER_DIR)[A-Z_][A-Z0-9_]*(?::?[-=?+][^}]*)?\})"
)
"""Text that a shell would expand: `$LR`, `${LR}`, `$@`, `$1`, `$(nproc)`. Hydra itself expands
`${data.root}` and `${lr}`."""


def _literal(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, known = launch.spec, templates_of(place.site)
    paths = {"links": spec.links.values(), "python": [spec.python or ""], "activate": spec.activate}
    texts = {"args": spec.args, "resume": spec.resume, **paths}
    for key, text in ((key, text) for key, each in texts.items() for text in each):
        # A name that lumitui expands remains only if the user doubled its dollar.
        if (match := _SHELL.search(without_names(text, known))) is None:
            continue
        yield hit(
            "literal-argument",
            key,
            f"No shell expands {match[0]} in `{key}:`; "
            f"the {'job' if key in paths else 'program'} gets it unchanged.",
            f"Write the value{', or read the variable in the program' * (key not in paths)}. At "
            f"{place.site.name}, lumitui expands {', '.join(f'${name}' for name in known)}.",
            severity="error" if key in paths and match[0] != "$(" else None,
        )


def _notices(launch: Launch, place: Placement) -> Iterator[Finding]:
    notify, site = launch.spec.notify, place.site
    if notify and notify.webhook and not site.internet_on_compute_nodes:
        yield hit(
            "notify-offline",
            "notify",
            f"The nodes of {site.name} have no internet access, so the job cannot notify "
            f"{notify.webhook} of its end.",
            "Use an address that the nodes can reach, or keep the TUI open, which also notifies "
            "you.",
        )
    if notify and notify.mail and not site.mail:
        yield hit(
            "notify-mail",
            "notify",
            f"{site.name}'s profile does not have `mail: true`, so the job requests no mail.",
            "If Slurm sends mail there, add `mail: true` to your own profile.",
        )


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
        "Download wheels into a folder in the project with `pip download --dest wheels "
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
                f"The wheel {name} does not match: the job's Python is {python or 'unknown'}, "
                f"its nodes are {machine}.",
                f"Download the matching one: `pip download --dest {venv.wheels} "
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


def _venv_replaced(launch: Launch, place: Placement) -> Iterator[Finding]:
    venv = launch.spec.venv
    kept = set(map(package_of, place.site.venv.keeps))
    lines = [line for line in (venv.lines if venv else ()) if package_of(line) in kept]
    if lines:
        has = "the image's" if place.container else "the modules'"
        yield hit(
            "venv-replaces",
            "venv",
            f"`venv:` requests {', '.join(lines)}, which would replace {has} own. Builds "
            f"from a package index do not support {place.site.title}'s GPUs and network.",
            f"Omit {', '.join(map(package_of, lines))}, or choose another image: `lumitui site "
            f"images {place.site.name}`.",
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
            f"The environment {path} is in a home folder. Home folders are small, and often slow "
            "or missing on compute nodes.",
            "Build one next to the runs with `venv:`, or move it to the project's scratch.",
        )


RULES: tuple[LaunchRule, ...] = (
    _notices, _downloads, _names, _replaced, _literal, _reach, _fit, _venv_replaced, _cost, _home,
)  # fmt: skip
