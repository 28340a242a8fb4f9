"""Tables of images and virtual environments for the command line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import table
from lumitui.app.explain import words
from lumitui.app.runs import image_version, reaches_index, spell_out, why_version_unknown

if TYPE_CHECKING:
    from lumitui.app.runs import Image, RemovedVenvs, Site, Venv

_SHOWN = ("python", "torch", "deepspeed", "lightning")


def image_table(images: Sequence[Image], site: Site, package: str, columns: int) -> str:
    """Return a line for each image: `?` unknown, `-` not installed, `*` the profile's default."""
    own = {container.image for container in site.containers.values()}
    shown = [*_SHOWN, *([package] if package and package not in _SHOWN else [])]
    rows = [
        (
            f"{one.path.rpartition('/')[2]}{'*' if one.path in own else ''}",
            one.generation,
            _gpus(one),
            *(_cell(image_version(one, name)) for name in shown),
            words.size(one.size),
        )
        for one in images
    ]
    titles = ("IMAGE", "GENERATION", "BUILT FOR", *(name.upper() for name in shown), "SIZE")
    whole = table(titles, rows, columns, shrink=(0,))
    if all(row[0] in whole for row in rows):
        return whole
    # If a name and its mark would be cut, each name gets its own line.
    facts = [row[1:] for row in rows]
    heading, *lines = table(titles[1:], facts, columns - 2, shrink=(0, 3, 5, 4)).splitlines()
    pairs = zip(rows, lines, strict=True)
    return "\n".join(
        [titles[0], f"  {heading}", *(f"{spell_out(row[0])}\n  {line}" for row, line in pairs)]
    )


def image_notes(
    shown: Sequence[Image], unknown: Sequence[Image], package: str, site: Site
) -> Iterator[str]:
    """Yield notes below the table: why a version is unknown, and where the images are."""
    silent = [*unknown, *(one for one in shown if one not in unknown and why_version_unknown(one))]
    reasons: dict[str, list[str]] = {}
    for one in silent:
        reasons.setdefault(why_version_unknown(one), []).append(one.path.rpartition("/")[2])
    for why, names in reasons.items():
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield spell_out(f"Known only by name, because {why}: {listed}.")
    if package and not shown:
        how = f"`venv: [{package}]`"
        if not reaches_index(site):
            how = f"`venv: {{packages: [{package}], wheels: FOLDER}}` and its wheels"
        yield f"No listed image has {package}; {how} in a job file installs it."
    if shown:
        yield "`*`: default image; `?`: unknown; `-`: not installed."
    for one in shown:
        if one.path != one.real:
            yield spell_out(f"{one.path.rpartition('/')[2]} points to {one.real}.")
    folders = sorted({one.path.rpartition("/")[0] for one in shown})
    for folder in folders[:10]:
        yield spell_out(f"in {folder}")


def _gpus(image: Image) -> str:
    for key, name in (("rocm", "ROCm"), ("cuda", "CUDA")):
        if version := image_version(image, key):
            return f"{name} {version}"
    return "?" if image_version(image, "rocm") is None else "-"


def _cell(version: str | None) -> str:
    return "?" if version is None else version or "-"


def venv_table(folders: Mapping[str, Sequence[Venv]], columns: int) -> str:
    """Return the environments of each folder, one per line."""
    parts = []
    for folder, venvs in folders.items():
        if not venvs:
            continue
        rows = [
            (
                one.name,
                " ".join(one.requirements),
                one.python,
                words.size(one.kib * 1024),
                words.clock(one.used)[:16] if one.used else "?",
            )
            for one in venvs
        ]
        titles = ("NAME", "REQUIREMENTS", "PYTHON", "SIZE", "USED")
        parts.append(f"{spell_out(folder)}\n{table(titles, rows, columns, shrink=(1, 0))}")
    return "\n\n".join(parts)


def removed_text(removed: Mapping[str, RemovedVenvs], *, dry: bool) -> str:
    """Return what was removed, one folder per line; for a dry run, what would be."""
    gone = "would remove" if dry else "removed"
    return "\n".join(
        f"{spell_out(folder)}: {gone} {words.count(len(item.names), 'environment')}, "
        f"{words.size(item.kib * 1024)}"
        for folder, item in removed.items()
    )
