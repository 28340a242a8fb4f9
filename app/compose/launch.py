"""compose(spec, site) -> Launch: everything derived from the job file and the profile. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import jinja2

from lumitui.app.compose import deepspeed_batch as batches
from lumitui.app.compose.binding import taskset_list
from lumitui.app.compose.layout import (
    TEMPLATES,
    container_of,
    launcher_of,
    layout_of,
    memory_options,
    price_of,
    stop_signal,
    torchrun_binding,
)
from lumitui.app.job.launch import Launch, LaunchFile, Layout, measured_nodes
from lumitui.app.job.script_args import argument_value
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES, TRAINERS, Trainer
from lumitui.remote.errors import InputError
from lumitui.remote.run_folder import CODE_ARCHIVE
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.quoting import quote

BUNDLED = ".lumitui/trainers"
"""Where a bundled trainer lies in a run's code."""
SRUN_OPTIONS = "--kill-on-bad-exit=1 --label"
PROBE_SECONDS = 60
"""How long the probe may take before the job goes on without it."""


@dataclass(frozen=True)
class Program:
    """What the launcher starts, as shell words."""

    command: str
    """The whole command line."""
    path: str = ""
    arguments: str = ""
    is_python: bool = False


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


def expand(text: str) -> str:
    """Return a profile's value as a double-quoted shell word: `$NAME` and `${NAME}` expand."""
    text = re.sub(r'([\\"`])', r"\\\1", text).replace("$(", "\\$(")
    return f'"{text}"'


def compose(spec: JobSpec, site: Site, *, deepspeed_config: str | None = None) -> Launch:
    """Return the launch that `spec` means at `site`.

    `deepspeed_config` is the text of the job's DeepSpeed configuration, for a strategy that
    needs one.

    Raises:
        InputError: the job cannot be composed; what is only unwise is the adviser's business.
    """
    layout, launcher = layout_of(spec, site), launcher_of(spec)
    container, bundled = container_of(spec, site), TRAINERS.get(spec.trainer or "")
    files = [LaunchFile("probe.sh", (TEMPLATES / "probe.sh").read_text(encoding="utf-8"))]
    options, train = deepspeed_of(spec, layout, deepspeed_config)
    if options is not None:
        files.append(LaunchFile("ds_config.json", json.dumps(options, indent=2) + "\n"))
    resume = spec.resume or (bundled.resume if bundled else ())
    signal = stop_signal(spec, site, spec.signal or (bundled.signal if bundled else None))
    python = _interpreter(container.python if container else site.python)
    folder = _code_folder(spec, site)
    program = _program(
        spec, bundled, python, folder, has_config=options is not None, resume=bool(resume)
    )
    probe = Program('sh "$RUN_DIR/probe.sh"')
    activate = container.activate if container and not spec.container.venv else ""
    values: dict[str, object] = {
        "directives": directives(spec, site, layout, signal),
        "modules": container.modules if container else site.modules,
        "container": _container_call(spec, container),
        "generation": spec.container.generation or site.default_container,
        "image": spec.container.image or (container.image if container else ""),
        "environment": _profile_environment(spec, site, container),
        "user_environment": spec.env,
        "secrets": spec.secrets,
        "node_directories": site.node_directories,
        "removed": _removed(spec, site),
        "launcher_tasks": launcher.tasks,
        "layout": layout,
        "masks": layout.masks,
        "planned_cores": tuple(map(taskset_list, layout.planned_cores if layout.exact else ())),
        "measured_nodes": measured_nodes(layout.nodes),
        "probe_seconds": PROBE_SECONDS,
        "code_folder": folder,
        "workdir": spec.workdir,
        "archive": CODE_ARCHIVE if spec.ship == "archive" else "",
        "node_folder": site.node_folder,
        "links": spec.links,
        "can_resume": bool(resume),
        "resume_arguments": " ".join(quote(word) for word in resume),
        "proof": spec.proof,
        "activate": f"{activate}; " if activate else "",
        "python": python,
        "torchrun_binding": torchrun_binding(spec, site),
        "signal": _handled(signal),
        "srun_options": SRUN_OPTIONS,
    }
    template = f"launchers/{launcher.name}.sh.j2"
    launch = _render(template, values | {"program": program})
    beside = {"program": probe, "signal": "", "srun_options": f"--overlap {SRUN_OPTIONS}"}
    proof = _render(template, values | beside)
    script = _render("job.sh.j2", values | {"launch": launch, "proof_launch": proof})
    return Launch(
        spec=spec,
        script=script.rstrip("\n") + "\n",
        layout=layout,
        price=price_of(spec, site),
        files=tuple(files),
        global_batch=train or _global_batch(spec, bundled, layout),
        can_resume=bool(resume),
    )


def directives(spec: JobSpec, site: Site, layout: Layout, signal: str | None) -> list[str]:
    """Return the options of the script's #SBATCH lines; none has a variable."""
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
    if spec.exclusive and site.partitions[spec.partition].allocation == "shared":
        lines.append("--exclusive")
    lines += memory_options(spec, site, layout)
    lines += [f"--time={spec.time}", "--open-mode=append"]
    if signal:
        lines.append(f"--signal={signal}")
    lines += [*site.sbatch_arguments, *site.partitions[spec.partition].arguments]
    return [*lines, *spec.sbatch]


