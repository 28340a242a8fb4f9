"""A command's options, read as getopt_long and argparse do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lumitui.app.knowledge.bash.expand import ExpandedWord
from lumitui.app.knowledge.script_job import CommandOptions, Option
from lumitui.remote.site.source_position import Position

Takes = Literal["nothing", "value", "maybe", "pair"]
"""`maybe`: a value only behind `=` (long) or in the same word (short). `pair`: two values."""


@dataclass(frozen=True)
class OptionSyntax:
    """The options of one program."""

    long: Mapping[str, Takes]
    short: Mapping[str, str] = field(default_factory=dict)
    """The long name of each letter."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Other spellings of a long name."""
    prefixes: bool = True
    """Whether the beginning of a long name is enough where it is the only one."""
    one_dash: bool = False
    """Whether long names may also have one dash, like mpirun's `-np`."""
    underscores: bool = True
    """Whether `_` and `-` are the same in a name, as argparse's launchers have it."""
    unknown_values: bool = False
    """Whether an unknown option has a value where the next word is not an option."""

    def full(self, name: str) -> tuple[str, ...]:
        """Return the long names that `name` may stand for: one, none, or too many."""
        name = name.replace("_", "-") if self.underscores else name
        name = self.same.get(name, name)
        if name in self.long:
            return (name,)
        if not self.prefixes:
            return ()
        known = [*self.long, *self.same]
        fits = {self.same.get(long, long) for long in known if long.startswith(name)}
        return tuple(sorted(fits))


@dataclass(frozen=True)
class Strange:
    """An option that the program does not have, or that several names begin with."""

    text: str
    at: Position
    candidates: tuple[str, ...] = ()
    missing_value: bool = False


@dataclass
class Parsed:
    """What a command line's beginning says."""

    options: CommandOptions = field(default_factory=CommandOptions)
    rest: int = 0
    """The index of the first word that is not an option."""
    strange: list[Strange] = field(default_factory=list)


def parse(words: Sequence[ExpandedWord], table: OptionSyntax, start: int = 0) -> Parsed:
    """Read options from `words[start]` on, up to the first word that is none."""
    found: list[Option] = []
    parsed = Parsed()
    index = start
    while index < len(words):
        text = words[index].text
        if text == "--":
            index += 1
            break
        if not text.startswith("-") or text == "-":
            break
        if text.startswith("--") or (table.one_dash and text[1:].split("=")[0] in table.long):
            index = _long(words, index, table, found, parsed)
        else:
            index = _short(words, index, table, found, parsed)
    parsed.options, parsed.rest = CommandOptions(tuple(found)), min(index, len(words))
    return parsed


def _long(
    words: Sequence[ExpandedWord],
    index: int,
    table: OptionSyntax,
    found: list[Option],
    parsed: Parsed,
) -> int:
    word = words[index]
    name, equals, value = word.text.lstrip("-").partition("=")
    names = table.full(name)
    if len(names) != 1:
        parsed.strange.append(Strange(word.text, word.at, names))
        following = index + 1 < len(words) and not words[index + 1].text.startswith("-")
        if table.unknown_values and not equals and following:
            found.append(
                _option(name.replace("_", "-"), words[index + 1].text, word, words[index + 1])
            )
            return index + 2
        found.append(_option(name.replace("_", "-"), value if equals else None, word))
        return index + 1
    takes = table.long[names[0]]
    if takes == "pair" and index + 2 < len(words):
        pair = f"{words[index + 1].text} {words[index + 2].text}"
        found.append(_option(names[0], pair, word, words[index + 2]))
        return index + 3
    if equals or takes != "value":
        found.append(_option(names[0], value if equals else None, word))
        return index + 1
    return _with_next(words, index, names[0], found, parsed)


def _with_next(
    words: Sequence[ExpandedWord], index: int, name: str, found: list[Option], parsed: Parsed
) -> int:
    word = words[index]
    if index + 1 >= len(words):
        parsed.strange.append(Strange(word.text, word.at, missing_value=True))
        found.append(_option(name, None, word))
        return index + 1
    found.append(_option(name, words[index + 1].text, word, words[index + 1]))
    return index + 2


def _short(
    words: Sequence[ExpandedWord],
    index: int,
    table: OptionSyntax,
    found: list[Option],
    parsed: Parsed,
) -> int:
    word = words[index]
    letters = word.text[1:]
    for place, letter in enumerate(letters):
        name = table.short.get(letter)
        if name is None:
            parsed.strange.append(Strange(word.text, word.at))
            found.append(_option(letters[place:], None, word))
            return index + 1
        rest = letters[place + 1 :]
        takes = table.long.get(name, "nothing")
        if takes == "value" and not rest:
            return _with_next(words, index, name, found, parsed)
        if takes != "nothing":
            found.append(_option(name, rest or None, word))
            return index + 1
        found.append(_option(name, None, word))
    return index + 1


def _option(
    name: str, value: str | None, word: ExpandedWord, second: ExpandedWord | None = None
) -> Option:
    if second is None:
        return Option(name, value, word.at, word.word.text)
    at, end = word.at, second.at
    if (end.file, end.line) == (at.file, at.line) and end.end_column > at.column:
        at = Position(at.line, at.column, end.end_line, end.end_column, at.file)
    return Option(name, value, at, f"{word.word.text} {second.word.text}")
