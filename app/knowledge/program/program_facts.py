"""The facts of a Python file that rules use: calls, assignments, options, texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lumitui.remote.site.source_position import Position

Role = Literal["rank", "local", "world", ""]
"""Role of a value: the global rank, the local rank, the number of ranks, or "" for others."""
Value = str | int | float | bool | None


GuardKind = Literal["rank", "local", "some", "other"]
"""`rank`: at most one rank of the job passes (rank 0, the main process); `local`: one rank per
node; `some`: the condition tests ranks, and several or unknown ones pass; `other`: the condition
does not test ranks."""
Way = Literal["all", "local", "one", "unknown"]
"""Ranks that reach a line: all, one per node, one of the job, or unknown."""
_ROUNDS = 50  # maximum depth of calls to follow
ABOUT_RANKS = re.compile(r"distrib|gpu|world|parallel|ddp|dist\b", re.IGNORECASE)
"""A condition that may distinguish a run of several ranks from a run on a single GPU."""


@dataclass(frozen=True)
class Expression:
    """A value in the program's text, and its known properties."""

    text: str
    """As `ast.unparse` writes it, without comments."""
    constant: bool = False
    """Whether the value is known: a literal, or a name that the module sets once, to a literal."""
    value: Value = None
    mentions: frozenset[Role] = frozenset()
    """The roles of all its parts: `f"cuda:{rank}"` mentions the rank."""


@dataclass(frozen=True)
class CallArgument(Expression):
    """An argument of a call."""

    name: str = ""
    """The keyword, "" for a positional argument, or `**` for a dictionary of unknown arguments."""


@dataclass(frozen=True)
class LineGuard:
    """A condition that must hold for a line to run."""

    text: str
    kind: GuardKind
    mixed: bool = False
    """Whether it also tests something other than ranks: `rank == 0 and args.log`."""


@dataclass(frozen=True)
class Call:
    """A call, with the conditions that must hold to reach it."""

    name: str
    """With imports resolved: `dist.barrier` is `torch.distributed.barrier`; a method of an unnamed
    value is `?.method`."""
    arguments: tuple[CallArgument, ...]
    at: Position
    guards: tuple[LineGuard, ...] = ()
    function: str = ""
    """The function that contains the call; "" at module level."""
    target: str = ""
    """The name that its value is assigned to, or ""."""

    @property
    def last(self) -> str:
        """The last part of the name: `barrier`."""
        return self.name.rpartition(".")[2]

    def get(self, name: str, place: int | None = None) -> CallArgument | None:
        """Return the argument of this keyword, otherwise the positional argument at `place`."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        plain = [argument for argument in self.arguments if not argument.name]
        return plain[place] if place is not None and place < len(plain) else None

    @property
    def open(self) -> bool:
        """Whether the call may have arguments that the text does not show (`**options`)."""
        return any(argument.name in ("*", "**") for argument in self.arguments)

    def is_true(self, name: str) -> bool:
        """Return whether the argument of this keyword is `True`."""
        argument = self.get(name)
        return argument is not None and argument.constant and argument.value is True


@dataclass(frozen=True)
class Assignment:
    """An assignment to a name, an attribute, or an environment variable."""

    target: str
    """The target as Python writes it; `environ[NAME]` for `os.environ["NAME"] = …`."""
    value: Expression
    at: Position
    guards: tuple[LineGuard, ...] = ()
    function: str = ""
    """The function that contains it; "" at module level."""


@dataclass(frozen=True)
class ProgramOption:
    """A command-line option that the program reads with argparse."""

    flags: tuple[str, ...]
    name: str
    """The attribute in which argparse stores the value."""
    default: Expression | None
    required: bool = False
    """Whether argparse exits if the option is missing."""


@dataclass(frozen=True)
class Text:
    """A string in the program's text that is not a docstring."""

    value: str
    at: Position


@dataclass(frozen=True)
class Fault:
    """The reason why Python would not start the file."""

    message: str
    at: Position


