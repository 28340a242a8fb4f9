"""The amount of code to send, and its files that are large or look like results. Pure."""

import fnmatch
import posixpath
from collections.abc import Iterable, Iterator

from lumitui.app.explain.words import count, size
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.run_folder import BINDING, METRICS
from lumitui.remote.source.manifest import ManifestEntry

_RESULT = 1_000_000
"""Bytes; a smaller file with the name of a result is probably part of the code."""
_LARGE = 10_000_000
"""Bytes; files of code are smaller."""
_RESULTS = (
    "*.pt", "*.pth", "*.ckpt", "*.safetensors", "*.onnx", "events.out.tfevents.*", "slurm-*.out",
    METRICS, BINDING,
)  # fmt: skip
_FOLDERS = ("wandb", "mlruns", "lightning_logs", "checkpoints")
_MOST = 5


def code_size(files: int, total: int) -> str:
    """Return an amount of code: `12 files, 40 kB`."""
    return f"{count(files, 'file')}, {size(total)}"


def findings_of(files: Iterable[ManifestEntry]) -> Iterator[Finding]:
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
            f"Sent as code, although large or like results of a run: {names}{more}.",
            "If the job does not need them, exclude them in .lumituiignore; `stage:` uploads data "
            "once.",
        )


def _odd(entry: ManifestEntry) -> str:
    """Return the name to report for a file that is probably not code: its folder's or its own."""
    parts = entry.path.split("/")
    for depth, part in enumerate(parts[:-1], 1):
        if part in _FOLDERS and not entry.path.endswith(".py"):
            return "/".join(parts[:depth]) + "/"
    name = posixpath.basename(entry.path)
    if entry.size >= _RESULT and any(fnmatch.fnmatchcase(name, each) for each in _RESULTS):
        return f"{posixpath.dirname(entry.path)}/".lstrip("/") or name
    return entry.path if entry.size >= _LARGE else ""
