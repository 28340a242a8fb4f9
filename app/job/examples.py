"""Job files to begin with: an example from `templates/examples`, adapted to a site."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.errors import InputError, LumiError
from lumitui.remote.site.profile import Site

EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "examples"
_PLAIN = re.compile(r"^[A-Za-z_/.][A-Za-z0-9_./-]*$")
_WORDS = {"true", "false", "null"}


@dataclass(frozen=True)
class Beginning:
    """What a person says about the job that they begin with."""

    name: str | None = None
    """None: the name in the example."""
    account: str | None = None
    script: str | None = None
    """The person's own script, from the job file's folder."""
    trainer: str | None = None
    """A bundled trainer; without a script or a trainer it is `ddp`."""
    launcher: str | None = None
    """None: the site's first."""


def names() -> list[str]:
    """Return the names of the examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def text_for(site: Site, beginning: Beginning) -> str:
    """Return a commented job file for `site`.

    Raises:
        InputError: both a script and a trainer, or a trainer that is not bundled.
    """
    if beginning.script and beginning.trainer:
        raise InputError("A job has a script or a trainer, not both.", "Leave one of them out.")
    trainer = beginning.trainer or "ddp"
    example = "script" if beginning.script else trainer
    if example not in names():
        raise InputError(
            f"There is no bundled trainer {trainer!r}.",
            f"There are {', '.join(name for name in names() if name != 'script')}.",
        )
    text = (EXAMPLES / f"{example}.yaml").read_text(encoding="utf-8")
    partition = next(iter(site.partitions))
    if beginning.name:
        text = with_value(text, "name", beginning.name)
    text = with_value(text, "site", site.name)
    text = with_value(text, "partition", partition)
    text = with_value(text, "launcher", beginning.launcher or site.launchers[0])
    text = with_value(text, "script", beginning.script)
    account = beginning.account or site.account.example
    text = with_value(text, "account", account if site.account.required else None)
    others = [
        f"#   {name}: up to {item.max_time}, {item.max_nodes} nodes"
        + (f"; {item.purpose}" if item.purpose else "")
        for name, item in site.partitions.items()
    ]
    note = "\n".join([f"# Partitions of {site.title}:", *others])
    return re.sub(r"^# Partitions of .*$", lambda _: note, text, flags=re.MULTILINE)


def with_value(text: str, key: str, value: str | None) -> str:
    """Return the YAML `text` with the top-level `key` set; None removes its line."""
    pattern = re.compile(rf"^({key}:[ ]*(?:\"[^\"]*\"|[^\s#]+)?[ ]*)(#.*)?\n", re.MULTILINE)
    if value is None:
        return pattern.sub("", text)
    plain = _PLAIN.match(value) and value.lower() not in _WORDS
    line = f"{key}: {value if plain else json.dumps(value, ensure_ascii=False)}"

    def changed(match: re.Match[str]) -> str:
        # The comment stays in its column when there is room.
        comment = f"{line.ljust(len(match[1]) - 1)} {match[2]}" if match[2] else line
        return f"{comment}\n"

    return pattern.sub(changed, text)


def write_new(path: Path, text: str) -> None:
    """Write `text` to a new file (0600); never overwrite one.

    Raises:
        InputError: the file exists, or its folder does not.
        LumiError: it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} is already there.", "Name another with --output.") from error
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Make it first.") from error
    except OSError as error:
        raise LumiError(f"Writing {path}: {error.strerror}.", "Check the disk.") from error
