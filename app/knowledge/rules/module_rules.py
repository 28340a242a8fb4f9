"""Rules about modules and Python environments: their order, conflicts and late installations."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.loaded_modules import module_call
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import generations_of
from lumitui.app.knowledge.site_facts.process_counts import tasks_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_PURGES = ("purge", "reset")


@rule(
    "conda-without-hook",
    "warning",
    "conda activate in a shell that does not know it",
    why="`conda activate` is a shell function, which a batch script has only after it sources "
    "conda.sh: otherwise it ends "
    "with `Run 'conda init' before 'conda activate'`, and another Python runs.",
    source="conda documentation, conda activate; docs.csc.fi, Python",
)
def conda_without_hook(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `conda activate env` in a script that does not read conda.sh."""
    if re.search(r"\s-\w*[li]", job.shebang) or re.search(
        r"shell(\.\w+)? .*hook|shell\.bash", job.text
    ):
        return
    # EasyBuild's modules (Anaconda3, Miniforge3) set PATH alone; others may set the function, too.
    if any(re.match(r"[a-z].*(conda|mamba|forge)|conda|mamba", name) for name in job.modules):
        return
    reads = re.compile(r"conda\.sh|mamba\.sh|\.bashrc|\.bash_profile|\.profile|bin/activate")
    known = False
    for command in job.commands:
        first = command.words[0].known if command.words else ""
        known |= command.program in (".", "source") and any(
            reads.search(text) for word in command.words[:1] for text in (word.known, word.text)
        )
        if command.program in ("conda", "mamba") and first == "activate" and not known:
            yield Hit(
                f"A batch script does not know `{command.program} activate`.",
                'Write `source "$(conda info --base)/etc/profile.d/conda.sh"` before it.',
                command.at,
            )
            return


@rule(
    "install-in-job",
    "warning",
    "packages that the job installs",
    why="Every rank that installs writes the same files at once, and nodes without internet "
    "reach no index. The GPUs are billed meanwhile.",
    source="csc-user-guide, python; the site's profile, internet_on_compute_nodes",
)
def install_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `pip install -r requirements.txt` in a job."""
    for command in job.commands:
        words = [word.known for word in command.words]
        installs = _installs(command.program, words)
        if not installs or {"--no-index", "--find-links", "--dry-run"} & set(words):
            continue
        step = job.steps[command.step] if command.step is not None else None
        tasks = tasks_of(job, step) if step is not None else 1
        if not site.internet_on_compute_nodes:
            message = f"`{installs}` reaches no index: the nodes of {site.name} have no internet."
            yield Hit(
                message,
                "Install it on a login node, or bring wheels and add --no-index --find-links.",
                command.at,
                severity="error",
            )
        elif tasks and tasks > 1:
            yield Hit(
                f"All {tasks} tasks run `{installs}` at once, into the same folder.",
                "Install it once, on a login node.",
                command.at,
            )
        else:
            yield Hit(
                f"The job runs `{installs}` while its GPUs are billed.",
                "Install it once, on a login node.",
                command.at,
                severity="note",
            )


def _installs(program: str, words: list[str]) -> str:
    """Return a short name of the installation that a command makes; "" for another command."""
    name = program.rpartition("/")[2]
    if words[:2] == ["-m", "pip"] and name.startswith("python"):
        name, words = "pip", words[2:]
    if re.fullmatch(r"(pip\d?(\.\d+)?|conda|mamba|uv)", name) and "install" in words[:2]:
        return f"{name} install"
    return ""


@rule(
    "image-install-home",
    "warning",
    "packages that are installed from inside an image into home",
    why="An image is read-only, so pip uses ~/.local, which every other image with that version "
    "of Python then reads too.",
    source="pip documentation, user installs; docs.csc.fi, Python",
)
def image_install_home(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity exec image.sif pip install` without a place to install to."""
    for command in job.commands:
        words = [word.known for word in command.words]
        step = job.steps[command.step] if command.step is not None else None
        in_image = step is not None and step.container is not None and command.program != "srun"
        if command.shell != "container" and not in_image:
            continue
        if not _installs(command.program, words) or _has_place(job, words):
            continue
        yield Hit(
            "The image is read-only, so pip installs into ~/.local, which all other images read "
            "too.",
            "Make an environment: python -m venv --system-site-packages DIR, and activate it.",
            command.at,
        )


def _has_place(job: ScriptJob, words: list[str]) -> bool:
    named = any(word.startswith(("--target", "--prefix", "-t", "--root")) for word in words)
    user_base = job.variable("PYTHONUSERBASE") or job.variable("PIP_TARGET")
    activates = re.search(r"bin/activate|WITH_VENV", job.text)
    return named or user_base is not None or activates is not None


@rule(
    "inherited-modules",
    "note",
    "modules on top of whatever the login shell had",
    why="sbatch sends the login shell's environment with the job, so that it runs with other "
    "modules when somebody else sends it.",
    source="sbatch(1) --export; LUMI-AI-Guide, May 2026",
)
def inherited_modules(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `module load` without a purge, where the site's own jobs purge."""
    used = [container for _image, _name, container in generations_of(job, site)]
    lines = [line for item in used for line in item.modules] if used else [*site.modules]
    purges = any(
        module_call(command.program, [word.known for word in command.words])[0] in _PURGES
        for command in job.commands
        if command.program in ("module", "ml")
    )
    if job.modules and not purges and "module purge" in lines and not job.options.has("export"):
        yield Hit(
            "The job adds modules to those of the shell that it is sent from.",
            "Write `module purge` before the first `module load`.",
            next((each.at for each in job.commands if each.program in ("module", "ml")), NOWHERE),
        )


@rule(
    "activation-outside-image",
    "warning",
    "a Python environment that is activated outside the container",
    why="A container has its own PATH: its own Python starts, not the environment's.",
    source="singularity(1), environment; LUMI-AI-Guide, chapter 2",
)
def activation_outside_image(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `source venv/bin/activate` before `srun singularity exec … python`."""
    inside = [step.container is not None for step in job.training]
    prepends = any(item.name.endswith("_PREPEND_PATH") for item in job.variables)
    for command in job.commands:
        first = command.words[0].known if command.words else ""
        activates = command.program in ("source", ".") and first.endswith("bin/activate")
        if activates and command.shell == "batch" and inside and all(inside) and not prepends:
            yield Hit(
                f"{first} changes the PATH of the batch script, and not that of the container.",
                "Activate it in the container: bash -c 'source …/bin/activate; python …'.",
                command.at,
            )
            return
