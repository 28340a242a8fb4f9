"""A command's options, parsed as getopt_long and argparse do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lumitui.app.knowledge.bash.expand import ExpandedWord
from lumitui.app.knowledge.script_job import CommandOptions, Option
from lumitui.remote.site.source_position import Position

Takes = Literal["nothing", "value", "maybe", "pair"]
"""`maybe`: an optional value, after `=` (long) or in the same word (short). `pair`: two values."""


@dataclass(frozen=True)
class OptionSyntax:
    """The options of one program."""

    long: Mapping[str, Takes]
    short: Mapping[str, str] = field(default_factory=dict)
    """The long name of each letter."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Other spellings of long names."""
    prefixes: bool = True
    """Whether a unique prefix of a long name is enough."""
    one_dash: bool = False
    """Whether long names may also begin with one dash, like mpirun's `-np`."""
    underscores: bool = True
    """Whether `_` and `-` are the same in a name, as in launchers that use argparse."""
    unknown_values: bool = False
    """Whether an unknown option takes the next word as its value, unless that is an option."""

    def full(self, name: str) -> tuple[str, ...]:
        """Return the long names that `name` may mean: one, none, or several if it is ambiguous."""
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
    """An unknown or ambiguous option, or one without its value."""

    text: str
    at: Position
    candidates: tuple[str, ...] = ()
    missing_value: bool = False


@dataclass
class Parsed:
    """The options at the beginning of a command line."""

    options: CommandOptions = field(default_factory=CommandOptions)
    rest: int = 0
    """The index of the first word that is not an option."""
    strange: list[Strange] = field(default_factory=list)


def parse(words: Sequence[ExpandedWord], table: OptionSyntax, start: int = 0) -> Parsed:
    """Read options from `words[start]` up to the first word that is not an option."""
    return _OptionReader(words, table, start).read()


@dataclass
class _OptionReader:
    words: Sequence[ExpandedWord]
    table: OptionSyntax
    index: int
    options: list[Option] = field(default_factory=list)
    strange: list[Strange] = field(default_factory=list)

    def read(self) -> Parsed:
        while self.index < len(self.words):
            text = self.words[self.index].text
            if text == "--":
                self.index += 1
                break
            if not text.startswith("-") or text == "-":
                break
            one_dash = self.table.one_dash and text[1:].split("=")[0] in self.table.long
            if text.startswith("--") or one_dash:
                self._long()
            else:
                self._short()
        rest = min(self.index, len(self.words))
        return Parsed(CommandOptions(tuple(self.options)), rest, self.strange)

    def _long(self) -> None:
        word, left = self.words[self.index], len(self.words) - self.index - 1
        name, equals, text = word.text.lstrip("-").partition("=")
        value, names = text if equals else None, self.table.full(name)
        if len(names) != 1:
            self.strange.append(Strange(word.text, word.at, names))
            has_value = self.table.unknown_values and not equals and left
            has_value = has_value and not self.words[self.index + 1].text.startswith("-")
            self._keep(name.replace("_", "-"), value, 1 if has_value else 0)
            return
        takes = self.table.long[names[0]]
        if takes == "pair" and left > 1:
            self._keep(names[0], None, 2)
        elif equals or takes != "value":
            self._keep(names[0], value)
        else:
            self._keep_with_next(names[0])

    def _short(self) -> None:
        word = self.words[self.index]
        letters = word.text[1:]
        for place, letter in enumerate(letters):
            name, rest = self.table.short.get(letter), letters[place + 1 :]
            if name is None:
                self.strange.append(Strange(word.text, word.at))
                self._keep(letters[place:], None)
                return
            takes = self.table.long.get(name, "nothing")
            if takes == "value" and not rest:
                self._keep_with_next(name)
                return
            if takes != "nothing" or not rest:
                self._keep(name, rest or None)
                return
            self.options.append(_option(name, None, word))

    def _keep_with_next(self, name: str) -> None:
        word = self.words[self.index]
        if self.index + 1 < len(self.words):
            self._keep(name, None, 1)
        else:
            self.strange.append(Strange(word.text, word.at, missing_value=True))
            self._keep(name, None)

    def _keep(self, name: str, value: str | None, following: int = 0) -> None:
        """Keep an option; its value is the next `following` words, if any."""
        behind = self.words[self.index + 1 : self.index + 1 + following]
        value = " ".join(each.text for each in behind) if behind else value
        last = behind[-1] if behind else None
        self.options.append(_option(name, value, self.words[self.index], last))
        self.index += 1 + following


def _option(
    name: str, value: str | None, word: ExpandedWord, second: ExpandedWord | None = None
) -> Option:
    if second is None:
        return Option(name, value, word.at, word.word.text)
    at, end = word.at, second.at
    if (end.file, end.line) == (at.file, at.line) and end.end_column > at.column:
        at = Position(at.line, at.column, end.end_line, end.end_column, at.file)
    return Option(name, value, at, f"{word.word.text} {second.word.text}")
