"""What became of the options that a script gives its launcher. Pure."""

from dataclasses import dataclass

from lumitui.app.adopt.notes import Said
from lumitui.app.adopt.values import with_numbers
from lumitui.app.lint.model.job import Job
from lumitui.app.lint.model.words import NO_OPTIONS, Option


@dataclass(frozen=True)
class Fates:
    """The launcher's options of a script, by what became of each."""

    derived: tuple[Said, ...]
    """The launch that lumitui writes has the same."""
    changed: tuple[Said, ...]
    """It has another value."""
    lost: tuple[Said, ...]
    """It does not have the option."""


def launcher_options(before: Job, after: Job) -> Fates:
    """Compare the launcher's options of a script with those of the script that lumitui writes."""
    derived, changed, lost = list[Said](), list[Said](), list[Said]()
    step = before.training[-1] if before.training else None
    theirs = after.training[-1].launcher_options if after.training else NO_OPTIONS
    for option in step.launcher_options.all if step else ():
        what = f"{step.launcher if step else ''} {option.raw.strip() or '--' + option.name}"
        ours = theirs.get(option.name)
        if ours is None:
            said = "the new launch does not have it; set the same in the program or its files"
            lost.append(Said(what, said))
        elif _value(option, before) == _value(ours, after):
            derived.append(Said(what, "the new launch has the same"))
        else:
            new = with_numbers(ours.value or "", after)
            changed.append(Said(what, f"{option.value or 'set'} → {new or 'set'}"))
    return Fates(tuple(derived), tuple(changed), tuple(lost))


def _value(option: Option, job: Job) -> str:
    """Return the value, with the job's numbers in place of Slurm's variables."""
    return with_numbers((option.value or "").replace('"', ""), job)
