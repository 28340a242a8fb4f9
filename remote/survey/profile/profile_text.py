"""A proposed profile as YAML that a user reads and changes. Pure."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.writer import marked
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.survey.profile.proposal import MissingFact, ProfileLine, Proposal, Value

_WIDE = 100
_UNSEEN = re.compile("[^\x20-\x7e\xa1-\xac\xae-\u1fff\u2030-\ud7ff]")
_Tree = dict[str, "ProfileLine | MissingFact | _Tree"]


def text_of(proposal: Proposal, host: str, today: date) -> str:
    """Return the profile as text, each line with its source or marked as a guess."""
    tree: _Tree = {}
    for line in proposal.lines:
        level = tree
        for key in line.place[:-1]:
            below = level.setdefault(key, {})
            assert isinstance(below, dict)  # no key is both a value and a block
            level = below
        level[line.place[-1]] = line
    head = [
        f"A profile that `lumitui site add {proposal.name} --host {host}` wrote on {today}.",
        "`source:` names the origin of a value. `guess:` marks an unverified value; its key is "
        "listed under `unverified` at the end. `missing:` marks values that you must look up.",
        *(f"Left out: {_shown(one)}." for one in proposal.left_out[:20]),
    ]
    rows = [row for words in head for row in _comment(words, "")]
    rows += _block(tree, "")
    if proposal.notes:
        rows += ["notes:", *(f"  - {scalar(_shown(note))}" for note in proposal.notes)]
    if proposal.guessed:
        rows += ["unverified:", *(f"  - {scalar(key)}" for key in proposal.guessed)]
    return marked("\n".join(rows))


def _block(tree: _Tree, indent: str) -> Iterator[str]:
    above = ""
    for key, item in tree.items():
        if isinstance(item, MissingFact):
            yield from _comment(f"missing: {key}: {item.what}", indent)
            above = ""
        elif isinstance(item, ProfileLine):
            why = f"{'guess' if item.guess else 'source'}: {item.why}" if item.why else ""
            if why and why != above:  # lines below each other with one source share its comment
                yield from _comment(why, indent)
            above = why
            yield f"{indent}{scalar(key)}: {_value(item.value)}"
        else:
            above = ""
            if not any(not isinstance(one, MissingFact) for one in item.values()):
                yield from _block(item, indent)
                continue
            if not indent:
                yield ""
            yield f"{indent}{scalar(key)}:"
            yield from _block(item, f"{indent}  ")


def _comment(words: str, indent: str) -> list[str]:
    return textwrap.wrap(
        _shown(words),
        _WIDE,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_on_hyphens=False,
    )


def _shown(words: str) -> str:
    """Return a site's text without control characters and ends of comments."""
    return _UNSEEN.sub("?", words)


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return scalar(value)
    return f"[{', '.join(map(scalar, value))}]"


def scalar(text: str) -> str:
    """Return a text as a YAML scalar that parses as exactly this text."""
    if re.fullmatch(r"[\w/.~+-][\w/.~+=@%{}$()-]*(?: [\w/.~+=@%{}$()-]+)*", text, re.ASCII):
        try:
            if _same(Document(f"a: {text}\nb: [{text}]", "a scalar").data, text):
                return text
        except InputError:
            pass
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSEEN.sub(lambda match: f"\\U{ord(match[0]):08x}", quoted)


def _same(read: Mapping[str, object], text: str) -> bool:
    row = read.get("b")
    return read.get("a") == text and isinstance(row, Sequence) and list(row) == [text]
