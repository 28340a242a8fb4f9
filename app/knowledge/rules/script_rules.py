"""Rules about the script's text: syntax that sbatch or bash would misread."""

import re
from collections.abc import Callable, Iterable, Iterator

from lumitui.app.knowledge.bash.option_tables import SBATCH, SRUN
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.phrases import nearest
from lumitui.app.knowledge.script_job import Command, ScriptJob, Trouble
from lumitui.remote.site.finding import Fix, Severity
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_HARMLESS = ("--job-name", "-J", "--comment", "--export", "--mail-user", "--wckey")
"""Options that accept any text, so the job runs even with a literal `$` in it."""


def _about(
    name: str, severity: Severity, title: str, *, why: str, source: str
) -> Callable[[Callable[[ScriptJob, Trouble], Hit]], Rule]:
    """Return a decorator that turns a function into a rule for the problems with this name."""

    def made(hit: Callable[[ScriptJob, Trouble], Hit]) -> Rule:
        def check(job: ScriptJob, site: Site) -> Iterator[Hit]:
            return (hit(job, trouble) for trouble in job.troubles if trouble.id == name)

        return Rule(name, severity, title, why, source, check=check)

    return made


def _written(job: ScriptJob, at: Position) -> str:
    """Return the text at a position of one line."""
    text = job.files.get(at.file, "") if at.file else job.text
    line = text.split("\n")[at.line - 1 : at.line]
    return line[0][at.column - 1 : at.end_column - 1] if line else ""


@_about(
    "bad-shebang",
    "error",
    "a script whose first line names no interpreter",
    why="sbatch refuses it: the line must begin with `#!` and an interpreter's path.",
    source="sbatch(1), DESCRIPTION: `This does not look like a batch script`",
)
def _bad_shebang(job: ScriptJob, trouble: Trouble) -> Hit:
    if trouble.fact == "byte order mark":
        edit = Fix("remove the byte order mark", trouble.at, "")
        do = "Save it as UTF-8 without BOM, or run sed -i '1s/^\\xef\\xbb\\xbf//' SCRIPT."
    else:
        edit = Fix("add #!/bin/bash -l", Position(1, 1, 1, 1), "#!/bin/bash -l\n")
        do = "Write #!/bin/bash -l as the first line."
    return Hit(trouble.message, do, trouble.at, None if job.text.startswith("#!") else edit)


@_about(
    "windows-line-ends",
    "error",
    "Windows line endings",
    why="sbatch refuses the script: `Batch script contains DOS line breaks`.",
    source="sbatch: `Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX`",
)
def _windows_line_ends(job: ScriptJob, trouble: Trouble) -> Hit:
    lines = job.text.split("\n")
    whole = Position(1, 1, len(lines), len(lines[-1]) + 1)
    alone = "\n" not in job.text
    text = job.text.replace("\r", "\n") if alone else job.text.replace("\r\n", "\n")
    tool = "mac2unix" if alone else "dos2unix"
    edit = Fix("write Unix line endings", whole, text)
    return Hit(trouble.message, f"Convert it with {tool}.", trouble.at, edit)


@_about(
    "not-text",
    "error",
    "a NUL character in the script",
    why="sbatch refuses it: the script was saved as UTF-16, or is not a script.",
    source="sbatch: `The Slurm controller does not allow scripts that contain a NULL character`",
)
def _not_text(job: ScriptJob, trouble: Trouble) -> Hit:
    return Hit(trouble.message, "Save it as UTF-8.", trouble.at)


@_about(
    "unclosed-quote",
    "error",
    "an unclosed quote",
    why="bash treats all lines below as text, and fails with `unexpected EOF while looking for "
    "matching`.",
    source="bash(1), QUOTING",
)
def _unclosed_quote(job: ScriptJob, trouble: Trouble) -> Hit:
    do = "Close it. Also check the lines above: an earlier quote may be open."
    return Hit(trouble.message, do, trouble.at)


