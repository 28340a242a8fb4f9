"""Calls in the job's script that download something, found without running it. Reads the script."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.compose.finding import Finding
from lumitui.app.compose.rules.offline import STAGE_IT
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain

_MOST_BYTES = 1_000_000
_BY_NAME = {"from_pretrained", "load_dataset", "snapshot_download", "hf_hub_download", "load_model"}
"""Functions whose first argument is a path, or a name that they look up on the hub."""
_ALWAYS = {"urlopen", "urlretrieve", "download_url", "download_and_extract_archive"}
_MOST = 5


@dataclass(frozen=True)
class Download:
    """One call that would download."""

    line: int
    words: str
    """The call in short, like `from_pretrained("gpt2")`."""


def findings_of(spec: JobSpec, project: Path, site: Site) -> Iterator[Finding]:
    """Yield what a preview says of a script that downloads where nodes reach no internet."""
    if site.internet_on_compute_nodes or not (spec.script or "").endswith(".py"):
        return
    try:
        text = read_plain(project / str(spec.script), _MOST_BYTES)
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return  # the send, or Python itself, says what is wrong with it
    found = sorted(downloads(tree), key=lambda one: one.line)
    if found:
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        calls = ", ".join(f"{one.words} in line {one.line}" for one in found[:_MOST])
        yield Finding(
            "offline-script",
            "warning",
            f"The nodes of {site.name} reach no internet, and {spec.script} would download: "
            f"{calls}{more}.",
            STAGE_IT,
            "the site's profile, internet_on_compute_nodes",
            field="script",
        )


def downloads(tree: ast.AST) -> Iterator[Download]:
    """Yield the calls of a module that download."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (words := _words(node)):
            yield Download(node.lineno, words)


def _words(call: ast.Call) -> str:
    """Return a call that downloads in short; "" for another one."""
    dotted = _dotted(call.func)
    name = dotted.rpartition(".")[2]
    first = call.args[0] if call.args else None
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    if any(word.arg == "download" and _is(word.value, True) for word in call.keywords):
        return f"{name}(download=True)"
    if any(word.arg == "local_files_only" and _is(word.value, True) for word in call.keywords):
        return ""
    if name in _BY_NAME and text and not text.startswith((".", "/", "~", "$")):
        return f'{name}("{text[:40]}")'
    if dotted.endswith(("hub.load", "hub.load_state_dict_from_url")):
        return f"{dotted}(...)"
    if dotted in ("requests.get", "httpx.get") or name in _ALWAYS:
        return f"{dotted}(...)"
    online = any(word.arg == "mode" and _is(word.value, "online") for word in call.keywords)
    return f'{dotted}(mode="online")' if dotted == "wandb.init" and online else ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value
