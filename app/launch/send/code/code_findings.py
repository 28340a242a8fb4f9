"""The findings on the code to send: files at its links, its size, and files that look secret."""

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from lumitui.app.explain.words import count, size
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.run_folder import BINDING, METRICS
from lumitui.remote.site.secret_shapes import ShapeSearch
from lumitui.remote.source.guard import ScanGuard, Suspect
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.project_walk import names_of
from lumitui.remote.source.scan import opened


def taken_links(spec: JobSpec, code: Manifest) -> Iterator[tuple[str, InputError]]:
    """Yield each link whose place in `code` is taken: its key in the job file, and the error."""
    links = {name: ("links", f"links: {name}") for name in spec.links}
    staged = [(name, one.link) for name, one in spec.stage.items() if one.link]
    kinds = {entry.path: "a link" if entry.target else "a file" for entry in code.entries}
    folders = {above for path in kinds for above in _above(path)}
    seen: dict[str, str] = {}
    for link, key, label in (
        *((link, *words) for link, words in links.items()),
        *((link, f"stage.{name}", f"stage: {name}: `link: {link}`") for name, link in staged),
    ):
        # `ln` follows a link of the code, where a relative path to a staged item would be wrong.
        closed = {path for path, kind in kinds.items() if kind == "a file" or key != "links"}
        if reason := _reason(posixpath.normpath(link), kinds, folders, closed, seen):
            yield key, InputError(f"{label} is already taken: {reason}.", "Use another path.")
        seen[posixpath.normpath(link)] = label


_CONFIG = re.compile(r"--?[\w-]*(?:config|cfg|deepspeed)(?:[_-]file|[_-]path)?")
_WRITTEN = re.compile(r"save|output|write|dump|export")
_SETTINGS = (".json", ".hjson", ".yaml", ".yml", ".toml", ".ini", ".cfg")


def absent_configs(spec: JobSpec, paths: Set[str]) -> Iterator[Finding]:
    """Yield each configuration named in an argument but missing from the code's `paths`."""
    places = (*spec.links, *(one.link for one in spec.stage.values() if one.link))
    for name in _configs(spec.args):
        path = posixpath.normpath(posixpath.join(spec.workdir, name))
        if path in paths or any(f"{path}/".startswith(f"{place}/") for place in places):
            continue
        yield hit(
            "argument-file",
            "args",
            f"`args:` names {name}, which the code lacks.",
            "Put the file into the project, and check .gitignore and .lumituiignore.",
        )


def _configs(args: Sequence[str]) -> Iterator[str]:
    """Yield the relative paths of configurations, as `--config FILE` or `--config=FILE`."""
    for number, word in enumerate(args):
        option, equals, value = word.partition("=")
        value = value if equals else "".join(args[number + 1 : number + 2])
        named = _CONFIG.fullmatch(option) and not _WRITTEN.search(option)
        plain = re.fullmatch(r"\w[\w./+-]*", value) and "://" not in value
        if named and plain and value.endswith(_SETTINGS):
            yield value


def _reason(
    link: str, kinds: dict[str, str], folders: set[str], closed: set[str], seen: dict[str, str]
) -> str:
    """Return why `link` cannot be created; "" if it can."""
    if link == ".":
        return "it is the code itself"
    if link in kinds or link in folders:
        return f"{link} is {kinds.get(link, 'a folder')} of the code"
    for above in _above(link):
        if above in closed:
            return f"{above} is {kinds[above]} of the code, not a folder"
    for other, label in seen.items():
        if f"{link}/".startswith(f"{other}/") or other.startswith(f"{link}/"):
            return f"{label} uses the same path"
    return ""


