"""What the shell of a script does around its program, and a job file cannot say."""

from lumitui.app.adopt.notes import Notes
from lumitui.app.lint.bash.words.around import around
from lumitui.app.lint.model.job import Job
from lumitui.app.lint.model.steps import Step

_LOST = {
    "function": ("{}", "a job file has no functions"),
    "condition": ("{}", "a job file has no conditions; read what this one decides"),
    "loop": ("{}", "a job file has no loops; `grid:` makes a run of each value"),
    "piped in": ("{} |", "nothing is piped into the program"),
    "piped out": ("| {}", "the run's log has the program's output"),
    "redirection": ("{}", "a job file has no redirections; the run's log has the output"),
}
_MOST = 100


def shell_of(job: Job, step: Step, notes: Notes) -> None:
    """Say which functions, conditions, loops, traps, redirections and pipes a script loses."""
    for part in around(job.text, step.at):
        form, words = _LOST[part.kind]
        notes.lose(form.format(part.text[:_MOST]), words)
    for command in job.commands:
        if command.program == "trap" and command.shell == "batch" and command.step is None:
            written = " ".join(word.text for word in command.words)
            notes.lose(f"trap {written}"[:_MOST], "lumitui's own script has its traps; `signal:`")
