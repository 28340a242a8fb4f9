"""Parts of one request: commands that fail each on its own, within a time and a size.

The script of a request calls `part KIND COMMAND...` for each; its answer is a record with what the
command printed, both outputs, and its status.
"""

import re
from collections.abc import Mapping

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.shell_text import fill
from lumitui.remote.transport.records import parse_records, record_functions

MOST_PART = 256 << 10
"""Most bytes of a part. 2,000 jobs of one person have some 200 kB."""
PART_SECONDS = 12
"""The time limit of a part, where the site has `timeout`."""
_NOT_FOUND = re.compile(r"([^\s:]+): (?:command )?not found")

_FUNCTIONS = r"""{records}
t=; if command -v timeout >/dev/null 2>&1; then t='timeout {seconds}'; fi
fed() {
  kind=$1; shift
  begin "$kind"
  { $t "$@" 2>&1; echo "{status}=$?"; } | head -c {most}; echo
  finish
}
part() { fed "$@" </dev/null; }"""


def part_functions(marker: str) -> str:
    """Return sh that defines `part KIND COMMAND...`, and `fed` for one that reads its input."""
    return fill(
        _FUNCTIONS,
        records=record_functions(marker),
        status=f"{marker}-status",
        seconds=PART_SECONDS,
        most=MOST_PART,
    )


def read_parts(
    output: bytes, marker: str, commands: Mapping[str, str], keys: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what each part said, and why the others could not be had; no bytes make it raise.

    `commands` names each part's command for a person, `keys` the profile's key of those that a
    profile names.
    """
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    end = re.compile(rf"{re.escape(marker)}-status=(\d+)\n*\Z")
    for words, content in parse_records(output, marker):
        text = content[: MOST_PART + 200].decode("utf-8", "replace")
        if len(words) != 1 or (command := commands.get(words[0])) is None:
            continue
        found = end.search(text)
        said = text[: found.start()] if found else text
        if found is None:
            faults[words[0]] = f"`{command}` prints more than is read here."
        elif found[1] == "124":
            faults[words[0]] = f"`{command}` did not answer within {PART_SECONDS} s."
        elif found[1] == "127":
            faults[words[0]] = _not_found(command, said, keys.get(words[0], ""))
        elif found[1] != "0":
            why = last_words(said, default=f"status {found[1]}").rstrip(".")
            faults[words[0]] = f"`{command}` failed: {why}."
        else:
            texts[words[0]] = said
    for kind in commands:
        if kind not in texts:
            faults.setdefault(kind, "The site's answer ends before it.")
    return texts, faults


def _not_found(command: str, said: str, key: str) -> str:
    """Return what to say of a command that the site does not have; `said` is its shell's line."""
    found = _NOT_FOUND.search(said)
    missing = f"The site has no command `{found[1] if found else command.split()[0]}`."
    if key:
        return f"{missing} Name the right one in its profile (`{key}`)."
    return f"{missing} Ask `lumitui doctor` whether Slurm can be used there."