def _above(path: str) -> list[str]:
    """Return the folders that contain `path`."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


_RESULT = 1_000_000
"""Minimum size of a result, in bytes: a smaller file with such a name is probably code."""
_LARGE = 10_000_000
"""Size in bytes from which a file is probably not code."""
RESULT_NAMES = (
    "*.pt", "*.pth", "*.ckpt", "*.safetensors", "*.onnx", "events.out.tfevents.*", "slurm-*.out",
    METRICS, BINDING,
)  # fmt: skip
"""Patterns of the names of files that a run writes."""
_FOLDERS = ("wandb", "mlruns", "lightning_logs", "checkpoints")
_MOST = 5


def code_size(files: int, total: int) -> str:
    """Return an amount of code: `12 files, 40 kB`."""
    return f"{count(files, 'file')}, {size(total)}"


def weight_findings(files: Iterable[ManifestEntry]) -> Iterator[Finding]:
    """Yield a finding if some `files` are large or look like results of a run."""
    groups: dict[str, tuple[int, int]] = {}
    for entry in files:
        if name := _odd(entry):
            number, total = groups.get(name, (0, 0))
            groups[name] = number + 1, total + entry.size
    if groups:
        largest = sorted(groups.items(), key=lambda item: -item[1][1])
        names = ", ".join(f"{name} ({code_size(*of)})" for name, of in largest[:_MOST])
        more = f" and {len(groups) - _MOST} more" if len(groups) > _MOST else ""
        yield hit(
            "code-large",
            "project",
            "lumitui sends these as code, although they are large or look like results of a "
            f"run: {names}{more}.",
            "If the job does not need them, exclude them in .lumituiignore; `stage:` uploads data "
            "once.",
        )


def _odd(entry: ManifestEntry) -> str:
    """Return the reported name of a file that is probably not code: its folder's or its own."""
    parts = entry.path.split("/")
    for depth, part in enumerate(parts[:-1], 1):
        if part in _FOLDERS and not entry.path.endswith(".py"):
            return "/".join(parts[:depth]) + "/"
    name = posixpath.basename(entry.path)
    if entry.size >= _RESULT and any(fnmatch.fnmatchcase(name, each) for each in RESULT_NAMES):
        return f"{posixpath.dirname(entry.path)}/".lstrip("/") or name
    return entry.path if entry.size >= _LARGE else ""


_MOST_NAMED = 200
"""Maximum number of files in one message; `preview --json` lists all."""
_MOST_SENTENCES = 20
_MODULE_BYTES = 1_000_000
DEEPSPEED_USE = "it is DeepSpeed's configuration"


def secret_findings(
    guard: ScanGuard, needed: Sequence[Suspect] = (), elsewhere: Set[str] = frozenset()
) -> Iterator[Finding]:
    """Yield findings on files that lumitui does not send, and on suspect files that it sends.

    The `needed` files have their own errors. The patterns `elsewhere` are for staged files.
    """
    kept = [item for item in guard.kept_back if item not in needed]
    yield from _by_name([item for item in kept if item.by == "name"])
    contents = [item for item in kept if item.by == "contents"]
    for item in contents[:_MOST_SENTENCES]:
        yield hit(
            "secret-contents",
            "ship_secrets",
            f"lumitui does not send {item.path}: line {item.line} looks like {item.what}.",
            _way_out(item.path),
            source=item.source,
        )
    if more := contents[_MOST_SENTENCES:]:
        places = _listed([f"{item.path}:{item.line}" for item in more])
        yield hit(
            "secret-contents",
            "ship_secrets",
            f"lumitui also does not send these, because of lines that look like a key: {places}.",
            "List those that are not secrets under `ship_secrets:` in the job file.",
            source=more[0].source,
        )
    if guard.shipped:
        names = _listed([f"{item.path} ({item.what})" for item in guard.shipped])
        yield hit(
            "secret-shipped",
            "ship_secrets",
            f"Sent, because `ship_secrets:` lists them: {names}.",
            "Anyone who can read the run's folder at the site can read them.",
        )
    for word in guard.unused:
        if word in elsewhere:
            continue
        yield hit(
            "ship-secrets-unused",
            "ship_secrets",
            f"`ship_secrets:` lists {word}, but lumitui sends such a file anyway.",
            "Remove it, or correct the path from the project's root.",
        )


