"""YAML documents in plain reading; every value knows its line.

PyYAML follows YAML 1.1, where `10:00` is the number 600, `1e-3` is text, `yes` is True and
`010` is 8. Here only YAML 1.2's core forms are numbers and booleans: `true`, `10`, `1.5`, `1e-3`.
"""

import copy
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import yaml

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.reading.writer import writer_of
from lumitui.remote.site.safe_text import SEPARATOR, UNSEEN
from lumitui.remote.site.shell_text import quote

Place = tuple[int | str, ...]
"""Where a value is: keys and indexes from the root."""
_MOST_BYTES = 100_000  # PyYAML reads 80 kB a second
_MOST_VALUES = 20_000  # and 10,000 values a second
_DEEPEST = 40


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML that is not allowed in a job file or profile."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2; no duplicate keys, aliases, tags or deep nesting.

    Ten lines of aliases stand for a billion values, and PyYAML's `!!bool x` is a KeyError.
    """

    _depth = 0
    _values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one node, unless it is of a kind that is refused."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stub has no types
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = f"the alias *{event.anchor} is not supported; write the value out"
        elif event.tag is not None:
            problem = f"the tag {event.tag} is not supported; remove it"
        elif isinstance(event, yaml.ScalarEvent) and UNSEEN.search(event.value):
            problem = "the text has a control character"
        elif self._depth == _DEEPEST:
            problem = f"nested more than {_DEEPEST} levels deep"
        elif self._values == _MOST_VALUES:
            problem = f"more than {_MOST_VALUES:,} values; move a long list to a separate file"
        if problem:
            raise _Refused(None, None, problem, event.start_mark)
        self._values += 1
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
        "-+0123456789.",
    ),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    seen: dict[object, int] = {}
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be plain text", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} appears twice", key_node.start_mark
            )
        seen[key] = key_node.start_mark.line
    return {
        loader.construct_object(key): loader.construct_object(value, deep=True)
        for key, value in node.value
    }


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


class _PlainLoader(_Loader):
    """Every scalar except null is text: for documents whose model knows the number types."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [row for row in rows if row[0].endswith(":null")]
    for first, rows in _Loader.yaml_implicit_resolvers.items()
}


_JOB_SCRIPT = re.compile(r"\A#!|^#SBATCH\b", re.MULTILINE)


def _as_script(name: str, text: str) -> tuple[str, str] | None:
    """Return the message and hint for a script instead of a job file, or None."""
    if not _JOB_SCRIPT.search(text):
        return None
    script = quote(name) if "." in name else "SCRIPT"
    return (
        f"{name} is a job script, not a job file.",
        f"`lumitui import {script}` converts it to a job file; `lumitui lint {script}` checks it.",
    )


class NotYaml(InputError):
    """A text that is not a YAML mapping, or that uses unsupported YAML."""

    def __init__(self, message: str, hint: str, line: int = 1) -> None:
        """Keep the 1-based `line` where reading stopped."""
        super().__init__(message, hint)
        self.line = line


