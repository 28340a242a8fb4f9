"""The texts without which a line cannot fit a pattern: most lines of a log are passed over by them.

It reads the syntax that the rules use, and gives up on a branch that it cannot read: the pattern
itself is then tried on every line.
"""

from dataclasses import dataclass

_OPTIONAL = ("?", "*", "{0")


@dataclass
class _Reader:
    """Where in a pattern the reading is."""

    text: str
    at: int = 0

    def alternatives(self) -> frozenset[str] | None:
        """Return one text of each branch up to the end of the group; None: one has none."""
        found: set[str] = set()
        known = True
        while True:
            branch = self._branch()
            if branch is None:
                known = False
            else:
                found |= branch
            if self.text[self.at : self.at + 1] != "|":
                return frozenset(found) if known else None
            self.at += 1

    def _branch(self) -> frozenset[str] | None:
        """Return the texts of a branch that rule out most lines: the longest ones."""
        best: frozenset[str] | None = None
        run = ""
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            piece = self._piece()
            optional = self.text.startswith(_OPTIONAL, self.at)
            repeated = self._skip_quantifier()
            if isinstance(piece, str) and not optional:
                run += piece
                if not repeated:
                    continue
            best, run = _better(best, frozenset({run}) if run else None), ""
            if isinstance(piece, frozenset) and not optional:
                best = _better(best, piece)
        return _better(best, frozenset({run}) if run else None)

    def _piece(self) -> str | frozenset[str] | None:
        """Return a character, the texts of a group, or None for what fits many characters."""
        char = self.text[self.at]
        self.at += 1
        if char == "\\":
            escaped = self.text[self.at]
            self.at += 1
            return None if escaped.isalnum() else escaped.lower()
        if char == "[":
            self._skip_class()
            return None
        if char == "(":
            return self._group()
        return None if char in ".^$" else char.lower()

    def _group(self) -> frozenset[str] | None:
        """Return the texts of a group; None for one that only looks ahead or back."""
        rest = self.text[self.at :]
        looks = rest.startswith(("?!", "?=", "?<!", "?<="))
        if rest.startswith("?"):
            self.at += 1 + rest[1:].find(">" if rest.startswith("?P<") else ":") + 1
            if looks:
                self.at = len(self.text) - len(rest) + (3 if rest.startswith("?<") else 2)
        inside = self.alternatives()
        self.at += 1
        return None if looks else inside

    def _skip_class(self) -> None:
        """Go behind a class of characters."""
        self.at += self.text.startswith("^", self.at)
        first = self.at
        while self.text[self.at] != "]" or self.at == first:
            self.at += 1 + (self.text[self.at] == "\\")
        self.at += 1

    def _skip_quantifier(self) -> bool:
        """Go behind a quantifier, and return whether there was one."""
        begin = self.at
        if self.text.startswith("{", self.at):
            self.at = self.text.index("}", self.at) + 1
        elif self.text[self.at : self.at + 1] in ("?", "*", "+"):
            self.at += 1
        return self.at > begin


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return the set whose shortest text is longer."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other, key=lambda texts: min(map(len, texts)))


def literals(pattern: str) -> frozenset[str] | None:
    """Return texts in lower case, one of which is in every line that fits; None: not known."""
    return _Reader(pattern).alternatives()