def _by_name(kept: Sequence[Suspect]) -> Iterator[Finding]:
    if kept:
        sources = dict.fromkeys(item.source for item in kept)
        yield hit(
            "secret-files",
            "ship_secrets",
            "lumitui does not send files whose names suggest secrets: "
            f"{_listed([item.path for item in kept])}.",
            "Pass values with `secrets:`; list files that the job needs under `ship_secrets:`.",
            source="; ".join(list(sources)[:3]),
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {more} more (`preview --json` lists them)" if more > 0 else shown


def _way_out(path: str) -> str:
    return (
        "Remove the key and pass it with `secrets:`, or send the file unchanged with "
        f"`ship_secrets: [{path}]` in the job file."
    )


def needed_by(
    spec: JobSpec, root: Path, guard: ScanGuard, sent: Sequence[str]
) -> Iterator[tuple[Suspect, InputError]]:
    """Yield the unsent files that the job needs, each with the error.

    A job needs its script, DeepSpeed's configuration, files that its arguments name, and modules
    that the `sent` files import.
    """
    if not guard.kept_back:
        return
    uses = dict(_uses(spec))
    modules = {}
    for item in guard.kept_back:
        if item.path.endswith(".py") and item.path not in uses:
            modules[item.path] = _import_of(item.path)
    importers = _importers(root, modules, sent) if modules else {}
    for item in guard.kept_back:
        if use := uses.get(item.path) or importers.get(item.path):
            yield item, _needed_error(item, use)


def _needed_error(item: Suspect, use: str) -> InputError:
    shape = f"line {item.line} looks like" if item.line else "its name is that of"
    message = f"{item.path} is not sent, but {use}: {shape} {item.what}."
    return InputError(message, _way_out(item.path))


def refuse_secret(place: Path, path: str, text: bytes, ship: Sequence[str], use: str) -> None:
    """Refuse a file in the project at `place`, with this `text`, if it looks like a secret.

    The run gets the text separately from the code, from which .gitignore may exclude the file.
    `ship` has the patterns of `ship_secrets:`.

    Raises:
        InputError: it looks like a secret; the message names the `use` of the file.
        OSError: it cannot be read.
    """
    guard, shapes, name = ScanGuard(ship), ShapeSearch(), posixpath.normpath(path)
    shapes.feed(text)
    also = names_of(place)
    real = Path(os.path.realpath(place))
    if not guard.names_secret(name, lambda: opened(real), also):
        guard.holds_secret(name, shapes.marks, also)
    for item in guard.kept_back:
        raise _needed_error(item, use)


def _uses(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the project's files that the job file names, each with its use."""
    for text in spec.args:
        for part in (text, text.partition("=")[2]):
            for place in (part, posixpath.join(spec.workdir, part)):
                yield posixpath.normpath(place), f"`args:` contains it ({text})"
    if spec.deepspeed is not None:
        yield posixpath.normpath(spec.deepspeed.config), DEEPSPEED_USE
    if spec.script:
        yield posixpath.normpath(spec.script), "it is the script"


def _import_of(path: str) -> re.Pattern[bytes]:
    """Return the pattern of a line that imports the module at `path`."""
    name = posixpath.basename(path).removesuffix(".py")
    if name == "__init__":
        name = posixpath.basename(posixpath.dirname(path))
    word = re.escape(name.encode("utf-8", "surrogateescape"))
    return re.compile(rb"^[ \t]*(?:from|import)\b[^\n#]*\b" + word + rb"\b", re.MULTILINE)


def _importers(
    root: Path, modules: dict[str, re.Pattern[bytes]], sent: Sequence[str]
) -> dict[str, str]:
    """Return which of the `modules` a file among `sent` imports, with a description."""
    importers: dict[str, str] = {}
    for path in sent:
        if not path.endswith(".py") or len(importers) == len(modules):
            continue
        try:
            with (root / path).open("rb") as file:
                text = file.read(_MODULE_BYTES)
        except OSError:
            continue  # the send reads it again, and refuses it
        for module, pattern in modules.items():
            if module not in importers and pattern.search(text):
                importers[module] = f"{path} imports it"
    return importers
