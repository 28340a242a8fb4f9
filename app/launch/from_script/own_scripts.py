"""Writes a job file for a user's own sbatch script or Python program."""

import contextlib
import os
import re
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from lumitui.app.job import examples
from lumitui.app.job.edit import set_key
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.bash.other_statements import referenced_files
from lumitui.app.knowledge.guess import guess_site
from lumitui.app.knowledge.program.program_facts import ProgramOption
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.deepspeed_batch import argument_words
from lumitui.app.launch.draft.job_form import apply_fixes
from lumitui.app.launch.draft.printed_series import undrawn_series
from lumitui.app.launch.from_script.from_script import spec_of
from lumitui.app.launch.from_script.import_report import ImportReport, import_report, job_file_text
from lumitui.app.launch.from_script.notes import ImportNote
from lumitui.app.launch.from_script.wrapper_script import before_program, file_of
from lumitui.app.launch.rules.outside_project import outside_paths
from lumitui.app.launch.rules.script_texts import texts_of
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.safe_text import comment
from lumitui.remote.site.sites import Sites

_SIGNS = {
    **dict.fromkeys((".yaml", ".yml"), re.compile(r"(?m)^(?:\{(?:.*[,\s])?)?[\"']?site[\"']?:")),
    **dict.fromkeys((".sh", ".bash", ".sbatch", ".slurm", ".job"), re.compile("(?m)^#SBATCH")),
    # A module that imports torch and only defines things is not a program.
    ".py": re.compile(
        r"(?m)^(?:if __name__|(?:import|from) argparse)|\A(?=(?s:.*?)^(?:import|from) torch\b)"
        r"(?s:.*?)^(?:(?:for|while|with) |[a-zA-Z_][\w.]*\()"
    ),
}
"""Beginnings of lines that identify a file's type, by suffix."""


_LARGEST_WRAPPER = 100_000
LARGEST_SCRIPT = 4 << 20
_LARGEST_CONFIG = 1_000_000
_PACKAGES = ("requirements.txt", "uv.lock", "pyproject.toml")
"""Files of a project with its packages, as `venv:` takes them."""


