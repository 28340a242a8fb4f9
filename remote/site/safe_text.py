r"""Text from elsewhere, made safe to show on a terminal. Pure.

This is the one place that says which characters are control characters and how they are shown:
caret notation for C0 (`^[` for ESC), an escape for all others (`\x9b`, `\u202e`).
"""

import codecs
import re

_RANGES = (
    (0x00, 0x1F),  # C0
    (0x7F, 0x9F),  # DEL and C1
    # These turn the direction of the text around them, or end a line.
    (0x061C, 0x061C),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2066, 0x2069),
    # Bytes that were not UTF-8, which no terminal takes.
    (0xD800, 0xDFFF),
)
CONTROL_CHARACTERS = frozenset(
    chr(code) for first, last in _RANGES for code in range(first, last + 1)
)
"""The control characters, newline and tab included."""
# What no command line can carry, or what would control the terminal that shows it.
UNSEEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
"""Characters that no text of a job file or profile may have."""
SEPARATOR = re.compile("[\x85\u2028\u2029]")
"""YAML 1.1 folds these with the spaces around them; in YAML 1.2 they are text like any other."""
_CONTROL = re.compile(
    "[" + "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in _RANGES) + "]"
)
_SEQUENCE = re.compile(
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    "|[\\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC and other strings: titles, clipboard
    "|[ -/]*[0-OQ-WYZ\\\\`-~])"
)
_COLOUR = re.compile("\x1b\\[[0-9;:]*m")
# A sequence whose end may be in the next chunk.
_CUT = re.compile("\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)?$")
_LONGEST_SEQUENCE = 4096
_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)


def spell_out(text: str, *, keep: str = "") -> str:
    """Return `text` with every control character spelled out; those in `keep` stay."""

    def spelled(match: re.Match[str]) -> str:
        char = match[0]
        if char in keep:
            return char
        code = ord(char)
        if code < 32 or code == 127:
            return "^" + chr(code ^ 64)
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return _CONTROL.sub(spelled, text)


def lines_of(text: str) -> str:
    """Return a text of several lines, safe to print; its tabs stay.

    The runner of a CI obeys a line that begins with `::` or `##[` in what any program prints
    (actions/runner, ActionCommand.cs): such a line gets a backslash before it.
    """
    return _COMMAND.sub(r"\1\\\2", spell_out(text, keep="\n\t"))


def comment(text: str) -> str:
    """Return `text` on one line, for a comment in a file."""
    return " ".join(spell_out(text, keep="\n\t").split())


def log_line(line: str) -> str:
    """Return one line of a log without colours, its tabs as spaces, the rest spelled out."""
    return spell_out(_COLOUR.sub("", line), keep="\t").expandtabs(8)


def coloured_parts(line: str) -> list[tuple[str, str]]:
    """Return one line of a log as (codes of the colour set before it, safe text) pairs.

    Joined, the texts are `log_line`. The codes are digits, `;` and `:`, as in `1;31`.
    """
    if "\x1b" not in line:
        return [("", log_line(line))]
    parts, column, codes = [], 0, ""
    at = 0
    for match in (*_COLOUR.finditer(line), None):
        text = spell_out(line[at : match.start() if match else len(line)], keep="\t")
        # A tab stops at the columns of the whole line.
        text = (" " * (column % 8) + text).expandtabs(8)[column % 8 :]
        parts.append((codes, text))
        column += len(text)
        if match:
            codes, at = match[0][2:-1] or "0", match.end()
    return parts


def plain(text: str, longest: int = 1000) -> str:
    """Return `text` without escape sequences and control characters, for rules to search.

    A tab becomes a space; no more than `longest` characters are returned.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", text).replace("\t", " "))[:longest]


class LogFilter:
    """Turns a log's bytes into text that is safe on a terminal; of its sequences colours stay."""

    def __init__(self, *, colours: bool = True) -> None:
        """Also drop colours if `colours` is false."""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._colours = colours
        self._kept = ""

    def feed(self, chunk: bytes, *, end: bool = False) -> str:
        """Return the safe part of `chunk`, including earlier withheld text."""
        text = self._kept + self._decode(chunk, end)
        cut = None if end else _CUT.search(text)
        if cut and len(text) - cut.start() < _LONGEST_SEQUENCE:
            text, self._kept = text[: cut.start()], text[cut.start() :]
        else:
            self._kept = ""
        parts = _SEQUENCE.split(text)
        sequences = _SEQUENCE.findall(text)
        safe = spell_out(parts[0], keep="\n\t\r")
        for sequence, part in zip(sequences, parts[1:], strict=True):
            if self._colours and _COLOUR.fullmatch(sequence):
                safe += sequence
            safe += spell_out(part, keep="\n\t\r")
        return safe
