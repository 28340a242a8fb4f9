"""The files of a job on the laptop: its project, DeepSpeed configuration, bundled trainer."""

import hashlib
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.program_call import BUNDLED
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.app.launch.rules.outside_project import outside_findings
from lumitui.app.launch.rules.script_texts import texts_of
from lumitui.app.launch.send.code import code_findings
from lumitui.app.launch.send.code.code_findings import taken_links
from lumitui.app.launch.send.staging_plan import heeded, left_out
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.source_position import at_key
from lumitui.remote.site.webhook_address import check_webhook
from lumitui.remote.source.guard import ScanGuard, Suspect
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.project_walk import Follow
from lumitui.remote.source.scan import scan

_CONFIG_BYTES = 1_000_000
"""Size limit in bytes, above that of any DeepSpeed configuration."""


@dataclass(frozen=True)
class Code:
    """The code of a run: its manifest, and its files on the laptop."""

    root: Path
    manifest: Manifest
    extra: Mapping[str, Path]
    """Files from outside the project, by their path in the code."""
    kept_back: tuple[Suspect, ...] = ()
    """Files that look like secrets, which lumitui does not send."""


def project_folder(folder: Path, project: str) -> Path:
    """Return the absolute path of `project`, which is relative to the job file's `folder`.

    A missing folder is not an error yet: the preview reports it with the other mistakes.

    Raises:
        InputError: a link leads to itself, or a name is too long for this machine.
    """
    path = folder / project
    try:
        root = path.resolve()
        root.is_dir()
    except RuntimeError as error:  # resolve() raises it for ELOOP
        raise InputError(
            f"The project {_short(path)} is a link that leads to itself.",
            "Check `project:`.",
            field="project",
        ) from error
    except OSError as error:
        raise InputError(
            f"Cannot read the project {_short(path)}: {error.strerror}.",
            "Check `project:`.",
            field="project",
        ) from error
    return root


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:200]}…"


def project_name(root: Path) -> str:
    """Return the folder's name as part of a path on a site."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-.") or "project"


def deepspeed_config(spec: JobSpec, root: Path) -> str | None:
    """Return the text of the job's DeepSpeed configuration; None if it needs none.

    Raises:
        InputError: the file does not exist, is not text, looks like a secret, or is outside of
            the project and `follow_links:` does not name the link to it.
    """
    name = spec.deepspeed.config if spec.deepspeed else ""
    if name:
        path = root / name
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
        if not inside and not Follow(spec.follow_links).names(posixpath.normpath(name)):
            raise InputError(
                f"The DeepSpeed configuration {name} is outside the project.",
                "Copy it into the project, or name the link to it under `follow_links:`.",
                field="deepspeed.config",
            )
    elif STRATEGIES[spec.strategy].zero_stage is not None and spec.trainer:
        path = TRAINER_FOLDER / "ds_config.json"
    else:
        return None
    try:
        text = read_plain(path, _CONFIG_BYTES + 1)
        if len(text) > _CONFIG_BYTES:
            raise InputError(
                f"{path} is larger than {_CONFIG_BYTES // 1000} kB.", "Check `deepspeed.config`."
            )
        if name:
            use = code_findings.DEEPSPEED_USE
            code_findings.refuse_secret(path, name, text, spec.ship_secrets, use)
        return text.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"Cannot read the DeepSpeed configuration {path}.", "Check `deepspeed.config`."
        ) from error


@dataclass(frozen=True)
class Files:
    """A job's files on the laptop, as a preview describes them."""

    project: Path
    findings: tuple[Finding, ...]
    """Files that the laptop lacks for the job, and files that lumitui does not send."""
    kept_back: tuple[Suspect, ...] = ()
    """Files that look like secrets, which lumitui does not send."""
    shipped: tuple[Suspect, ...] = ()
    """Files that look like secrets, but are sent because the job file lists them."""
    ships_code: bool = True
    """Whether code is sent; False: the site already has it."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Texts of the project for the rules, by their paths."""
    count: int = 0
    """Files to send as code; 0 also if they could not be read."""
    bytes: int = 0
    """The total size of those files, in bytes."""
    snapshot: str = ""
    """The id that the code's snapshot would have; "": no code is sent, or it is unreadable."""

    @property
    def weight(self) -> str:
        """The amount of code, like `12 files, 40 kB`; "" if it is unknown or none."""
        return code_findings.code_size(self.count, self.bytes) if self.count else ""