def files_here(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the job files and the user's own scripts in `folder`.

    A job file is YAML with a `site:`; a script has `#SBATCH` lines or is a Python program.
    """
    jobs: list[Path] = []
    scripts: list[Path] = []
    for path in sorted(folder.glob("*.*")):
        signs = _SIGNS.get(path.suffix)
        try:
            if not signs or not path.is_file():
                continue  # opening a pipe would block
            with path.open("rb") as file:
                head = file.read(100_000).decode("utf-8", "replace")
        except OSError:
            continue  # naming its path shows the reason
        if signs.search(head):
            (jobs if path.suffix in (".yaml", ".yml") else scripts).append(path)
    return jobs, scripts


@dataclass(frozen=True)
class ImportedScript:
    """The job file of an sbatch script, and the fate of the script's parts."""

    text: str
    report: ImportReport
    site: Site
    because: str
    """What identified the site; "" if the user named it."""

    @property
    def chosen(self) -> str:
        """The site, and what identified it."""
        return f"{self.site.name}, guessed from {self.because}" if self.because else self.site.name


def import_script(
    data: bytes, script: Path, sites: Sites, site_name: str = "", home: Path | None = None
) -> ImportedScript:
    """Return the job file of an sbatch script with the contents `data`.

    `home` is the job file's folder, by default the script's. The script runs where it is submitted:
    in `home`, this process's folder or its own, the first that has the program.

    Raises:
        InputError: it is empty, its site is unknown, or lumitui cannot compose its job.
    """
    if not data.strip():
        raise InputError(f"{script} is empty.", "Pass a job script.")
    odd: list[int] = []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        split = enumerate(data.split(b"\n"), 1)
        odd = [number for number, line in split if "\ufffd" in line.decode(errors="replace")]
    site, because = _site_of(text, sites, site_name)
    folder = script.resolve().parent
    home, found = (home or folder).resolve(), dict[Path, ImportReport]()
    for submit in dict.fromkeys((home, Path.cwd(), folder)):
        report = _report(text, site, script, submit, str(home))
        root = Path(os.path.normpath(home / report.spec.project))
        program = root / (report.spec.script or "")
        if program.is_file() and root not in (Path.home(), Path(root.anchor)):
            found.setdefault(program, _with_outside(report, root))
    if not found:
        found[folder] = _with_outside(_report(text, site, script, folder), folder)
    program, report = next(iter(found.items()))
    for other in [*found][1:]:
        words = f"{other} has the same path; which one runs depends on where you call sbatch"
        report = replace(report, lost=(*report.lost, ImportNote(str(program), words)))
    if odd:
        lines = f"characters in line{'s' * (len(odd) > 1)} {', '.join(map(str, odd))}"
        note = ImportNote(lines, "Latin-1 → UTF-8, also in arguments and variables")
        report = replace(report, changed=(*report.changed, note))
    return ImportedScript(job_file_text(report, script.name), report, site, because)


def _report(text: str, site: Site, script: Path, submit: Path, home: str = "") -> ImportReport:
    """Return the report on a script that is submitted in the folder `submit`."""
    before = read_script(text, site=site, folder=str(submit))
    if texts := _wrappers(before, submit) | _read_beside(before, submit):
        before = read_script(text, site=site, files=texts, folder=str(submit))
    beside = Path(home or submit)
    packages = next((name for name in _PACKAGES if (beside / name).is_file()), "")
    return import_report(before, site, script.stem, packages, home)


def _read_beside(job: ScriptJob, folder: Path) -> dict[str, str]:
    """Return the texts of the program and of its DeepSpeed configuration, by their paths."""
    texts, last = {}, job.training[-1:]
    words = [word.known for step in last for word in step.arguments]
    programs = [step.program.known for step in last if step.program and step.python]
    for name in filter(None, (argument_words(words)[0], *programs)):
        with contextlib.suppress(OSError, ValueError):  # the preview reports the reason
            texts[name] = read_plain(folder / name, _LARGEST_CONFIG).decode()
    return texts


def _with_outside(report: ImportReport, folder: Path) -> ImportReport:
    """Return the report with the keys that also send what the program uses outside `folder`."""
    found = outside_paths(report.spec, folder, texts_of(report.spec, folder))
    if found is None:
        return report
    words = f"outside the project, but {found.file} uses it"
    if not found.keys:
        lost = ImportNote(found.listed, f"{words}; copy it into the project, or use `stage:`")
        return replace(report, lost=(*report.lost, lost))
    keys: dict[str, object] = {}
    for key, value in report.keys.items():
        keys |= found.keys if key == "script" else {} if key in found.keys else {key: value}
    inside = found.keys["script"].removesuffix(report.spec.script or "")
    if report.spec.deepspeed:
        keys["deepspeed"] = {"config": inside + report.spec.deepspeed.config}
    if "venv" in keys:
        keys["venv"] = f"{inside}{keys['venv']}"
    words += f" → sent by `project: {found.keys['project']}`; upload large data with `stage:`"
    changed = (*report.changed, ImportNote(found.listed, words))
    return replace(report, keys=keys, spec=spec_of(keys), changed=changed)


def _wrappers(job: ScriptJob, folder: Path) -> dict[str, str]:
    """Return the texts of the shell scripts beside the script that start its program."""
    names = {name for step in job.training[-1:] for name in before_program(job, step)}
    texts = {}
    for path in referenced_files(job):
        if file_of(path) in names:
            try:
                text = read_plain(folder / path, _LARGEST_WRAPPER).decode()
            except (OSError, UnicodeDecodeError):
                continue
            if re.match(r"#!.*\b(?:ba|da|z)?sh\b", text):
                texts[path] = text
    return texts


def _site_of(text: str, sites: Sites, site_name: str) -> tuple[Site, str]:
    if site_name:
        return sites.load(site_name), ""
    guess = guess_site(text, sites.valid(), date.today(), sites.added())
    if guess.site is None:
        others = " or ".join(guess.candidates[:4])
        more = f": it may be {others}" if others else ""
        raise InputError(
            f"Cannot tell which site this script is for{more}.", "Pass it with --site."
        )
    return guess.site, guess.because


def program_text(program: Path, site: Site, beginning: examples.Beginning) -> str:
    """Return a job file that runs a Python program with the arguments that argparse requires.

    Its name is the program's [default], and its `metrics:` find the series that the program prints.

    Raises:
        OSError: the program cannot be read.
        InputError: as for `examples.text_for`.
    """
    source = read_plain(program, LARGEST_SCRIPT).decode("utf-8", "replace")
    name, script = beginning.name or program.stem, beginning.script or program.name
    text = examples.text_for(site, replace(beginning, name=name, script=script))
    options = read_python(source, program.name).options
    if required := [word for one in options for word in _required(one)]:
        text = set_key(text, ("args",), required)
    optional = [f"{one.flags[-1]} {one.default.text}" for one in options
                if one.default is not None and not _required(one)]  # fmt: skip
    line = f"# {program.name} also reads: {', '.join(optional)}"
    text = text.replace("\nargs:", f"\n{comment(line)}\nargs:", 1) if optional else text
    return apply_fixes(text, undrawn_series(source, ""))[0]


def _required(option: ProgramOption) -> tuple[str, ...]:
    """Return the words of a required argument, with a placeholder for its value."""
    if not option.flags[-1].startswith("-"):
        return (option.name.upper(),)
    return (option.flags[-1], option.name.upper()) if option.required else ()
