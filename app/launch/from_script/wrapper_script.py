"""Notes the fate of a wrapper script, like LUMI's `select_gpu`.

The ranks start the wrapper, and it starts the program. The reader follows it, so what it sets and
runs is noted like the rest of the script; this module notes the rest: the wrapper's name and file.
"""

import posixpath
import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.other_statements import OtherStatement
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.remote.site.source_position import Position

VISIBLE = re.compile(r"^(?:ROCR|HIP|CUDA|GPU)_VISIBLE_DEVICES$|^GPU_DEVICE_ORDINAL$")
"""Variables with the GPUs that a rank sees."""
_PASSED_ON = re.compile(r"\$\{?[*@]")


def file_of(word: str) -> str:
    """Return the path of a word, as the script refers to its files."""
    return posixpath.normpath(re.sub(r"^\$\{?PWD\}?/", "", word.strip("\"'")))


def wrappers(job: ScriptJob, step: JobStep) -> dict[str, str]:
    """Return the wrappers between the launcher and the program: each file's path and text."""
    texts = {file_of(path): text for path, text in job.files.items()}
    return {
        name: texts[name]
        for name in before_program(job, step)
        if name in texts and _PASSED_ON.search(texts[name])
    }


def before_program(job: ScriptJob, step: JobStep) -> list[str]:
    """Return the words of a step's command line as paths, without its program."""
    outer = next((item for item in job.commands if item.at == step.at), None)
    program = file_of(step.program.known) if step.program else ""
    names = [file_of(word.known) for word in outer.words] if outer else []
    return [name for name in names if name != program]


def writes_wrapper(part: OtherStatement, names: dict[str, str]) -> bool:
    """Return whether a statement only writes a wrapper's file, or makes it executable."""
    if set(part.names) <= {"cat", "tee", "printf", "echo"} and ">" in part.text:
        target = re.search(r"(?<!<)>\s*(\S+)", part.text.split("\n", 1)[0])
        return bool(target) and file_of(target[1] if target else "") in names
    words = part.text.split()
    return part.names == ("chmod",) and {*map(file_of, words[2:])} <= names.keys() and bool(names)


def program_in(text: str) -> Iterator[Position]:
    """Yield the place where a wrapper starts its argument."""
    for number, line in enumerate(text.split("\n"), 1):
        if found := _PASSED_ON.search(line):
            yield Position(number, found.start() + 1)
            return
