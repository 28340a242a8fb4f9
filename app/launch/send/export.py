"""Writes a job as a folder for plain Slurm, for a colleague without lumitui or a helpdesk."""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.app.job.settings import version
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.compose import plain_script
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.preview import Preview
from lumitui.app.launch.send.shipment import slug
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import CODE, DEEPSPEED_CONFIG, JOB_SCRIPT, VENV_SCRIPT
from lumitui.remote.source.manifest import ManifestEntry
from lumitui.remote.source.scan import source_of
from lumitui.remote.transfer.contents.pieces import content

README = "README.md"


@dataclass(frozen=True)
class ExportedFolder:
    """A written folder."""

    path: Path
    files: int
    """Number of code files in the folder."""
    kept_back: tuple[str, ...]
    """Project files that the folder lacks because they look like secrets."""


def export(preview: Preview, target: Path, hashes: Path) -> ExportedFolder:
    """Write the job of `preview` into the folder `target`, which must be new or empty.

    Nothing in the folder needs lumitui, and it contains no values of secrets: its README.md lists
    the variables to export. An unfinished folder is removed. The rules' errors do not prevent an
    export.

    Raises:
        InputError: a file is missing or may not be sent, the site has no Slurm, or `target` exists.
    """
    site, spec = preview.site, preview.launch.spec
    if site.scheduler != "slurm":
        raise InputError(
            f"{site.name} has no Slurm to run an exported job.", "Choose another `site:`."
        )
    # A secret need not be set here, since its value is not exported.
    others = tuple(each for each in preview.findings if each.rule != "secrets")
    replace(preview, findings=others, forced=True).check()
    code = project_files.collect(spec, preview.project, hashes)
    target = Path(os.path.abspath(target))
    part = target.with_name(f".{target.name}.part-{secrets.token_hex(4)}")
    try:
        is_empty = target.is_dir() and next(target.iterdir(), None) is None
        if target.is_symlink() or (target.exists() and not is_empty):
            raise InputError(f"{target} already exists.", "Choose a new folder, or an empty one.")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.mkdir(mode=0o700)
        try:
            _write_files(part, preview, code)
            part.rename(target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    except OSError as error:
        raise InputError(
            f"Cannot write {target}: {error.strerror}.", "Choose another folder."
        ) from error
    return ExportedFolder(target, len(code.manifest.entries), tuple(map(str, code.kept_back)))


def _write_files(folder: Path, preview: Preview, code: project_files.Code) -> None:
    launch, spec = preview.launch, preview.launch.spec
    script = plain_script(launch, preview.site, slug(spec.name))
    _write(folder / JOB_SCRIPT, [script.encode()], 0o700)
    readme = "\n".join(_readme_lines(spec, preview.site, slug(spec.name)))
    _write(folder / README, [f"{readme}\n".encode()], 0o600)
    for name in (VENV_SCRIPT, DEEPSPEED_CONFIG):
        if text := launch.texts.get(name):
            _write(folder / name, [text.encode()], 0o600)
    links = (ManifestEntry(name.rstrip("/"), 0, False, "", to) for name, to in spec.links.items())
    entries, where = [*code.manifest.entries, *links], source_of(code.root, code.extra)
    (folder / CODE).mkdir(mode=0o700)
    for entry in entries:
        path = folder / CODE / entry.path
        for parent in reversed(path.relative_to(folder).parents):
            (folder / parent).mkdir(mode=0o700, exist_ok=True)
        if entry.target is not None:
            path.symlink_to(entry.target)
        else:
            _write(path, content(entry, where(entry.path)), 0o700 if entry.executable else 0o600)


def _write(path: Path, pieces: Iterable[bytes], mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.writelines(pieces)


def _readme_lines(spec: JobSpec, site: Site, name: str) -> Iterator[str]:
    host = site.hosts.login or site.name
    port = f"-P {site.hosts.port} " if site.hosts.port else ""
    yield from (
        f"# {name}, a Slurm job for {site.title}",
        "",
        f"lumitui {version()} wrote this folder. Nothing in it needs lumitui.",
        "",
        f"1. Copy the folder to {site.title} (`scp {port}-r … {host}:…`), where its nodes can read "
        "it.",
        "2. Change into the folder: job.sh looks for its files where you call sbatch.",
        *(
            f"{number}. Set {key}, which this folder omits: `export {key}=…`"
            for number, key in enumerate(spec.secrets, 3)
        ),
        f"{3 + len(spec.secrets)}. `sbatch job.sh`",
        "",
    )
    apart: list[str] = []
    if spec.chain > 1:
        apart += [
            f"The job runs for one time limit: `chain: {spec.chain}` works only with lumitui.\n"
            "To continue from the checkpoint, call `sbatch job.sh` again when the job has ended."
        ]
    if spec.after:
        apart += [f"The job does not wait for {', '.join(spec.after.run)} (`after:`)."]
    if spec.notify and spec.notify.webhook:
        apart += ["It sends no notification: `notify:` works only in a job that lumitui submits."]
    if spec.relaunch:
        only = f"`relaunch: {spec.relaunch}` works only with lumitui."
        apart += [f"The job launches the program once: {only}"]
    yield from (f"{text}\n" for text in apart)
    yield from (
        f"The log is `slurm-{name}-JOB.out`. `$RUN_DIR` is this folder.",
        "",
        "The job needs:",
        f"- the partition {spec.partition}"
        + (f" and the account {spec.account}" * bool(spec.account)),
    )
    if spec.container.image:
        yield f"- the image {spec.container.image}"
    for path in (*spec.container.binds, spec.container.venv):
        if path:
            yield f"- {path} (bound into the container)"
    if spec.venv:
        yield f"- {', '.join(spec.venv.lines)} (the job installs them once, into venvs/)"
        yield "  To install them at no cost, run `bash venv.sh venvs` on a login node first."
    for link, to in spec.links.items():
        yield f"- {to} (the code's link {link})"
    for key, one in spec.stage.items():
        yield f"- {one.path} of the laptop: copy it, and `export STAGE_{key}=…` with its path"
        if one.link:
            yield f'  The code expects it at {one.link}: `ln -s "$STAGE_{key}" code/{one.link}`'
