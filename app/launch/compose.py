"""Composes a launch from a job file and a profile, with its job script. Pure."""

import json
from collections.abc import Iterator, Mapping
from functools import cache

import jinja2

from lumitui.app.job.launch import Launch, LaunchFile, RankLayout, measured_nodes
from lumitui.app.job.setting import argument_value, batch_argument, is_batch_global
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.stop_lead import lead_of, signal_of
from lumitui.app.launch import deepspeed_batch as batches
from lumitui.app.launch import program_call
from lumitui.app.launch.job_price import device_options, memory_options, price_of
from lumitui.app.launch.launcher_templates import TEMPLATES, TRAINER_FOLDER
from lumitui.app.launch.layout import layout_of, taskset_list
from lumitui.app.launch.placement import Placement, placement_of
from lumitui.app.launch.program_call import (
    PROBE,
    ProgramCall,
    container_call,
    container_environment,
    expand,
    gpu_numbers,
    interpreter,
    mpi_of,
    preflight_of,
    program_of,
)
from lumitui.app.launch.rank_memory import memory_of
from lumitui.app.launch.venv_script import venv_name, venv_values
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import (
    DEEPSPEED_CONFIG,
    MACHINERY,
    PREFLIGHT_SCRIPTS,
    PROBE_SCRIPT,
    VENV_SCRIPT,
)
from lumitui.remote.site.shell_text import quote

_PROOF = "proof.sh"  # measures the binding before the program starts; in every job
_FAILED_RANK = "failed_rank.sh"  # reads from a launcher's output which rank failed; in every job
_CHAIN = "chain.sh"  # for jobs with `chain:`
_RELAUNCH = "relaunch.sh"  # for jobs with `relaunch:`
_COMPILED = "compiled.sh"  # for jobs whose compilers write into the job's own folders
_COMPILERS = (
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "MIOPEN_USER_DB_PATH",
)
"""Variables with the folders in which Inductor, Triton and MIOpen keep compiled code."""
_DEBUG = "debug.sh"  # for jobs with `debug:`
_STAGE = "stage.sh"  # for jobs with `stage:`
_ACTIVATE = "activate.sh"  # for jobs with `activate:` outside a container
_ACTIVATE_INSIDE = (
    r'trap "echo \"lumitui: cannot activate \$ACTIVATE: it fails or calls exit\" >&2; exit 1" '
    'EXIT; . "$ACTIVATE"/bin/activate || exit; trap - EXIT'
)
"""For `activate:` in a container: the trap keeps `exit 0` from ending a rank as done."""
_NOTIFY = "notify.sh"  # for jobs with `notify:`
_GPUS = "gpus.sh"  # for jobs with GPUs at a site whose profile defines how to read them
_OWN = "${NODE_TMP}/"  # prefix of the profile's folders that are inside the job's own folder


def compose(
    spec: JobSpec,
    site: Site,
    *,
    deepspeed_config: str | None = None,
    dependency: tuple[str, ...] = (),
) -> Launch:
    """Return the launch of `spec` at `site`.

    `deepspeed_config` is the text of the job's DeepSpeed configuration, if its strategy needs one;
    `dependency` has sbatch's options for `after:`.

    Raises:
        InputError: the job cannot be composed. Bad choices are left to the adviser.
    """
    if key := "grid" if spec.grid else "then" if spec.then else "":
        raise InputError(
            f"The job file has several runs under `{key}:`.",
            f"Remove `{key}:`, or send all runs with `lumitui submit`.",
            field=key,
        )
    if spec.after and not dependency:
        raise InputError(
            "This job cannot wait for other runs.",
            "Omit --after, or remove `after:`.",
            field="after",
        )
    place = placement_of(spec, site)
    layout = layout_of(place)
    config, train = batches.deepspeed_of(spec, layout, deepspeed_config)
    program = program_of(place, has_config=config is not None)
    machinery = "".join(map(_template, _machinery(place, layout)))
    files = [LaunchFile(MACHINERY, machinery), LaunchFile(PROBE_SCRIPT, _template(PROBE_SCRIPT))]
    if place.preflight != "off":
        files += [LaunchFile(name, _template(f"preflight/{name}")) for name in PREFLIGHT_SCRIPTS]
    if spec.venv:
        files.append(LaunchFile(VENV_SCRIPT, _render("job/venv.sh.j2", venv_values(place))))
    if config is not None:
        files.append(LaunchFile(DEEPSPEED_CONFIG, json.dumps(config, indent=2) + "\n"))
    return Launch(
        spec=spec,
        script=_script(place, layout, program, dependency=dependency),
        layout=layout,
        price=price_of(place, layout),
        files=tuple(files),
        global_batch=train or global_batch_of(spec, layout),
        can_resume=bool(place.resume_arguments),
        memory=memory_of(spec, site, layout),
    )


