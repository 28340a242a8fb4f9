"""From a job file and a profile to a launch: `compose` derives the job script. Pure."""

import json
from collections.abc import Mapping
from functools import cache

import jinja2

from lumitui.app.compose import deepspeed_batch as batches
from lumitui.app.compose.binding import taskset_list
from lumitui.app.compose.launchers import TEMPLATES
from lumitui.app.compose.layout import layout_of
from lumitui.app.compose.placement import Placement, placement_of
from lumitui.app.compose.price import memory_options, price_of
from lumitui.app.compose.program import (
    PROBE,
    Program,
    code_folder,
    container_call,
    container_environment,
    expand,
    interpreter,
    program_of,
)
from lumitui.app.job.launch import Launch, LaunchFile, Layout, measured_nodes
from lumitui.app.job.script_args import argument_value, batch_argument
from lumitui.app.job.spec import JobSpec
from lumitui.remote.run_folder import CODE_ARCHIVE, DEEPSPEED_CONFIG, PROBE_SCRIPT
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.shell import quote

SRUN_OPTIONS = "--kill-on-bad-exit=1 --label"
PROBE_SECONDS = 60
"""How long the probe may take before the job goes on without it."""


def compose(spec: JobSpec, site: Site, *, deepspeed_config: str | None = None) -> Launch:
    """Return the launch that `spec` means at `site`.

    `deepspeed_config` is the text of the job's DeepSpeed configuration, for a strategy that
    needs one.

    Raises:
        InputError: the job cannot be composed. What is only unwise is left to the adviser.
    """
    place = placement_of(spec, site)
    layout = layout_of(place)
    config, train = batches.deepspeed_of(spec, layout, deepspeed_config)
    program = program_of(place, has_config=config is not None)
    files = [LaunchFile(PROBE_SCRIPT, (TEMPLATES / "probe.sh").read_text(encoding="utf-8"))]
    if config is not None:
        files.append(LaunchFile(DEEPSPEED_CONFIG, json.dumps(config, indent=2) + "\n"))
    return Launch(
        spec=spec,
        script=_script(place, layout, program),
        layout=layout,
        price=price_of(place, layout),
        files=tuple(files),
        global_batch=train or _global_batch(spec, layout),
        can_resume=bool(place.resume_arguments),
    )


def _script(place: Placement, layout: Layout, program: Program) -> str:
    """Return job.sh: the launcher's command twice, first for the probe, then for the program."""
    signal = _stop_signal(place)
    values = _values(place, layout)
    values |= {"directives": _directives(place, layout, signal)}
    started = {"program": program, "signal": _handled(signal), "srun_options": SRUN_OPTIONS}
    probed = {"program": PROBE, "signal": "", "srun_options": f"--overlap {SRUN_OPTIONS}"}
    launcher = f"launchers/{place.launcher.name}.sh.j2"
    launch, proof = (_render(launcher, values | own).strip("\n") for own in (started, probed))
    script = _render("job.sh.j2", values | started | {"launch": launch, "proof_launch": proof})
    return script.rstrip("\n") + "\n"


def _values(place: Placement, layout: Layout) -> dict[str, object]:
    """Return what the templates of the script and of its launcher both read."""
    spec, site, container = place.spec, place.site, place.container
    activate = container.activate if container and not spec.container.venv else ""
    return {
        "modules": place.runtime.modules,
        "container": container_call(place),
        "generation": spec.container.generation or site.default_container,
        "image": spec.container.image or (container.image if container else ""),
        "environment": container_environment(place),
        "user_environment": spec.env,
        "secrets": spec.secrets,
        "node_directories": site.node_directories,
        "removed": _removed(spec, site),
        "launcher_tasks": place.launcher.tasks,
        "layout": layout,
        "masks": layout.masks,
        "planned_cores": tuple(map(taskset_list, layout.planned_cores if layout.exact else ())),
        "measured_nodes": measured_nodes(layout.nodes),
        "probe_seconds": PROBE_SECONDS,
        "code_folder": code_folder(place),
        "workdir": spec.workdir,
        "archive": CODE_ARCHIVE if spec.ship == "archive" else "",
        "node_folder": site.node_folder,
        "links": spec.links,
        "can_resume": bool(place.resume_arguments),
        "resume_arguments": " ".join(quote(word) for word in place.resume_arguments),
        "proof": spec.proof,
        "activate": f"{activate}; " if activate else "",
        "python": interpreter(place),
        "torchrun_binding": place.torchrun_binding,
    }


def _directives(place: Placement, layout: Layout, signal: str | None) -> list[str]:
    """Return the options of the script's #SBATCH lines; none has a variable."""
    spec, site = place.spec, place.site
    lines = []
    if site.account.required:
        lines.append(f"--account={spec.account}")
    lines += [f"--partition={spec.partition}", f"--nodes={spec.nodes}"]
    if site.gpu_request:
        lines.append(site.gpu_request.format(gpus=layout.gpus_per_node))
    lines += [
        f"--ntasks-per-node={layout.tasks_per_node}",
        f"--cpus-per-task={layout.cpus_per_task}",
    ]
    if spec.exclusive and place.partition.allocation == "shared":
        lines.append("--exclusive")
    lines += memory_options(place, layout)
    lines += [f"--time={spec.time}", "--open-mode=append"]
    if signal:
        lines.append(f"--signal={signal}")
    lines += [*site.sbatch_arguments, *place.partition.arguments]
    return [*lines, *spec.sbatch]


def _stop_signal(place: Placement) -> str | None:
    """Return sbatch's `--signal` of this job: the one it asks for, or SIGTERM in its place.

    A torchrun without `--signals-to-handle` dies of SIGUSR1; every version passes on SIGTERM.
    """
    launcher = place.launcher
    wanted = place.spec.signal or (place.trainer.signal if place.trainer else None)
    if launcher.tasks == "one":
        return None  # Slurm signals steps, and there is none
    if wanted is None or launcher.binding != "torchrun":
        return wanted
    if place.runtime.torchrun_signals:
        return wanted
    return f"TERM@{wanted.partition('@')[2]}"


def _handled(signal: str | None) -> str:
    """Return the signal for torchrun's `--signals-to-handle`; it passes on SIGTERM by itself."""
    name = (signal or "").partition("@")[0].removeprefix("SIG")
    return f"SIG{name}" if name not in ("", "TERM") else ""


def _removed(spec: JobSpec, site: Site) -> list[str]:
    """Return the folders that the job makes on its nodes for itself alone, as shell words."""
    code = ['"$CODE"'] if spec.ship == "archive" else []
    return code + [expand(path) for path in site.node_directories if "UNGUESSED" in path]


def _global_batch(spec: JobSpec, layout: Layout) -> int | None:
    name = batch_argument(spec)
    size = batches.whole(argument_value(spec.args, name)) if name else None
    return None if size is None else size * layout.world_size


def _render(template: str, values: Mapping[str, object]) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
    environment.filters["sh"] = quote
    environment.filters["expand"] = expand
    return environment
