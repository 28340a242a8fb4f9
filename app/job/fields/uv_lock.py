"""The requirements in `uv.lock` and `pyproject.toml`, as pip reads them. Pure; uv is not needed."""

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lumitui.app.job.fields.venv_field import package_of

_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
          "implementation_name": "cpython"}  # fmt: skip
_TOKEN = re.compile(
    r"""\s*(?:([()]|[<>=!~]=?=?|(?:and|or|not\s+in|in)\b)|([\w.]+)|'([^']*)'|"([^"]*)")"""
)
_MOST_REASONS = 8
"""Maximum number of separate reasons to track for one package; if there are more, it is always
installed."""
_ELSEWHERE = re.compile(r"-(?:win|macosx|ios|android|pyodide|emscripten)[^/]*\.whl$")


def project_requirements(text: str, left_out: Collection[str]) -> tuple[str, ...]:
    """Return the dependencies of a pyproject.toml except `left_out`, the image's packages.

    Raises:
        ValueError: it is not TOML, or lists none; the message says what to do.
    """
    project = _table(tomllib.loads(text), "project")
    if "dependencies" in project.get("dynamic", ()):
        raise ValueError("its dependencies are dynamic; use a requirements file instead")
    sources = _table(_table(tomllib.loads(text), "tool"), "uv").get("sources", {})
    lines = project.get("dependencies")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("it has no `dependencies` list under [project]")
    if other := sorted({package_of(line) for line in lines} & {package_of(key) for key in sources}):
        raise ValueError(
            f"only uv knows where {', '.join(other)} comes from; lock the project, and use uv.lock"
        )
    return tuple(" ".join(line.split()) for line in lines if package_of(line) not in left_out)


def python_bound(text: str) -> str:
    """Return the `requires-python` of a pyproject.toml or uv.lock; "" if it has none."""
    data = tomllib.loads(text)
    bound = data.get("requires-python") or _table(data, "project").get("requires-python")
    return bound if isinstance(bound, str) else ""


def lock_requirements(text: str, left_out: Collection[str]) -> tuple[str, ...]:
    """Return what a uv.lock installs on Linux, each version with its hashes, without groups.

    The `left_out` packages come from the image: neither they nor packages that only they need are
    installed. The project itself is not installed either, as its code is sent with each run.

    Raises:
        ValueError: it is not a lock that can be exported; the message says why.
    """
    data = tomllib.loads(text)
    if data.get("version") != 1:
        raise ValueError("it is not a version 1 uv.lock; lock the project again with a current uv")
    packages = [_Package(one) for one in data.get("package", []) if isinstance(one, dict)]
    roots = [one for one in packages if one.is_project]
    if not roots:
        raise ValueError("it has no project")
    reasons = _reasons(packages, roots, left_out)
    installed = {one: reason for one, reason in reasons.items() if not one.is_project}
    # The index of most packages is pip's default, or a mirror of it.
    others = [name for name, _ in Counter(one.index for one in installed).most_common()[1:]]
    lines = (one.line(installed[one]) for one in sorted(installed, key=lambda each: each.key))
    return (*(f"--extra-index-url {url}" for url in others), *lines)


_Reasons = set[frozenset[str]]
"""The reasons for a package: sets of markers that must all hold; the empty set always holds."""


def _reasons(
    packages: "Sequence[_Package]", roots: "Sequence[_Package]", left_out: Collection[str]
) -> "dict[_Package, _Reasons]":
    by_name: dict[str, list[_Package]] = {}
    for one in packages:
        by_name.setdefault(one.name, []).append(one)
    found: dict[tuple[_Package, str], _Reasons] = {}
    todo = [(root, "", frozenset[str]()) for root in roots]
    while todo:
        package, extra, reason = todo.pop()
        known = found.setdefault((package, extra), set())
        if any(other <= reason for other in known):
            continue
        known -= {other for other in known if reason <= other}
        known.add(reason)
        if len(known) > _MOST_REASONS:
            reason = frozenset()
            found[package, extra] = {reason}
        for edge in package.edges(extra):
            name, version = package_of(str(edge.get("name", ""))), edge.get("version")
            marker = str(edge.get("marker", ""))
            for other in by_name.get(name, ()) if name not in left_out else ():
                more = {one for one in (marker, other.marker) if holds_on_linux(one) is not True}
                if version in (None, other.version) and holds_on_linux(marker) is not False:
                    extras = ("", *map(str, edge.get("extra", ())))
                    todo += [(other, each, reason | more) for each in extras]
    reasons: dict[_Package, _Reasons] = {}
    for (package, _), known in found.items():
        reasons.setdefault(package, set()).update(known)
    return reasons


