"""The keys of a job file for the Python environments that a script activates."""

import re
from collections.abc import Sequence

from lumitui.app.knowledge.script_job import Command, ScriptJob
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.plain_values import Values
from lumitui.app.launch.placement import Placement

_ACTIVATE = re.compile(r"(?P<folder>.+)/bin/activate")
_CONDA = ("conda", "mamba", "micromamba")


def activated(command: Command) -> str:
    """Return the folder or name of the environment that a command activates; "": none.

    Both `source venv/bin/activate` and `conda activate NAME` do so.
    """
    words = [word.known for word in command.words]
    if command.program in ("source", ".") and words:
        found = _ACTIVATE.fullmatch(words[0])
        return found["folder"] if found else ""
    named = command.program in _CONDA and len(words) == 2 and words[0] == "activate"
    return words[1] if named else ""


def own_environments(
    job: ScriptJob, place: Placement, values: Values, requirements: str, notes: Notes
) -> dict[str, object]:
    """Return `activate:` for environments whose location on the site the script names.

    A relative folder, whose location only the site knows, becomes `venv:` with `requirements`, the
    project's file with packages. If that is "", the preview reports the missing file, so that no
    job waits in the queue only to find a module missing.
    """
    kept: list[str] = []
    lost: list[str] = []
    for command in job.commands:
        if not (name := activated(command)):
            continue
        written = " ".join([command.program, *(word.text for word in command.words)])
        folder = values.put(re.sub(r"^~(?=/|$)", "$HOME", name))
        conda = command.program in _CONDA
        if place.spec.container.venv:
            notes.derive(written, "`container.venv:` provides its Python")
        elif conda and place.container:
            notes.lose(
                written, "the job uses the image's Python and variables; `venv:` adds packages"
            )
        elif (conda or folder.startswith(("/", "$"))) and not values.is_open(folder):
            kept.append(folder)
            notes.keep(written, "activate")
        else:
            lost.append(written)
    if place.container and len(kept) > 1:
        notes.lose(", ".join(kept[:-1]), "in a container only one environment can be activated")
        kept = kept[-1:]
    if not kept and lost:
        return _rebuilt(lost, requirements, notes)
    for written in lost:
        notes.lose(written, "write the folder's path on the site into `activate:`")
    return {"activate": kept[0] if len(kept) == 1 else kept} if kept else {}


def _rebuilt(lost: Sequence[str], requirements: str, notes: Notes) -> dict[str, object]:
    name = requirements or "requirements.txt"
    checks = "which must list every package" if requirements else "in which you list its packages"
    for written in lost:
        notes.lose(
            written,
            f"`venv:` builds the environment from {name}, {checks}; or write the folder's full "
            "path into `activate:` instead",
        )
    return {"venv": name}