def _machinery(place: Placement, layout: RankLayout) -> Iterator[str]:
    """Yield the names of the files whose functions the script calls."""
    spec = place.spec
    yield MACHINERY
    yield _PROOF
    yield _FAILED_RANK
    if _compiled(place, container_environment(place)):
        yield _COMPILED
    if spec.chain > 1:
        yield _CHAIN
    if spec.relaunch:
        yield _RELAUNCH
    if spec.debug:
        yield _DEBUG
    if spec.stage:
        yield _STAGE
    if place.activations:
        yield _ACTIVATE
    if spec.notify and spec.notify.webhook:
        yield _NOTIFY
    if _gpu_command(place, layout):
        yield _GPUS


def _gpu_command(place: Placement, layout: RankLayout) -> str:
    """Return the command that reads the GPUs of a node; "" if the job or the site has none."""
    readings = place.site.gpu_readings
    return readings.command if readings and not layout.on_cpu else ""


def _compiled(place: Placement, environment: Mapping[str, str]) -> list[str]:
    """Return the job's own folders in which compilers keep compiled code."""
    if not place.spec.keep_compiled:
        return []
    folders = (environment.get(name, "") for name in _COMPILERS)
    return [path.removeprefix(_OWN) for path in folders if path.startswith(_OWN)]


def plain_script(launch: Launch, site: Site, name: str) -> str:
    """Return the launch's script for plain Slurm, without lumitui's files.

    `name` names the job and its log.
    """
    place = placement_of(launch.spec, site)
    has_config = any(file.name == DEEPSPEED_CONFIG for file in launch.files)
    program = program_of(place, has_config=has_config)
    own = (f"--job-name={name}", "--output=slurm-%x-%j.out")
    return _script(place, launch.layout, program, plain=own)


def _script(
    place: Placement,
    layout: RankLayout,
    program: ProgramCall,
    *,
    dependency: tuple[str, ...] = (),
    plain: tuple[str, ...] = (),
) -> str:
    """Return job.sh or, with the extra options `plain`, the script for plain Slurm.

    job.sh defines a function that launches first the probe, then the program. The plain script has
    the launcher's command itself.
    """
    signal = _stop_signal(place)
    directives = _directives(place, layout, signal, exported=bool(plain))
    values = _values(place, layout) | _signal_values(place, signal)
    values |= {
        "exported": bool(plain),
        "chain": 1 if plain else place.spec.chain,
        "relaunch": 0 if plain else place.spec.relaunch,
        "directives": [*directives, *dependency, *plain],
    }
    preflight = preflight_of(place, layout)
    words = [each.words_for(place.launcher) for each in (program, PROBE, preflight)]
    values |= dict(zip(("program", "probe", "preflight_program"), words, strict=True))
    values |= {"started": words[0] if plain else '"$@"'}
    launch = _render(f"launchers/{place.launcher.name}.sh.j2", values)
    launch = launch.strip("\n")
    body = launch if plain else "\n".join(f"  {line}" for line in launch.split("\n"))
    return _render("job/job.sh.j2", values | {"launch": body}).rstrip("\n") + "\n"


def _values(place: Placement, layout: RankLayout) -> dict[str, object]:
    """Return the values for the templates of the script and of its launcher."""
    spec, site, container = place.spec, place.site, place.container
    venv = venv_name(place) if spec.venv else spec.container.venv or ""
    activate = container.activate if container and not venv else ""
    if container and spec.activate:
        activate = _ACTIVATE_INSIDE
    environment = container_environment(place)
    own = [path.removeprefix(_OWN) for path in site.node_directories if path.startswith(_OWN)]
    needs_tmp = own or any("${NODE_TMP}" in value for value in environment.values())
    mpi = mpi_of(place)
    return {
        "modules": (*place.modules, *(mpi.modules if mpi else ())),
        "activations": place.activations,
        "activated": quote(spec.activate[0]) if container and spec.activate else "",
        "container": container_call(place),
        "venv": venv if spec.venv else "",
        "generation": spec.container.generation or site.default_container,
        "image": program_call.word(place.image, spec.stage),
        "environment": environment,
        "user_environment": {
            name: program_call.word(value, spec.stage) for name, value in spec.env.items()
        },
        "staged": list(spec.stage),
        "secrets": spec.secrets,
        "site": site.name,
        "notify": spec.notify if spec.notify and spec.notify.webhook else None,
        "node_tmp": place.node_folder if needs_tmp else "",
        "node_folders": own,
        "node_directories": [path for path in site.node_directories if not path.startswith(_OWN)],
        "launcher_tasks": place.launcher.tasks,
        "scheduler": site.scheduler,
        "binding": place.launcher.binding,
        "mpi": mpi,
        "hostfile": spec.hostfile,
        "visible_gpus": site.visible_gpus,
        "spare_cores": layout.tasks_per_node * layout.cpus_per_task < len(site.node.usable_cores),
        "some_gpus": layout.gpus_per_node < site.node.gpus and not layout.on_cpu,
        "gpu_numbers": gpu_numbers(place, layout),
        "gpu_command": _gpu_command(place, layout),
        "layout": layout,
        "masks": layout.masks,
        "planned_cores": tuple(map(taskset_list, layout.planned_cores if layout.exact else ())),
        "measured_nodes": measured_nodes(layout.nodes),
        "workdir": spec.workdir,
        "limit": walltime.seconds_of(spec.time),
        "lead": lead_of(spec) or 0,
        "can_resume": bool(place.resume_arguments),
        "resume_arguments": " ".join(quote(word) for word in place.resume_arguments),
        "debug": walltime.seconds_of(spec.debug) if spec.debug else 0,
        "proof": spec.proof,
        "preflight": place.preflight,
        "compiled": _compiled(place, environment),
        "compiled_for": "|".join((site.node.gpu, venv, place.runtime.python)),
        "activate": f"{activate}; " if activate else "",
        "python": interpreter(place),
        "torchrun_binding": place.torchrun_binding,
    }