class Document:
    """A parsed YAML mapping that knows the line of every value."""

    def __init__(self, text: str, name: str, *, plain: bool = False) -> None:
        """Parse `text`; errors show `name` (a path); `plain` leaves scalars as text.

        Raises:
            InputError: not YAML, or not a mapping.
        """
        self.name = name
        self.writer = writer_of(text)
        """The lumitui version that wrote it, from its comment, or ""."""
        self.below: Document | None = None
        """The document that this one extends."""
        self.root: yaml.MappingNode | None = None
        """The mapping with the marks of every key and value; None for an empty text."""
        loader = None
        if len(text) > _MOST_BYTES:
            raise InputError(*_too_large(name))
        if match := SEPARATOR.search(text):
            line = text.count("\n", 0, match.start()) + 1
            raise NotYaml(
                f"{name}, line {line}: it contains the line separator U+{ord(match[0]):04X}.",
                f'Remove it, or write "\\u{ord(match[0]):04x}" in double quotes.',
                line,
            )
        if name.endswith(".py"):  # a short one is a mapping: `for i in x:`
            words = f"`lumitui new --script {quote(name)}` writes a job file for it."
            raise NotYaml(f"{name} is a Python program, not a job file.", words)
        try:
            # Building the loader already reads: control characters are refused here.
            loader = (_PlainLoader if plain else _Loader)(text)
            node = loader.get_single_node()
            data = loader.construct_document(node) if node else {}
        except yaml.YAMLError as error:
            mistake = _as_script(name, text) or _yaml_words(error, name, text)
            raise NotYaml(*mistake) from error
        except ValueError as error:
            raise InputError(f"{name} has an unreadable value: {error}.", "Quote it.") from error
        finally:
            if loader is not None:
                loader.dispose()
        if not isinstance(data, dict):
            mistake = f"{name} is not a list of `key: value` lines.", "Start it with `name: …`."
            raise NotYaml(*(_as_script(name, text) or mistake))
        self.root = node if isinstance(node, yaml.MappingNode) else None
        self.data: dict[str, object] = {str(key): value for key, value in data.items()}
        self._lines = dict(_lines(node, ())) if node else {}

    def line(self, place: Place) -> int:
        """Return the 1-based line of the value at `place`, or of its nearest known parent."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def level(self, place: Place) -> int | None:
        """Return the document with `place`: 0 is this one, 1 the one below; None for neither."""
        number, document = 0, self
        while place not in document._lines:
            if document.below is None:
                return None
            number, document = number + 1, document.below
        return number

    def where(self, place: Place) -> str:
        """Return `file:line` of the value at `place`, in this document or the ones below it."""
        while True:
            document: Document | None = self
            while document is not None:
                if place in document._lines:
                    return f"{document.name}:{document._lines[place]}"
                document = document.below
            if not place:
                return f"{self.name}:1"
            place = place[:-1]


@lru_cache(maxsize=16)
def _parsed(text: str, name: str, plain: bool) -> Document:
    # A profile is read at every check of a job, and parsing one takes 10 ms.
    return Document(text, name, plain=plain)


def read_document(path: Path, *, plain: bool = False) -> Document:
    """Read and parse a YAML file; `plain` leaves scalars as text.

    Raises:
        InputError: no such file, not readable, too large, not UTF-8, or not a YAML mapping.
    """
    try:
        raw = read_plain(path, _MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise InputError(*_too_large(str(path)))
        document = copy.copy(_parsed(raw.decode("utf-8"), str(path), plain))
        document.data = copy.deepcopy(document.data)
        return document
    except FileNotFoundError as error:
        raise InputError(f"The file {path} does not exist.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    except OSError as error:
        closed = isinstance(error, PermissionError)
        do = "Ask its owner to run `chmod a+r` on it." if closed else "Check the path."
        raise InputError(f"{path} cannot be read: {error.strerror}.", do) from error


def _lines(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            for at, line in _lines(value, (*place, str(key.value))):
                # A value that starts on a later line counts as on the line of its key.
                yield at, key.start_mark.line + 1 if len(at) == len(place) + 1 else line
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*place, index))


def _too_large(name: str) -> tuple[str, str]:
    return (
        f"{name} is larger than {_MOST_BYTES // 1000} kB.",
        "A job file or profile has a few kB; check that it is the right file.",
    )


def _yaml_words(error: yaml.YAMLError, name: str, text: str) -> tuple[str, str, int]:
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"{name}, line {line}: it contains a control character.", "Remove it.", line
    line = mark.line + 1 if mark else 1
    where = f"{name}, line {mark.line + 1}" if mark else name
    problem = getattr(error, "problem", None) or str(error)
    if isinstance(error, _Refused):
        return f"{where}: {problem}.", "Write it as plain `key: value` lines and lists.", line
    begun = getattr(error, "context_mark", None)
    # A block, too, has a context: that of its first key.
    if begun and mark and begun.line < mark.line and text[begun.index] in "[{\"'":
        sign, line = text[begun.index], begun.line + 1
        closing = {"[": "]", "{": "}"}.get(sign, sign)
        words = f"{name}, line {line}: not valid YAML (the {sign} has no closing {closing})."
        return words, f"Add the {closing}, or quote the whole value.", line
    if begun and "expected ':'" in problem:  # the parser notices at the next line
        where, line = f"{name}, line {begun.line + 1}", begun.line + 1
    for pattern, words, hint in _PLAIN_WORDS:
        if found := re.search(pattern, problem):
            return f"{where}: not valid YAML ({found.expand(words)}).", found.expand(hint), line
    hint = "Check the indentation, colons and quotes around it."
    return f"{where}: not valid YAML ({problem}).", hint, line


_PLAIN_WORDS = (
    ("expected ':'", "a key needs a colon and a space", "Write `key: value`."),
    (
        "mapping values are not allowed|sequence entries are not allowed",
        "a key or list item is not allowed here",
        "Indent it like its neighbours. If a value contains `: `, quote the value.",
    ),
    (
        "but found '(<block|[?-])",
        "the indentation matches no line above",
        "Indent the line like its neighbours.",
    ),
    (
        "but found '<scalar>'",
        "text follows a closing quote or bracket",
        "Quote the whole value.",
    ),
    (r"but found '([\]}:])'", r"unexpected \1", r"Remove the \1, or quote the whole value."),
    (r"found character '\\t'", "a tab before the text", "Indent with spaces."),
    (r"found character '(.)'", r"a value cannot start with \1", "Quote the value."),
    (
        "unknown escape character '(.)'",
        r"\\\1 in double quotes has no meaning",
        "Use single quotes.",
    ),
)
"""What the parser says, as patterns; plain words for it, and what to do."""