@_about(
    "heredoc-open",
    "error",
    "a heredoc without an end",
    why="bash treats the rest of the script, including the launch, as text, and only warns in the "
    "log.",
    source="bash(1), Here Documents",
)
def _heredoc_open(job: ScriptJob, trouble: Trouble) -> Hit:
    word = re.sub(r"^<<-?\s*|['\"\\]", "", _written(job, trouble.at)).split(" ")[0]
    if not trouble.fact:
        return Hit(trouble.message, f"Write {word} on its own line.", trouble.at)
    line = int(trouble.fact)
    old = job.text.split("\n")[line - 1].removesuffix("\r")
    at, right = Position(line, 1, line, len(old) + 1), old.strip()
    edit = Fix(f"write only {right} on the line", at, right)
    return Hit(trouble.message, f"Write {right} on its own line.", trouble.at, edit)


@_about(
    "bracket-without-blank",
    "error",
    "a test whose bracket touches a word",
    why="bash prints `command not found` and treats the test as false.",
    source="bash(1), Compound Commands; test(1)",
)
def _bracket_without_blank(job: ScriptJob, trouble: Trouble) -> Hit:
    sign = _written(job, trouble.at)
    before = trouble.fact == "before"
    where, right = ("before", f" {sign}") if before else ("behind", f"{sign} ")
    edit = Fix(f"write a space {where} {sign}", trouble.at, right)
    return Hit(trouble.message, f"Write a space {where} {sign}.", trouble.at, edit)


@_about(
    "syntax-error",
    "error",
    "an unclosed part of the script",
    why="bash stops with `syntax error: unexpected end of file`: an `if`, a loop, a function "
    "or `$(` has no end.",
    source="bash(1), Compound Commands",
)
def _syntax_error(job: ScriptJob, trouble: Trouble) -> Hit:
    do = f"Add the missing `{trouble.fact}`."
    if trouble.fact == "elif":
        do = "Write elif instead of else if."
    return Hit(trouble.message, do, trouble.at)


@_about(
    "directive-after-command",
    "warning",
    "an #SBATCH line below the first command",
    why="sbatch treats such a line as a comment.",
    source="sbatch(1), DESCRIPTION: `sbatch will stop processing further #SBATCH directives`",
)
def _directive_after_command(job: ScriptJob, trouble: Trouble) -> Hit:
    return Hit(trouble.message, "Move it above the first command.", trouble.at)


@_about(
    "nearly-a-directive",
    "warning",
    "a comment that looks like an #SBATCH line",
    why="sbatch reads a line only if it begins with `#SBATCH`, in capitals, without a space "
    "before or within it.",
    source="sbatch(1), DESCRIPTION",
)
def _nearly_a_directive(job: ScriptJob, trouble: Trouble) -> Hit:
    text = _written(job, trouble.at)
    right = re.sub(r"^\s*#+\s*\w+:?", "#SBATCH", text)
    edit = Fix(f"write {right}", trouble.at, right)
    return Hit(trouble.message, f"Write {right.strip()}.", trouble.at, edit)


@_about(
    "directive-with-variable",
    "error",
    "a variable in an #SBATCH line",
    why="sbatch does not expand it: the job gets the literal text.",
    source="sbatch(1), filename pattern; DESCRIPTION",
)
def _directive_with_variable(job: ScriptJob, trouble: Trouble) -> Hit:
    text = _written(job, trouble.at)
    option = next(
        (each for each in job.options.all if each.at.line == trouble.at.line
         and each.at.column <= trouble.at.column < each.at.end_column), None,
    )  # fmt: skip
    name = f"--{option.name}" if option else text
    harmless = name.startswith(_HARMLESS)
    do = "Write the value itself"
    if name in ("--output", "--error", "--input"):
        do += "; %j is the job's id, %x its name, %u the user"
    return Hit(trouble.message, f"{do}.", trouble.at, severity="warning" if harmless else None)


@_about(
    "stray-word",
    "error",
    "a word in an #SBATCH line that belongs to no option",
    why="sbatch refuses the job or ignores the rest of the line. A common cause is a space "
    "around `=`.",
    source="sbatch: `Invalid directive found in batch script`",
)
def _stray_word(job: ScriptJob, trouble: Trouble) -> Hit:
    word = _written(job, trouble.at)
    do = "Remove the spaces around `=`." if word.startswith("=") else "Remove it, or quote it."
    if re.match(r"<.*|.*>$", word):
        do = "Replace the text between `<` and `>` with your own value."
    return Hit(trouble.message, do, trouble.at)


