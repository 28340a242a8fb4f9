"""The profiles of some folders: found by name, inherited with `extends:`, validated.

Profiles are YAML files in `templates/sites/`; a user's own, in the platform's configuration
folder, override them by name. `extends:` inherits another profile, key by key.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.remote.site.errors import InputError, meant

if TYPE_CHECKING:
    from lumitui.remote.site.profile import Site
    from lumitui.remote.site.reading.yaml_document import Document

BUILT_IN = Path(__file__).resolve().parents[2] / "templates" / "sites"
"""The bundled profiles."""


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Return `base` changed by `over`: mappings key by key, everything else replaced.

    A key whose value is null in `over` is removed.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


class Sites:
    """The profiles of some folders, by name; the first folder with a name wins."""

    def __init__(
        self,
        folders: Iterable[Path],
        texts: Mapping[Path, str | None] | None = None,
        real_host: Callable[[str, str], str] = lambda host, config: host,
    ) -> None:
        """Search `folders`, the user's own first; files are read when they are needed.

        `texts` count before all folders, as if their files held them; None: what the file holds.
        `real_host` returns the host of an alias in an ssh configuration ("": the user's).
        """
        self._folders, self._texts, self._real_host = tuple(folders), texts or {}, real_host
        self._left_out: dict[str, str] = {}

    @property
    def _files(self) -> dict[str, list[Path]]:
        # Read each time: a profile that is added while the program runs is found.
        files = {path.stem: [path] for path in self._texts}
        for folder in filter(Path.is_dir, self._folders):
            for path in sorted(folder.glob("*.yaml")):
                if path not in self._texts:
                    files.setdefault(path.stem, []).append(path)
        return files

    def names(self) -> list[str]:
        """Return the known names in order."""
        return sorted(self._files)

    def path(self, name: str) -> Path:
        """Return the file that describes `name`; InputError if there is none."""
        return self._find(name)[0]

    def own(self) -> list[str]:
        """Return the names of the user's own or changed profiles, in order."""
        return [name for name, paths in sorted(self._files.items()) if paths[0].parent != BUILT_IN]

    def added(self) -> list[str]:
        """Return the names of profiles that are not bundled, in order."""
        every = sorted(self._files.items())
        return [name for name, paths in every if BUILT_IN not in {path.parent for path in paths}]

    def load(self, name: str) -> Site:
        """Return the site called `name`; InputError if it has no profile, or one with a mistake."""
        # Late: lists of runs need no profile.
        from lumitui.remote.site.profile import Site
        from lumitui.remote.site.reading.validation import validate

        document, data, _ = self._merged(name, ())
        _keep_pause(data, self._least_at(data))
        return validate(document, Site, data, "`lumitui schema site` lists the keys.")

    def least_pause(self, name: str) -> float:
        """Return the fewest seconds between two polls that the system's profiles allow; or 0."""
        _, data, least = self._merged(name, ())
        return max(least, self._least_at(data))

    def valid(self) -> list[Site]:
        """Return the sites with a valid profile, in order; `take_warnings` lists the others.

        One broken profile must not stop what only looks for a site among all.
        """
        found: list[Site] = []
        for name in self.names():
            try:
                found.append(self.load(name))
            except InputError as error:
                self._left_out[name] = error.message
        return found

    def take_warnings(self) -> list[str]:
        """Return and clear a warning for each site that `valid` skipped."""
        warnings = [f"lumitui skips the site {name}: {why}" for name, why in self._left_out.items()]
        self._left_out.clear()
        return warnings

    def with_file(self, path: Path) -> Sites:
        """Return these profiles, with that of a file outside the folders, named after the file."""
        return Sites(self._folders, {**self._texts, path: None}, self._real_host)

    def _find(self, name: str) -> list[Path]:
        if files := self._files.get(name):
            return files
        raise self._no_site(name, f"{name!r} is not a site.")

    def _no_site(self, name: str, message: str) -> InputError:
        """Return the error for a name that no profile has."""
        names = self.names()
        hint = f"{meant(name.lower(), names)}The sites are: {', '.join(names) or 'none'}."
        return InputError(message, hint, field="site")

    def _merged(
        self, name: str, seen: tuple[Path, ...]
    ) -> tuple[Document, dict[str, object], float]:
        """Return a profile's document, its data with those it inherits, and its least pause.

        The `poll_seconds` of a profile in the system's folder, also its default, is the least for
        those that extend or hide it (for those with its host, see `_least_at`): the administrator,
        not each user, decides how often a login node is polled.
        """
        from lumitui.remote.site.reading.yaml_document import Document, read_document

        # A user's own profile may extend the built-in one of the same name.
        candidates = [path for path in self._find(name) if path not in seen]
        if not candidates:
            raise InputError(f"The profile {name!r} extends itself.", "Remove its `extends:`.")
        path = candidates[0]
        if self._is_system(path):
            _refuse_writable(path)
        text = self._texts.get(path)
        document = read_document(path) if text is None else Document(text, str(path))
        data = dict(document.data)
        # Runs remember a site by its name, so it must lead back to the same file.
        if data.setdefault("name", name) != name:
            raise InputError(
                f"{document.where(('name',))}: the profile calls itself {data['name']!r}.",
                f"Write {name!r}, the name of its file, or omit `name:`.",
            )
        if self._is_system(path):
            _without_person(data)
        parent, least = data.pop("extends", None), 0.0
        if parent is not None and str(parent) not in self._files:
            where = document.where(("extends",))
            raise self._no_site(str(parent), f"{where}: {str(parent)!r} is not a site.")
        if parent is not None:
            document.below, inherited, least = self._merged(str(parent), (*seen, path))
            data = merge(inherited, data)
        if parent != name and any(map(self._is_system, candidates[1:])):
            with suppress(InputError):  # what is hidden may be broken
                least = max(least, self._merged(name, (*seen, path))[2])
        _keep_pause(data, least)
        return document, data, max(least, _pause(data)) if self._is_system(path) else least

    def _least_at(self, own: Mapping[str, object]) -> float:
        """Return the least pause that the system's profiles set for the login node of `own`."""
        least = 0.0
        for name, paths in self._files.items():
            hiding = tuple(takewhile(lambda path: not self._is_system(path), paths))
            if len(hiding) < len(paths):
                with suppress(InputError):  # others may be broken
                    _, data, pause = self._merged(name, hiding)
                    if pause > least and self._host(own) == self._host(data) != "":
                        least = pause
        return least

    def _host(self, data: Mapping[str, object]) -> str:
        """Return a profile's login node, as names of hosts are compared."""
        hosts = data.get("hosts")
        if not isinstance(hosts, Mapping) or not hosts.get("login"):
            return ""
        login = str(hosts["login"]).rpartition("@")[2]
        return self._real_host(login, str(hosts.get("ssh_config") or "")).rstrip(".").lower()

    def _is_system(self, path: Path) -> bool:
        return path.parent in self._folders[1:] and path.parent != BUILT_IN


def _pause(data: Mapping[str, object]) -> float:
    """Return the pause between two polls; 0 for one that the validation reports."""
    from lumitui.remote.site.profile import Site

    with suppress(ValueError):
        pause = float(str(data.get("poll_seconds", Site.model_fields["poll_seconds"].default)))
        return pause if 0 < pause <= 86_400 else 0.0
    return 0.0


def _keep_pause(data: dict[str, object], least: float) -> None:
    """Raise `poll_seconds` to `least`, with a note for the user."""
    if 0 < (wanted := _pause(data)) < least:
        notes = data.get("notes", [])
        note = f"lumitui polls every {least:g} s: the system's profile does not allow {wanted:g} s."
        data |= {"poll_seconds": least}
        data |= {"notes": [*notes, note]} if isinstance(notes, list) else {}


def _without_person(data: dict[str, object]) -> None:
    """Remove from a profile for all users its author's account and login name."""
    for key, own in (("account", "default"), ("hosts", "user")):
        if isinstance(block := data.get(key), dict) and block.pop(own, None) and key == "account":
            block.setdefault("example", "PROJECT")


def _refuse_writable(path: Path) -> None:
    """Raise InputError if all may write a shared profile: its commands run as its reader."""
    for each in (path, path.parent):
        if each.exists() and each.stat().st_mode & stat.S_IWOTH:
            raise InputError(
                f"{each} is writable by every user, but jobs run a profile's commands as you.",
                f"Ask its owner to run `chmod o-w {shlex.quote(str(each))}`.",
            )
