"""The findings on files that look like secrets: kept back, needed by the job, or sent."""

import posixpath
import re
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.source.guard import ScanGuard, Suspect

_MOST_NAMED = 200
"""Most files in one message; `preview --json` lists all."""
_MOST_SENTENCES = 20
_MODULE_BYTES = 1_000_000


def findings_of(
    guard: ScanGuard, needed: Sequence[Suspect] = (), elsewhere: Set[str] = frozenset()
) -> Iterator[Finding]:
    """Yield findings on the files that are kept back, and on suspect files that are sent.

    The `needed` files have their own errors. The patterns `elsewhere` are about staged files.
    """
    kept = [item for item in guard.kept_back if item not in needed]
    yield from _by_name([item for item in kept if item.by == "name"])
    contents = [item for item in kept if item.by == "contents"]
    for item in contents[:_MOST_SENTENCES]:
        yield hit(
            "secret-contents",
            "ship_secrets",
            f"{item.path} is not sent: line {item.line} has the shape of {item.what}.",
            _way_out(item.path),
            source=item.source,
        )
    if more := contents[_MOST_SENTENCES:]:
        places = _listed([f"{item.path}:{item.line}" for item in more])
        yield hit(
            "secret-contents",
            "ship_secrets",
            f"Also not sent, because of lines with the shape of a key: {places}.",
            "List those that are not secrets under `ship_secrets:` in the job file.",
            source=more[0].source,
        )
    if guard.shipped:
        names = _listed([f"{item.path} ({item.what})" for item in guard.shipped])
        yield hit(
            "secret-shipped",
            "ship_secrets",
            f"Sent, because `ship_secrets:` lists them: {names}.",
            "Everyone who can read the run's folder at the site can read them.",
        )
    for word in guard.unused:
        if word in elsewhere:
            continue
        yield hit(
            "ship-secrets-unused",
            "ship_secrets",
            f"`ship_secrets:` lists {word}, but lumitui would not keep back such a file.",
            "Remove it, or correct the path from the project's root.",
        )


def _by_name(kept: Sequence[Suspect]) -> Iterator[Finding]:
    if kept:
        sources = dict.fromkeys(item.source for item in kept)
        yield hit(
            "secret-files",
            "ship_secrets",
            "Not sent, because files with such names contain secrets: "
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
    """Yield the files that are kept back although the job needs them, each with the error.

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
            shape = f"line {item.line} has the shape of" if item.line else "its name is that of"
            message = f"{item.path} is not sent, but {use}: {shape} {item.what}."
            yield item, InputError(message, _way_out(item.path))


def _uses(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the project's files that the job file names, each with its use."""
    for text in spec.args:
        for part in (text, text.partition("=")[2]):
            for place in (part, posixpath.join(spec.workdir, part)):
                yield posixpath.normpath(place), f"`args:` names it ({text})"
    if spec.deepspeed is not None:
        yield posixpath.normpath(spec.deepspeed.config), "it is DeepSpeed's configuration"
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
    """Return which of the `modules` a file among `sent` imports, with words for it."""
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