class _Package:
    """One entry `[[package]]`; equal only to itself."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.name = package_of(str(data.get("name", "")))
        self.version = data.get("version")
        self._source = _table(data, "source")
        self.is_project = bool(self._source.keys() & {"virtual", "editable", "directory"})

    @property
    def marker(self) -> str:
        """The marker of the Pythons to which this version applies; "": all."""
        markers = list(map(str, self._data.get("resolution-markers", ())))
        return " or ".join(f"({one})" for one in markers) if len(markers) > 1 else "".join(markers)

    @property
    def key(self) -> tuple[str, str]:
        return self.name, str(self.version)

    @property
    def index(self) -> str:
        url = self._source.get("registry")
        if not isinstance(url, str) or not re.fullmatch(r"https://[^\s'\"]+", url):
            raise ValueError(
                f"{self.name} does not come from a package index, so pip cannot verify it; "
                "build a wheel of it and use `venv: {packages: […], wheels: FOLDER}`"
            )
        return url

    def edges(self, extra: str) -> Iterator[Mapping[str, Any]]:
        """Yield the package's dependencies; for an `extra`, those that the extra adds."""
        more = _table(self._data, "optional-dependencies")
        edges = more.get(extra, []) if extra else self._data.get("dependencies", [])
        yield from (edge for edge in edges if isinstance(edge, dict))

    def line(self, reasons: _Reasons) -> str:
        """Return the package as a requirement with its hashes."""
        files = [self._data.get("sdist"), *self._data.get("wheels", ())]
        kept = [one for one in files if isinstance(one, dict)]
        hashes = sorted({
            str(one.get("hash", ""))
            for one in kept
            if not _ELSEWHERE.search(str(one.get("url", "")).partition("#")[0])
        })  # fmt: skip
        if not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes):
            raise ValueError(f"{self.name} has no SHA-256 for Linux; lock the project again")
        if not re.fullmatch(r"[\w.!+-]+", str(self.version)):
            raise ValueError(f"{self.name} has no version")
        alternatives = (" and ".join(f"({one})" for one in sorted(each)) for each in reasons)
        condition = f" ; {' or '.join(sorted(alternatives))}" if frozenset() not in reasons else ""
        return f"{self.name}=={self.version}{condition} {' '.join(f'--hash={h}' for h in hashes)}"


def holds_on_linux(marker: str) -> bool | None:
    """Return whether an environment marker holds on every Linux; None: for some Pythons only."""
    if not marker.strip():
        return True
    tokens, at = [], 0
    while at < len(marker.rstrip()):
        match = _TOKEN.match(marker, at)
        if match is None:
            return None
        tokens.append(match)
        at = match.end()
    value, rest = _joined(tokens)
    return value if not rest else None


_Tokens = Sequence[re.Match[str]]


def _joined(tokens: _Tokens, word: str = "or") -> tuple[bool | None, _Tokens]:
    """Return the value of the leading terms, joined by `or` or `and`, and the other tokens."""
    term = _one if word == "and" else partial(_joined, word="and")
    decides = word == "or"
    value, rest = term(tokens)
    while rest and rest[0][1] == word:
        other, rest = term(rest[1:])
        unknown = None if None in (value, other) else not decides
        value = decides if decides in (value, other) else unknown
    return value, rest


def _one(tokens: _Tokens) -> tuple[bool | None, _Tokens]:
    if tokens and tokens[0][1] == "(":
        value, rest = _joined(tokens[1:])
        return value, rest[1:]
    if len(tokens) < 3:
        return None, ()
    (name, sign, text), rest = tokens[:3], tokens[3:]
    known = _LINUX.get(name[2] or "")
    wanted = text[3] if text[3] is not None else text[4]
    if known is None or wanted is None or sign[1] not in ("==", "!="):
        return None, rest
    return (known == wanted) is (sign[1] == "=="), rest


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key, {})
    return value if isinstance(value, dict) else {}