@_about(
    "unknown-directive",
    "error",
    "an option that sbatch does not have",
    why="sbatch refuses the script.",
    source="sbatch(1), OPTIONS",
)
def _unknown_directive(job: ScriptJob, trouble: Trouble) -> Hit:
    return _unknown(job, trouble, SBATCH.long, only_on=("cpu-bind", "kill-on-bad-exit", "label"))


@_about(
    "unknown-srun-option",
    "error",
    "an option that srun does not have",
    why="srun fails before the program starts.",
    source="srun(1), OPTIONS",
)
def _unknown_srun_option(job: ScriptJob, trouble: Trouble) -> Hit:
    return _unknown(job, trouble, SRUN.long, only_on=("array", "wrap", "parsable"))


def _unknown(
    job: ScriptJob, trouble: Trouble, names: Iterable[str], *, only_on: tuple[str, ...]
) -> Hit:
    """Return the message for an option that is not in `names`."""
    written = _written(job, trouble.at)
    name, equals, value = written.lstrip("-").partition("=")
    if trouble.fact == "cut":
        return Hit(trouble.message, "Write the option in full, with its value.", trouble.at)
    if name in only_on:
        other = "srun" if trouble.id == "unknown-directive" else "sbatch"
        if job.origin == "job file":  # has no key for srun's options
            key = "; `binding:` sets how ranks are bound to cores" if name == "cpu-bind" else ""
            return Hit(trouble.message, f"Omit it{key}.", trouble.at)
        return Hit(trouble.message, f"Pass it to {other}, which supports it.", trouble.at)
    meant = nearest(name.replace("_", "-"), names)
    if meant is None:
        # The user chose an entry of `sbatch:` for this job; a script may be a centre's template.
        severity: Severity = "warning" if trouble.at.field == "sbatch" else "note"
        do = "Remove it, unless one of the site's plugins adds it."
        return Hit(trouble.message, do, trouble.at, severity=severity)
    right = f"--{meant}{equals}{value}"
    edit = Fix(f"write {right}", trouble.at, right)
    return Hit(trouble.message, f"Write {right}.", trouble.at, edit)


@_about(
    "not-understood",
    "note",
    "a part of the script that lumitui does not read",
    why="No rule checks it: several programs in one step, heterogeneous jobs, or bash that the "
    "parser does not support.",
    source="lumitui's own script parser",
)
def _not_understood(job: ScriptJob, trouble: Trouble) -> Hit:
    return Hit(trouble.message, "Check this part yourself.", trouble.at)


_BASH = "bash(1)"


def _sets(job: ScriptJob, option: str, letter: str) -> Command | None:
    """Return the `set` of the batch script that enables a shell option, or None."""
    for command in job.commands:
        words = [word.text for word in command.words]
        if command.program != "set" or command.shell != "batch":
            continue
        letters = "".join(word for word in words if re.fullmatch(r"-[a-zA-Z]+", word))
        if option in words and any(re.fullmatch(r"-[a-zA-Z]*o", word) for word in words):
            return command
        if letter and letter in letters:
            return command
    return None


