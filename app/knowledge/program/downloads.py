"""Calls of a program that download something, found without running it."""

from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.program.program_facts import Call, PythonFile
from lumitui.remote.site.source_position import Position

STAGE_IT = (
    "Download it on your machine, name it in `stage:` (`MODEL: ~/models/gpt2`), and give the "
    "program $STAGE_MODEL."
)
"""What to do in a job file."""
_BY_NAME = {"from_pretrained", "load_dataset", "snapshot_download", "hf_hub_download", "load_model"}
"""Functions whose first argument is a path, or a name that they look up on the hub."""
_ALWAYS = {"urlopen", "urlretrieve", "download_url", "download_and_extract_archive"}


@dataclass(frozen=True)
class Download:
    """One call that would download."""

    at: Position
    words: str
    """The call in short, like `from_pretrained("gpt2")`."""


def downloads(program: PythonFile) -> Iterator[Download]:
    """Yield the calls of a program that download."""
    for call in program.calls:
        if words := _words(call):
            yield Download(call.at, words)


def _words(call: Call) -> str:
    """Return a call that downloads in short; "" for another one."""
    first = call.get("", 0)
    text = first.value if first is not None and isinstance(first.value, str) else None
    if call.is_true("download"):
        return f"{call.last}(download=True)"
    if call.is_true("local_files_only"):
        return ""
    if call.last in _BY_NAME and text and not text.startswith((".", "/", "~", "$")):
        return f'{call.last}("{text[:40]}")'
    if call.name.endswith(("hub.load", "hub.load_state_dict_from_url")):
        return f"{call.name}(...)"
    if call.name in ("requests.get", "httpx.get") or call.last in _ALWAYS:
        return f"{call.name}(...)"
    mode = call.get("mode")
    online = mode is not None and mode.value == "online"
    return f'{call.name}(mode="online")' if call.name == "wandb.init" and online else ""
