"""What a rule sees of a Python file: its calls, what it sets, its options, its texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lumitui.remote.site.source_position import Position

Role = Literal["rank", "local", "world", ""]
"""What a value is: the rank in the whole job, that on its node, the number of ranks; "": other."""
Value = str | int | float | bool | None
"""A constant of the program."""


GuardKind = Literal["rank", "local", "some", "other"]
"""`rank`: at most one rank of the job comes through (rank 0, the main process); `local`: one of
each node; `some`: it asks for ranks, and several or nobody knows which come through; `other`: it
asks for something else."""
Way = Literal["all", "local", "one", "unknown"]
"""Which ranks come to a line: all, one of each node, one of the job, or nobody knows."""
_ROUNDS = 50  # as deep as functions call each other before nothing is said
ABOUT_RANKS = re.compile(r"distrib|gpu|world|parallel|ddp|dist\b", re.IGNORECASE)
"""A condition that may tell a run of several ranks from one on a single GPU."""


@dataclass(frozen=True)
class Expression:
    """A value in the program's text, and what is known of it."""

    text: str
    """As Python writes it, without comments."""
    constant: bool = False
    """Whether its value is known: a literal, or a name that the module sets once to one."""
    value: Value = None
    role: Role = ""
    mentions: frozenset[Role] = frozenset()
    """The roles of all that is in it: `f"cuda:{rank}"` mentions the rank."""

    @property
    def number(self) -> int | None:
        """The value, where it is known to be a whole number."""
        return self.value if self.constant and type(self.value) is int else None


@dataclass(frozen=True)
class CallArgument(Expression):
    """An argument of a call."""

    name: str = ""
    """Its keyword; "": it has none. `**`: it is a dictionary of arguments that nobody knows."""


@dataclass(frozen=True)
class LineGuard:
    """A condition under which alone a line runs."""

    text: str
    kind: GuardKind
    mixed: bool = False
    """Whether it asks for something besides ranks, too: `rank == 0 and args.log`."""


@dataclass(frozen=True)
class Call:
    """A call, with what must hold for it to be reached."""

    name: str
    """With imports resolved: `dist.barrier` is `torch.distributed.barrier`; a method of something
    that has no name is `?.method`."""
    arguments: tuple[CallArgument, ...]
    at: Position
    guards: tuple[LineGuard, ...] = ()
    function: str = ""
    """The function it is in; "": the module itself."""
    target: str = ""
    """What its value is assigned to; "": nothing."""

    @property
    def last(self) -> str:
        """The last part of its name: `barrier`."""
        return self.name.rpartition(".")[2]

    def get(self, name: str, place: int | None = None) -> CallArgument | None:
        """Return the argument of this keyword, or the one that is at `place` without one."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        plain = [argument for argument in self.arguments if not argument.name]
        return plain[place] if place is not None and place < len(plain) else None

    @property
    def open(self) -> bool:
        """Whether it may have arguments that the text does not show (`**options`)."""
        return any(argument.name in ("*", "**") for argument in self.arguments)

    def is_true(self, name: str) -> bool:
        """Return whether the argument of this keyword is `True`."""
        argument = self.get(name)
        return argument is not None and argument.constant and argument.value is True


@dataclass(frozen=True)
class Assignment:
    """An assignment: to a name, an attribute, or a variable of the environment."""

    target: str
    """As Python writes it; `environ[NAME]` for `os.environ["NAME"] = …`."""
    value: Expression
    at: Position
    guards: tuple[LineGuard, ...] = ()
    function: str = ""


@dataclass(frozen=True)
class ProgramOption:
    """An option that the program reads from its command line with argparse."""

    flags: tuple[str, ...]
    name: str
    """The attribute in which argparse keeps it."""
    default: Expression | None
    at: Position
    required: bool = False
    """Whether argparse ends the program without it."""


@dataclass(frozen=True)
class Text:
    """A string in the program's text that is not a docstring."""

    value: str
    at: Position


@dataclass(frozen=True)
class Fault:
    """Why Python would not start the file."""

    message: str
    at: Position


@dataclass(frozen=True)
class PythonFile:
    """One Python file."""

    file: str
    fault: Fault | None = None
    """None: it parses. With one, everything else is empty."""
    whole: bool = True
    """Whether all of it was read; if not, everything else is empty."""
    imports: frozenset[str] = frozenset()
    """The modules that it imports, as `torch.distributed`."""
    calls: tuple[Call, ...] = ()
    settings: tuple[Assignment, ...] = ()
    options: tuple[ProgramOption, ...] = ()
    texts: tuple[Text, ...] = ()
    reads: frozenset[str] = frozenset()
    """The variables of the environment that it must find: `os.environ["RANK"]`."""
    asks: frozenset[str] = frozenset()
    """Those it only asks for, `os.environ.get("RANK", 0)`, or may ask for in a loop over names."""
    functions: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    """Functions that it gives to others, as in `spawn(main)`: nobody sees who calls them."""
    guarded: frozenset[str] = frozenset()
    """Functions with a decorator that lets only one rank call them."""
    dictionaries: tuple[Text, ...] = ()
    """Dictionaries of constants, as JSON: a configuration may be in the program."""

    def named(self, *names: str) -> Iterator[Call]:
        """Yield the calls whose last part is one of these, or whose whole name with dots is."""
        return (call for call in self.calls if call.last in names or call.name in names)

    def has(self, *names: str) -> bool:
        """Return whether it calls one of these."""
        return next(self.named(*names), None) is not None

    def imports_any(self, *roots: str) -> bool:
        """Return whether it imports one of these modules or a part of them."""
        return any(
            name == root or name.startswith(f"{root}.") for name in self.imports for root in roots
        )

    def environment(self, *names: str) -> Iterator[Assignment]:
        """Yield where it sets one of these variables of the environment."""
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
        """Return which ranks come to a call.

        A function's callers count too; one that this file never calls is unknown.
        """
        ways = self._ways_of(call, self._ways)
        if "all" in ways:
            return "all"
        return "unknown" if "unknown" in ways or not ways else min(ways)  # local before one

    @cached_property
    def _ways(self) -> dict[str, set[Way]]:
        """For each function that is called here, the ways in which ranks come to it."""
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
            return {"unknown"}  # it may be what a run on one GPU does
        return found.get(call.function, {"unknown"}) if call.function else {"all"}

    def always(self, call: Call) -> bool:
        """Return whether a call is reached with any options of the program.

        A condition about ranks does not count; any other condition may never hold.
        """
        return _is_certain(call) and (not call.function or call.function in self._certain)

    def comes_to(self, call: Call) -> bool:
        """Return whether a run comes to a call, as far as this file tells.

        A function that is not called here is one that another file calls.
        """
        return self.always(call) or (_is_certain(call) and call.function not in self._callers)

    @cached_property
    def _certain(self) -> frozenset[str]:
        """The functions that a run comes to by calls without a condition."""
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