def look(
    spec: JobSpec,
    project: Path,
    hashes: Path | None,
    *,
    ships_code: bool = True,
    environ: Mapping[str, str] = os.environ,
) -> Files:
    """Inspect the files that `spec` sends, in their current state.

    This reads them as a send does, so the send finds their hashes in `hashes`. Without
    `ships_code`, the site already has the code, and only the secrets are checked.
    """
    unset = [name for name in spec.secret_names if not environ.get(name)]
    problems = [("secrets", "secrets", _no_secret(name)) for name in unset]
    if spec.notify and spec.notify.webhook and spec.notify.webhook not in unset:
        try:
            check_webhook(environ[spec.notify.webhook])
        except ValueError as error:
            words = f"{spec.notify.webhook} is not a valid address for notifications: {error}."
            problems.append(("secrets", "notify", InputError(words, "Correct it.")))
    if not ships_code:
        return Files(project, _errors(problems), ships_code=False)
    try:
        if not project.is_dir():
            raise _no_project(project)
        code, guard = _scanned(spec, project, hashes)
    except InputError as error:
        return Files(project, _errors([*problems, ("project", "project", error)]))
    needed = _needed(spec, code, guard)
    problems += _problems(spec, code, guard, needed)
    elsewhere = heeded(spec, project) if guard.unused else frozenset()
    suspects = code_findings.secret_findings(guard, [suspect for suspect, _ in needed], elsewhere)
    kept = {suspect.path for suspect in guard.kept_back}
    paths = {entry.path for entry in code.manifest.entries} | kept
    absent = code_findings.absent_configs(spec, paths) if spec.script else ()
    texts = texts_of(spec, project)
    outside = outside_findings(spec, project, texts)
    own = (one for one in code.manifest.files if not one.path.startswith(f"{BUNDLED}/"))
    return Files(
        project,
        (*_errors(problems), *absent, *outside, *suspects, *code_findings.weight_findings(own)),
        code.kept_back,
        tuple(guard.shipped),
        programs=texts,
        count=sum(1 for _ in code.manifest.files),
        bytes=code.manifest.size,
        snapshot=code.manifest.id,
    )


Problem = tuple[str, str, InputError]
"""A reason not to send a job: the rule, the key of the job file, and the error."""


class ScriptMissing(InputError):
    """The code lacks the script; it may have one with a similar name."""

    def __init__(self, message: str, cure: str, near: Sequence[str]) -> None:
        """Keep a fix: the first name that is `near` the script's; `cure` says what else to do."""
        super().__init__(message, "".join(f"Did you mean {one}? " for one in near[:1]) + cure)
        self.fix = Fix(f"use {near[0]}", at_key("script"), near[0]) if near else None