@dataclass(frozen=True)
class PythonFile:
    """One Python file."""

    file: str
    fault: Fault | None = None
    """None if the file parses; otherwise all other fields are empty."""
    whole: bool = True
    """Whether the whole file was read; if not, all other fields are empty."""
    imports: frozenset[str] = frozenset()
    """Imported modules, like `torch.distributed`."""
    calls: tuple[Call, ...] = ()
    settings: tuple[Assignment, ...] = ()
    options: tuple[ProgramOption, ...] = ()
    texts: tuple[Text, ...] = ()
    reads: frozenset[str] = frozenset()
    """Environment variables that must be set: `os.environ["RANK"]`."""
    asks: frozenset[str] = frozenset()
    """Environment variables that it may read: `os.environ.get("RANK", 0)`, or a loop over names."""
    functions: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    """Functions that it passes to others, as in `spawn(main)`: their callers are unknown."""
    guarded: frozenset[str] = frozenset()
    """Functions with a decorator that allows only one rank to run them."""
    dictionaries: tuple[Text, ...] = ()
    """Dictionaries of constants as JSON, because a configuration may be part of the program."""

    def named(self, *names: str) -> Iterator[Call]:
        """Yield the calls whose last part or whole dotted name is one of these."""
        return (call for call in self.calls if call.last in names or call.name in names)

    def has(self, *names: str) -> bool:
        """Return whether the file calls one of these."""
        return next(self.named(*names), None) is not None

    def imports_any(self, *roots: str) -> bool:
        """Return whether the file imports one of these modules or their submodules."""
        return any(
            name == root or name.startswith(f"{root}.") for name in self.imports for root in roots
        )

    def environment(self, *names: str) -> Iterator[Assignment]:
        """Yield the assignments to these environment variables."""
        targets = {f"environ[{name}]" for name in names}
        return (setting for setting in self.settings if setting.target in targets)

    @cached_property
    def _callers(self) -> dict[str, tuple[Call, ...]]:
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.last in self.functions:
                found.setdefault(call.last, []).append(call)
        return {name: tuple(calls) for name, calls in found.items()}

    def reach(self, call: Call) -> Way:
        """Return the ranks that reach a call.

        The function's callers count; if this file never calls it, the ranks are unknown.
        """
        ways = self._ways_of(call, self._ways)
        if "all" in ways:
            return "all"
        return "unknown" if "unknown" in ways or not ways else min(ways)  # local < one

    @cached_property
    def _ways(self) -> dict[str, set[Way]]:
        """The ranks that reach each function that this file calls."""
        found: dict[str, set[Way]] = {name: set() for name in self._callers}
        for _round in range(_ROUNDS):
            before = sum(map(len, found.values()))
            for name, callers in self._callers.items():
                for caller in callers:
                    found[name] |= self._ways_of(caller, found)
                    if "." in caller.name and not caller.name.startswith("self."):
                        found[name].add("unknown")  # `torch.save()` is not this file's `save`
                if name in self.passed:
                    found[name].add("unknown")
            if sum(map(len, found.values())) == before:
                break
        return found

    def _ways_of(self, call: Call, found: dict[str, set[Way]]) -> set[Way]:
        kinds = {guard.kind for guard in call.guards}
        if "rank" in kinds or call.function in self.guarded:
            return {"one"}
        if "local" in kinds:
            return {"local"}
        if "some" in kinds or any(ABOUT_RANKS.search(guard.text) for guard in call.guards):
            return {"unknown"}  # perhaps the branch of a run on one GPU
        return found.get(call.function, {"unknown"}) if call.function else {"all"}

    def always(self, call: Call) -> bool:
        """Return whether the program reaches a call whatever its options.

        Conditions on ranks are ignored; any other condition may never hold.
        """
        return _is_certain(call) and (not call.function or call.function in self._certain)

    def comes_to(self, call: Call) -> bool:
        """Return whether a run reaches a call, as far as this file shows.

        A function that this file does not call is assumed to be called by another file.
        """
        return self.always(call) or (_is_certain(call) and call.function not in self._callers)

    @cached_property
    def _certain(self) -> frozenset[str]:
        """The functions that a run reaches by unconditional calls."""
        names = set[str]()
        for _round in range(_ROUNDS):
            before = len(names)
            for name, callers in self._callers.items():
                if any(
                    _is_certain(one) and (not one.function or one.function in names)
                    for one in callers
                ):
                    names.add(name)
            if len(names) == before:
                break
        return frozenset(names)


def _is_certain(call: Call) -> bool:
    return all(guard.kind != "other" and not guard.mixed for guard in call.guards)
