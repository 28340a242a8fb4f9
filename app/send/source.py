"""The files of a job on the laptop: its project, DeepSpeed configuration, bundled trainer."""

import hashlib
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.compose.finding import Finding
from lumitui.app.compose.program import BUNDLED
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote.errors import InputError
from lumitui.remote.snapshots import archive
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan
from lumitui.remote.source.walk import MAX_BYTES, MAX_FILES, Limits, exceeds, has

TRAINER_FOLDER = Path(__file__).resolve().parents[2] / "trainers"


@dataclass(frozen=True)
class Code:
    """The code that is sent with a run: the manifest, and where its files are on the laptop."""

    root: Path
    manifest: Manifest
    extra: Mapping[str, Path]
    """Files from outside the project, by the path they get."""


def project_name(root: Path) -> str:
    """Return the folder's name as a part of a path on a site."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-.") or "project"


def deepspeed_config(spec: JobSpec, root: Path) -> str | None:
    """Return the text of the DeepSpeed configuration the job needs; None when it needs none.

    Raises:
        InputError: the file is not there or not text.
    """
    if spec.deepspeed is not None:
        path = root / spec.deepspeed.config
    elif STRATEGIES[spec.strategy].zero_stage is not None and spec.trainer:
        path = TRAINER_FOLDER / "ds_config.json"
    else:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The DeepSpeed configuration {path} cannot be read.", "Check `deepspeed.config`."
        ) from error


def with_ship_mode(spec: JobSpec, root: Path) -> JobSpec:
    """Return `spec` with `ship: archive` when it is `auto` and the project is over the limits.

    The files are counted each time. The count stops at the limits: it took 10 ms for 1000 files
    and 50 ms for 5000, the most.
    """
    if spec.ship != "auto" or not exceeds(root):
        return spec
    return changed(spec, {"ship": "archive"}, "ship")


def faults(
    spec: JobSpec, root: Path | None, environ: Mapping[str, str] = os.environ
) -> tuple[Finding, ...]:
    """Return what the laptop lacks to send `spec`: its project, script, working folder, secrets.

    Only names are checked here; `collect` checks the files when they are sent. Without `root` the
    code is on the site already.
    """
    found = [("secrets", _no_secret(name)) for name in spec.secrets if not environ.get(name)]
    if root is not None:
        found += _absent(spec, root) if root.is_dir() else [("project", _no_project(root))]
    return tuple(
        Finding(key, "error", problem.message, problem.hint, "the files here")
        for key, problem in found
    )


def _absent(spec: JobSpec, root: Path) -> list[tuple[str, InputError]]:
    """Return the keys of the job file whose file or folder is not sent, each with the reason."""
    workdir, found = posixpath.normpath(spec.workdir), []
    wanted = [("workdir", workdir, _no_workdir(spec))] if workdir != "." else []
    if spec.script:
        wanted.append(("script", posixpath.normpath(spec.script), _no_script(spec, root)))
    for key, path, problem in wanted:
        try:
            if not _ships(root, path, folder=key == "workdir"):
                found.append((key, problem))
        except InputError as refused:
            found.append((key, refused))
    return found


def _ships(root: Path, path: str, *, folder: bool) -> bool:
    place = root / path
    if place.is_dir() != folder or (folder and place.is_symlink()):
        return False
    return has(root, path)


def _no_project(root: Path) -> InputError:
    return InputError(f"The project {root} is not a folder.", "Check `project:`.")


def _no_script(spec: JobSpec, root: Path) -> InputError:
    return InputError(
        f"The script {spec.script} is not among the files that are sent.",
        f"It must lie in {root} and not be ignored by .gitignore or .lumituiignore.",
    )


def _no_workdir(spec: JobSpec) -> InputError:
    return InputError(
        f"The working folder {spec.workdir} has no files that are sent.", "Check `workdir:`."
    )


def _no_secret(name: str) -> InputError:
    return InputError(f"The secret {name} is not set in this shell.", f"export {name}=… first.")


def collect(spec: JobSpec, root: Path, hashes: Path | None = None) -> Code:
    """Return what is sent: the project's files, and the bundled trainer's beside them.

    `hashes` is the folder that keeps the hashes of files, so that unchanged ones are not read
    again.

    Raises:
        InputError: the script or the working folder is not among them, or a file is refused.
    """
    if not root.is_dir():
        raise _no_project(root)
    extra = _bundled(spec)
    packed = spec.ship == "archive"
    manifest = scan(
        root,
        extra=extra,
        allow=spec.allow,
        limits=Limits(archive.MAX_FILES, archive.MAX_BYTES)
        if packed
        else Limits(MAX_FILES, MAX_BYTES, ", or send it as one archive with `ship: archive`"),
        hashes=_hashes(hashes, root) if hashes else None,
    )
    paths = {entry.path for entry in manifest.entries}
    if spec.script and posixpath.normpath(spec.script) not in paths:
        raise _no_script(spec, root)
    workdir = posixpath.normpath(spec.workdir)
    if workdir != "." and not any(path.startswith(f"{workdir}/") for path in paths):
        raise _no_workdir(spec)
    for name in map(posixpath.normpath, spec.links) if packed else ():
        if name in paths or any(path.startswith(f"{name}/") for path in paths):
            raise InputError(
                f"links: {name} is already a file or folder of the code.", "Name another one."
            )
    return Code(root, manifest, extra)


def _hashes(folder: Path, root: Path) -> Hashes:
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:24]
    return Hashes(folder / f"{name}.json", root)


def secret_values(spec: JobSpec, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the values of the job's secrets from the laptop's environment.

    Raises:
        InputError: one of them is not set.
    """
    missing = [name for name in spec.secrets if not environ.get(name)]
    if missing:
        raise _no_secret(missing[0])
    return {name: environ[name] for name in spec.secrets}


def _bundled(spec: JobSpec) -> dict[str, Path]:
    if spec.trainer is None:
        return {}
    others = {trainer.file for trainer in TRAINERS.values()} - {TRAINERS[spec.trainer].file}
    found = {}
    for path in sorted(TRAINER_FOLDER.rglob("*")):
        place = path.relative_to(TRAINER_FOLDER)
        # A checkout holds caches there: mypy's alone has 38 MB.
        cached = any(part.startswith((".", "__pycache__")) for part in place.parts)
        if path.is_file() and not cached and path.name not in others:
            found[f"{BUNDLED}/{place.as_posix()}"] = path
    return found