def _directives(
    place: Placement, layout: RankLayout, signal: str | None, *, exported: bool
) -> list[str]:
    """Return the options of the script's #SBATCH lines, without variables."""
    spec, site = place.spec, place.site
    lines = []
    if site.account.required:
        lines.append(f"--account={spec.account}")
    lines += [f"--partition={place.partition.slurm_partition or spec.partition}"]
    lines += [f"--nodes={spec.nodes}", *device_options(place, layout)]
    lines += [
        f"--ntasks-per-node={layout.tasks_per_node}",
        f"--cpus-per-task={layout.cpus_per_task}",
    ]
    if spec.exclusive and place.partition.allocation == "shared":
        lines.append("--exclusive")
    lines += memory_options(place, layout)
    lines += [f"--time={spec.time}", "--open-mode=append"]
    if spec.chain > 1 and not exported:
        lines.append("--requeue")  # some sites forbid requeueing by default
    if signal:
        lines.append(f"--signal={signal}")
    if spec.notify and spec.notify.mail and site.mail:
        lines += ["--mail-type=END,FAIL", f"--mail-user={spec.notify.mail}"]
    lines += [*site.sbatch_arguments, *place.partition.arguments]
    return [*lines, *spec.sbatch]


def _stop_signal(place: Placement) -> str | None:
    """Return sbatch's `--signal` for this job: the requested signal, or a substitute.

    Under any launcher, a bundled trainer looks for a file that the script creates on the signal
    (`B:`). Any other program gets the signal itself, unless it requests the file (`B:`). SIGUSR1
    kills a torchrun without `--signals-to-handle`; every version passes on SIGTERM.
    """
    launcher = place.launcher
    signal = signal_of(place.spec)
    if signal and (place.trainer or signal.startswith("B:")):
        return f"B:{signal.removeprefix('B:')}"
    if launcher.signals == "none":
        return None  # Slurm signals the steps' tasks: none exist, or none passes it on
    if signal is None or launcher.signals == "all":
        return signal
    if place.runtime.torchrun_signals:
        return signal
    return f"TERM@{signal.partition('@')[2]}"


def _signal_values(place: Placement, signal: str | None) -> dict[str, object]:
    """Return the templates' values for the job's stop signal."""
    head, _, lead = (signal or "").partition("@")
    to_script, _, name = head.rpartition(":")
    own = name.removeprefix("SIG")
    # torchrun always passes on SIGTERM, and other signals only in newer versions. For a bundled
    # trainer, this is the signal that a user may send manually.
    handled = own not in ("", "TERM") and place.runtime.torchrun_signals
    return {
        "stop_on": name if to_script else "",
        "signal": f"SIG{own}" if handled else "",
        # How long torchrun waits for ranks that save on a signal; by default it kills them after
        # 30 s. Versions before PyTorch 2.12 ignore the variable.
        "save_seconds": int(lead) if lead and not to_script else None,
    }


def global_batch_of(spec: JobSpec, layout: RankLayout) -> int | None:
    """Return the samples of a step that the arguments give; None if unknown."""
    name = batch_argument(spec)
    size = batches.whole(argument_value(spec.args, name)) if name else None
    if size is None or is_batch_global(spec):
        return size
    return size * layout.world_size * batches.micro_steps(spec)


@cache
def _template(name: str) -> str:
    """Return the text of a file that is copied unchanged to the run's folder."""
    folder = TRAINER_FOLDER if name.startswith("preflight/") else TEMPLATES / "job"
    return (folder / name).read_text(encoding="utf-8")


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