def has_deepspeed(spec: JobSpec) -> bool:
    """Return whether a DeepSpeed configuration goes with the job: by its strategy, or named."""
    return STRATEGIES[spec.strategy].zero_stage is not None or spec.deepspeed is not None


def _render(template: str, values: Mapping[str, object]) -> str:
    text = _environment().get_template(template).render(**values)
    return text.strip("\n") if template.startswith("launchers/") else text


def _container_call(spec: JobSpec, container: Container | None) -> str:
    if container is None:
        return ""
    words = [quote(word) for word in container.call]
    if spec.container.venv:
        words += ["-B", quote(f"{spec.container.venv}:{container.venv_mount}:image-src=/")]
    for bind in spec.container.binds:
        words += ["-B", quote(bind)]
    return " ".join([*words, '"$SIF"'])


def _profile_environment(spec: JobSpec, site: Site, container: Container | None) -> dict[str, str]:
    values = dict(site.environment)
    if container:
        values |= container.environment
        if spec.container.venv:
            values |= container.venv_environment
    # Lines reach the log as they are printed; without it Python keeps 8 KiB back.
    values.setdefault("PYTHONUNBUFFERED", "1")
    return {name: value for name, value in values.items() if name not in spec.env}


def _code_folder(spec: JobSpec, site: Site) -> str:
    """Return where the code lies while the job runs, as a shell word."""
    if spec.ship != "archive":
        return '"$RUN_DIR"/code'
    if not site.node_folder:
        raise InputError(
            f"{site.name}'s profile names no folder of the nodes for a project sent as an archive.",
            "Exclude data in .lumituiignore and reach it with `links:`, or set `node_folder:`.",
        )
    return '"$CODE"'


def _program(
    spec: JobSpec,
    bundled: Trainer | None,
    python: str,
    folder: str,
    *,
    has_config: bool,
    resume: bool,
) -> Program:
    path = f"{BUNDLED}/{bundled.file}" if bundled else spec.script or ""
    words = [quote(word) for word in spec.args]
    if has_config:
        words += ["--deepspeed", "--deepspeed_config", '"$RUN_DIR/ds_config.json"']
    if resume:
        # The long form: an empty array is "unbound" for bash before 4.4 under set -u.
        words.append('${resume[@]+"${resume[@]}"}')
    arguments = "".join(f" {word}" for word in words)
    quoted = f"{folder}/{quote(path)}"
    if not path.endswith(".py"):
        return Program(f"{quoted}{arguments}")
    return Program(f"{python} {quoted}{arguments}", quoted, arguments, is_python=True)


def _removed(spec: JobSpec, site: Site) -> list[str]:
    """Return what the job makes on its nodes for itself alone, as shell words."""
    code = ['"$CODE"'] if spec.ship == "archive" else []
    return code + [expand(path) for path in site.node_directories if "UNGUESSED" in path]


def _interpreter(python: str) -> str:
    """Return a profile's interpreter as a shell word; `${NAME:-python3}` expands."""
    return python if re.match(r"^[\w./-]+$", python) else expand(python)


def deepspeed_of(
    spec: JobSpec, layout: Layout, text: str | None
) -> tuple[dict[str, object] | None, int | None]:
    """Return the configuration that a job sends when its file says `text`, and its global batch.

    Both are None for a job without DeepSpeed.

    Raises:
        InputError: there is no configuration, or its batch cannot be split over the ranks.
    """
    if not has_deepspeed(spec):
        return None, None
    if text is None:
        raise InputError(
            f"The strategy {spec.strategy} needs a DeepSpeed configuration.",
            "Name one: `deepspeed: {config: ds_config.json}`.",
        )
    name = spec.deepspeed.config if spec.deepspeed else "the trainer's ds_config.json"
    config = batches.read_config(text, name)
    if spec.deepspeed is None:
        zero = config.get("zero_optimization")
        stage = STRATEGIES[spec.strategy].zero_stage
        config["zero_optimization"] = (zero if isinstance(zero, dict) else {}) | {"stage": stage}
    batch = batches.batch_of(config, layout.ranks_per_node, layout.nodes)
    return batches.with_batch(config, batch), batch.train


def sent_config(launch: Launch) -> dict[str, object]:
    """Return the configuration that goes with a launch; empty where none does."""
    for file in launch.files:
        if file.name == "ds_config.json":
            return batches.read_config(file.content, file.name)
    return {}


def _global_batch(spec: JobSpec, bundled: Trainer | None, layout: Layout) -> int | None:
    rule = spec.scale.batch.arg if spec.scale else None
    name = rule or (bundled.batch_arg if bundled else None)
    value = argument_value(spec.args, name) if name else None
    size = batches.whole(value)
    return None if size is None else size * layout.world_size


def _handled(signal: str | None) -> str:
    """Return the signal that torchrun must be told of; SIGTERM it passes on anyway."""
    name = (signal or "").partition("@")[0].removeprefix("SIG")
    return f"SIG{name}" if name not in ("", "TERM") else ""