def _errors(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    return tuple(
        hit(rule, key, error.message, error.hint, source="the files here", final=True,
            fix=error.fix if isinstance(error, ScriptMissing) else None)
        for rule, key, error in problems
    )  # fmt: skip


def _problems(
    spec: JobSpec, code: Code, guard: ScanGuard, needed: Sequence[tuple[Suspect, InputError]]
) -> Iterator[Problem]:
    """Yield `needed` files that lumitui does not send, and files that the code lacks."""
    for _, error in needed:
        yield "secret-needed", "ship_secrets", error
    kept = {suspect.path for suspect in guard.kept_back}
    here = f"Put it into {code.root}, and check .gitignore and .lumituiignore."
    yield from lacks(spec, code.manifest, "The code", here, kept)
    for key, error in taken_links(spec, code.manifest):
        yield "link-taken", key, error


_NEAR = 0.75  # of get_close_matches: below it, names like train.py and main.py would match
_NO_PROGRAM = (".txt", ".md", ".yaml", ".yml", ".json", ".csv", ".log")


def lacks(
    spec: JobSpec, sent: Manifest, code: str, cure: str, kept: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield a working folder or script that `code`, whose files are `sent`, lacks or cannot run."""
    workdir, script = (posixpath.normpath(each or ".") for each in (spec.workdir, spec.script))
    if workdir != "." and not any(one.path.startswith(f"{workdir}/") for one in sent.entries):
        message = f"{code} has no files in the working folder {spec.workdir}."
        yield "workdir", "workdir", InputError(message, "Check `workdir:`.")
    found = next((one for one in sent.entries if one.path == script), None)
    if found is None and script != "." and script not in kept:
        near = get_close_matches(script, [one.path for one in sent.entries], 1, _NEAR)
        message = f"{code} lacks the script {spec.script}."
        yield "script", "script", ScriptMissing(message, cure, near)
    if found and posixpath.splitext(script)[1] in _NO_PROGRAM:
        message = f"{spec.script} is neither Python (.py) nor another program."
        do = "Set `script:` to the program that each rank runs."
        yield "script", "script", InputError(message, do)


def _needed(spec: JobSpec, code: Code, guard: ScanGuard) -> list[tuple[Suspect, InputError]]:
    own = [entry.path for entry in code.manifest.files if entry.path not in code.extra]
    return list(code_findings.needed_by(spec, code.root, guard, own))


def _no_project(root: Path) -> InputError:
    return InputError(f"The project {root} is not a folder.", "Check `project:`.")


def _no_secret(name: str) -> InputError:
    return InputError(f"The secret {name} is not set in this shell.", f"Run `export {name}=…`.")


def collect(spec: JobSpec, root: Path, hashes: Path | None = None) -> Code:
    """Return the code to send: the project's files and the bundled trainer's.

    `hashes` is the folder with the hashes of files, so that unchanged ones are not read again.

    Raises:
        InputError: the script or the working folder is missing, a file that the job needs looks
            like a secret, or a file is refused.
    """
    if not root.is_dir():
        raise _no_project(root)
    code, guard = _scanned(spec, root, hashes)
    for _, _, error in _problems(spec, code, guard, _needed(spec, code, guard)):
        raise error
    return code


def _scanned(spec: JobSpec, root: Path, hashes: Path | None) -> tuple[Code, ScanGuard]:
    extra, elsewhere = _bundled(spec), left_out(spec, root)
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:24]
    kept = Hashes(hashes / f"{name}.json", root) if hashes else None
    guard, follow = ScanGuard(spec.ship_secrets), Follow(spec.follow_links)
    manifest = scan(root, extra=extra, guard=guard, hashes=kept, elsewhere=elsewhere, follow=follow)
    return Code(root, manifest, {**extra, **follow.taken}, tuple(guard.kept_back)), guard


def secret_values(spec: JobSpec, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the job's secrets from the laptop's environment; InputError if one is not set."""
    missing = [name for name in spec.secret_names if not environ.get(name)]
    if missing:
        raise _no_secret(missing[0])
    return {name: environ[name] for name in spec.secret_names}


def _bundled(spec: JobSpec) -> dict[str, Path]:
    if spec.trainer is None:
        return {}
    others = {trainer.file for trainer in TRAINERS.values()} - {TRAINERS[spec.trainer].file}
    files = {}
    for path in sorted(TRAINER_FOLDER.rglob("*")):
        place = path.relative_to(TRAINER_FOLDER)
        # A checkout has caches there: mypy's alone has 38 MB.
        cached = any(part.startswith((".", "__pycache__")) for part in place.parts)
        separate = place.parts[0] == "preflight"  # goes to the run's folder, with any program
        if path.is_file() and not (cached or separate) and place.as_posix() not in others:
            files[f"{BUNDLED}/{place.as_posix()}"] = path
    return files
