"""The values of `$USER`, `$HOME` and a site's folders in a job file.

A doubled dollar stays a dollar: `$$HOME` is `$HOME`. Pure but for `fill`.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.profile import Site

Fill = Callable[[str], str]
"""Returns a template of the profile with `{account}`, `{user}` and `{home}` filled in."""
KEYS = ("args", "resume", "env", "links", "python", "activate")
"""The keys whose texts expand names; in `env:` and `links:`, only the values do."""


def templates_of(site: Site) -> Mapping[str, str]:
    """Return the names with a meaning at a site, each with its template."""
    return {"USER": "{user}", **site.folders}


def expanded(spec: JobSpec, site: Site, fill: Fill) -> JobSpec:
    """Return a job file with names expanded for `site`; never expand it twice."""
    return mapped(spec, lambda text: expanded_text(text, site, fill))


def expanded_text(text: str, site: Site, fill: Fill) -> str:
    """Return one text of a job file with names expanded for `site`."""
    templates = templates_of(site)
    return _pattern(tuple(templates)).sub(
        lambda match: match[0][1:] if match[1] else fill(templates[match[2] or match[3]]), text
    )


def escaped(spec: JobSpec, site: Site) -> JobSpec:
    """Return the job file that `expanded` turns into `spec`."""
    return mapped(spec, lambda text: escaped_text(text, templates_of(site)))


def escaped_text(text: str, names: Collection[str]) -> str:
    """Return the job file's form of a literal `text`, where `names` are expanded."""
    return _pattern(tuple(names)).sub(lambda match: f"${match[0]}", text)


def without_names(text: str, names: Collection[str]) -> str:
    """Return a job file's text without the `names` that it would expand."""
    return _pattern(tuple(names)).sub(lambda match: match[0] if match[1] else "", text)


def names_in(text: str, names: Collection[str]) -> list[str]:
    """Return those of `names` that a job file's text expands."""
    matches = _pattern(tuple(names)).finditer(text)
    return [match[2] or match[3] for match in matches if not match[1]]


@lru_cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    listed = "|".join(names) or "(?!)"
    return re.compile(rf"\$(\$?)(?:\{{({listed})\}}|({listed})(?!\w))", re.ASCII)


def mapped(spec: JobSpec, change: Callable[[str], str]) -> JobSpec:
    """Return a job file with `change` applied to each text that may have names."""
    changes: dict[str, Any] = {}
    for key in KEYS:
        value = getattr(spec, key)
        if not value:
            continue
        if isinstance(value, dict):
            new: object = {name: change(text) for name, text in value.items()}
        else:
            new = change(value) if isinstance(value, str) else tuple(map(change, value))
        if new != value:
            changes[key] = new
    return spec.model_copy(update=changes) if changes else spec
