"""The virtual environment of a job: its name, and the script that builds it. Pure."""

import hashlib
import json
import re

from lumitui.app.job.fields.venv_field import VenvChoice, check_requirement, package_of
from lumitui.app.launch import program_call
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.program_call import expand, own_python
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import CODE
from lumitui.remote.site.shell_text import quote

_FORM = 1
"""Increased when lumitui builds environments differently, so that it does not reuse older ones."""
_NAMED = re.compile(r"^# Virtual environment ([0-9a-f]{16})", re.MULTILINE)


def venv_name(place: Placement) -> str:
    """Return the environment's name: a hash of everything that determines its contents.

    For a container or wheels on the site, the script there adds their real paths, since a link may
    change.
    """
    venv, container, recipe = _venv(place), place.container, place.site.venv
    # A package that the job requests by name is not kept at the image's version.
    parts = [_FORM, list(venv.lines), venv.wheels, dict(venv.sent.wheels) if venv.sent else {}]
    parts += [place.image, place.runtime.python, list(place.modules), recipe.create]
    parts += [recipe.environment, list(recipe.keeps)]
    if container:
        parts += [list(container.call), container.activate, container.venv_mount, recipe.squash]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def name_in(script: str) -> str | None:
    """Return the name of the environment that a job's script uses, if any."""
    match = _NAMED.search(script)
    return match[1] if match else None


def venv_values(place: Placement) -> dict[str, object]:
    """Return the values for the template of venv.sh; InputError if a requirement is not valid."""
    venv, container, recipe = _venv(place), place.container, place.site.venv
    for line in venv.lines:
        check_requirement(line)
    if venv.sent is None and (venv.requirements or venv.wheels_in_project):
        raise InputError(
            "The run's code lacks the files of `venv:`.",
            "Send the project's current code: `--code current`.",
            field="venv",
        )
    if not venv.lines:
        raise InputError("`venv:` lists no packages.", "List some, or remove it.", field="venv")
    if place.spec.container.venv:
        raise InputError(
            "`venv:` and `container.venv:` cannot be combined.", "Remove one of them.", field="venv"
        )
    packages = set(map(package_of, venv.lines))
    python = own_python(place)
    return {
        "name": venv_name(place),
        "modules": place.modules,
        "environment": recipe.environment,
        "container": " ".join(map(quote, container.call)) if container else "",
        "staged": _staged(place),
        "image": program_call.word(place.image, place.spec.stage),
        "activate": f"{container.activate}; " if container and container.activate else "",
        "mount": container.venv_mount if container else "",
        "python": python,
        "create": recipe.create.format(python=python, folder='"$1"'),
        "squash": recipe.squash.format(folder='"$data/tree"', file='"$data/env.sqsh"'),
        "kept": [name for name in recipe.keeps if package_of(name) not in packages],
        "requirements": venv.lines,
        "wheels": venv.wheels,
        "found": _found(place),
        "wheels_sent": venv.wheels_in_project,
        "code": CODE,
        "folder": _folder(place),
        "shared": bool(recipe.folder),
        "seconds": recipe.minutes * 60,
    }


def _venv(place: Placement) -> VenvChoice:
    assert place.spec.venv is not None, "the job has no `venv:`"
    return place.spec.venv


def _staged(place: Placement) -> list[str]:
    """Return the names of the staged items that the environment needs."""
    texts = (place.image, place.spec.venv.wheels or "" if place.spec.venv else "")
    names = {name for text in texts for name in program_call.named_in(text)}
    return sorted(names & set(place.spec.stage))


def _found(place: Placement) -> str:
    """Return the site's folder of wheels as a shell word; "" if there is none."""
    venv = _venv(place)
    if venv.wheels is None or venv.wheels_in_project:
        return ""
    return program_call.word(venv.wheels, place.spec.stage)


def _folder(place: Placement) -> str:
    """Return the profile's folder of environments as a shell word; "" for one beside the runs."""
    folder = place.site.venv.folder
    account = place.site.account.in_path(place.spec.account)
    if not folder:
        return ""
    return expand(folder.format(account=account, user="$(id -un)", home="$HOME")).replace(
        "\\$(id -un)", "$(id -un)"
    )
