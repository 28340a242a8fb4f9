"""The folder of a job's project, found from the paths that a user wrote."""

from pathlib import Path

from lumitui.remote.site.errors import InputError


def project_folder(folder: Path, project: str) -> Path:
    """Return the whole path of `project`, which is relative to the job file's `folder`.

    A folder that is not there is no error yet: the preview says it with the other mistakes.

    Raises:
        InputError: a link leads to itself, or a name is too long for this machine.
    """
    path = folder / project
    try:
        root = path.resolve()
        root.is_dir()
    except RuntimeError as error:  # what resolve() makes of ELOOP
        raise InputError(
            f"The project {_short(path)} is a link that leads to itself.",
            "Check `project:`.",
            field="project",
        ) from error
    except OSError as error:
        raise InputError(
            f"The project {_short(path)} cannot be read: {error.strerror}.",
            "Check `project:`.",
            field="project",
        ) from error
    return root


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:200]}…"