@rule(
    "exit-code-lost",
    "warning",
    "a pipe that hides the launch's exit code",
    why="Without pipefail, a pipe exits with the code of its last command, so Slurm marks a "
    "failed job COMPLETED.",
    source=f"{_BASH}, pipefail",
)
def _exit_code_lost(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if _sets(job, "pipefail", ""):
        return
    if "PIPESTATUS" in job.text:
        return
    for step in job.training:
        last = max(step.at.end_line, step.at.line)
        for command in job.commands:
            behind = step.at.line <= command.at.line <= last + 1 and command.shell == "batch"
            if command.program == "tee" and behind and _is_piped(job, command):
                yield Hit(
                    "`| tee` hides the launch's exit code: the job counts as completed even if "
                    "the program fails.",
                    "Write `set -o pipefail` before it, or set the log with --output.",
                    command.at,
                )
                break


def _is_piped(job: ScriptJob, command: Command) -> bool:
    lines = job.text.split("\n")
    before = "\n".join(lines[max(0, command.at.line - 2) : command.at.line - 1])
    before += "\n" + lines[command.at.line - 1][: command.at.column - 1]
    return re.search(r"\|&?\s*(\\\n\s*)?$", before) is not None


@rule(
    "arguments-split",
    "warning",
    "arguments passed on without quotes",
    why="`$*` and `$@` without quotes split every argument at its spaces.",
    source=f"{_BASH}, special parameters",
)
def _arguments_split(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        for word in step.arguments:
            if word.text in ("$*", "${*}") or (word.text in ("$@", "${@}") and not word.quotes):
                yield Hit(f"{word.text} splits arguments at their spaces.", 'Write "$@".', word.at)


@_about(
    "command-split",
    "error",
    "a wrapper script that divides the text of `bash -c`",
    why="`$*` and `$@` without quotes split it at spaces. For `./select_gpu bash -c 'a; b'`, "
    "bash runs only `a;`, and the step exits with 0.",
    source=f"{_BASH}, special parameters",
)
def _command_split(job: ScriptJob, trouble: Trouble) -> Hit:
    do = 'Write exec "$@" in the wrapper, or "\\$@" in a heredoc without quotes around its EOF.'
    return Hit(trouble.message, do, trouble.at)


def _ends(job: ScriptJob) -> Iterator[tuple[Command, str, str]]:
    """Yield the script's own commands, each with the rest of its line and the next line."""
    lines = job.text.split("\n")
    told = set[int]()
    for command in job.commands:
        at = command.at
        if at.file or not 0 < at.end_line <= len(lines) or at.end_line in told:
            continue
        rest = lines[at.end_line - 1][at.end_column - 1 :].rstrip("\r")
        if "\\" in rest:
            told.add(at.end_line)
            yield command, rest, "".join(lines[at.end_line : at.end_line + 1])


@rule(
    "comment-in-command",
    "error",
    "a comment between the lines of one command",
    why="The comment ends the command: the next line is a separate command.",
    source="bash(1), COMMENTS",
)
def _comment_in_command(job: ScriptJob, site: Site) -> Iterator[Hit]:
    lines = job.text.split("\n")
    for command, rest, following in _ends(job):
        line = command.at.end_line + 1
        more = "".join(lines[line : line + 1]).strip()
        if re.fullmatch(r"\s*\\", rest) and re.match(r"\s*#", following) and more:
            if not following.rstrip().endswith("\\"):
                continue
            at = Position(line, 1, line, len(following) + 1)
            message = (
                f"The comment ends the command `{command.program}`: {more[:40]} is not part of it."
            )
            yield Hit(message, "Move the comment above the command.", at)


_ANGLES = re.compile(r"<[A-Za-z]\w*(?:[ :.-]\w+)*>")
_GLUED = re.compile(r"[=/\"'_:,.@-]$")
_PATH = re.compile(r"(?:^|(?<=[\s=\"':]))/path/to/[^\s\"':;|&)]*")
_SAYS = re.compile(r"\s*(?:echo|printf|log\w*|say|warn|die|error|info|usage|print)\b")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")


@rule(
    "placeholder",
    "error",
    "a placeholder copied from an example",
    why="bash interprets `<name>` as redirections, so the command does not start. A path "
    "copied from an example does not exist.",
    source="bash(1), REDIRECTION; HPC4AIbook, Chapter.12/ddp_job_template.slurm",
)
def _placeholder(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for number, line in _commands(job.text):
        for found in (*_angles(line), *_PATH.finditer(line)):
            at = Position(number, found.start() + 1, number, found.end() + 1)
            yield Hit(
                f"{found[0]} is a placeholder for your own value.", "Replace it with your own.", at
            )


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that bash executes, without comments and heredocs."""
    ends = ""
    for number, line in enumerate(text.split("\n"), 1):
        if ends:
            ends = "" if line.strip() == ends else ends
            continue
        code = re.split(r"(?:^|\s)#", line, maxsplit=1)[0]
        started = _HEREDOC.search(code)
        ends = started[1] if started and "<<<" not in code else ""
        yield number, code


def _angles(line: str) -> Iterator[re.Match[str]]:
    """Yield `<words>` inside a word or at the end of a command, which are not redirections."""
    for found in _ANGLES.finditer(line):
        before, behind = line[: found.start()], line[found.end() :].strip()
        quoted = before.count('"') % 2 == 1 or before.count("'") % 2 == 1
        if quoted and (_SAYS.match(line) or f"</{found[0][1:]}" in line or before.endswith(":-")):
            continue  # a message, an HTML tag, or a default value
        if _GLUED.search(before) or not behind or behind[0] in "&|;)\\":
            yield found
