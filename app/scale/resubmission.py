"""A resubmission: the local input of its plan, and the preview."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import normpath

from lumitui.app.explain.run_phrases import may_go_on
from lumitui.app.explain.words import count
from lumitui.app.follow.results.comparison import changes as file_changes
from lumitui.app.history.known_snapshots import KnownSnapshots
from lumitui.app.history.run import Run
from lumitui.app.job.fields.mapping_fields import After
from lumitui.app.launch.dependency import dependency_of
from lumitui.app.launch.rules.script_texts import texts_of
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.app.launch.send.preview import Preview, preview_of
from lumitui.app.launch.send.shipment import Inheritance
from lumitui.app.launch.site_names import mapped
from lumitui.app.scale.changes import change_effect, naming, policy, with_unnamed
from lumitui.app.scale.run_plan import (
    Basis,
    CodeChoice,
    Follows,
    ResubmissionRequest,
    RunPlan,
    launch_of,
    wanted_spec,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.source.manifest import Manifest

_MOST_NAMED = 3


@dataclass(frozen=True)
class Resubmission:
    """A plan with its preview."""

    plan: RunPlan
    preview: Preview
    effect: str
    """The change of the global batch and the learning rate, and the rule for it; may be ""."""
    naming: tuple[str, ...] = ()
    """Settings that name the script's arguments for both, if they are unknown."""

    @property
    def code_sent(self) -> str:
        """The code that this sends, in words: `the code that failed`."""
        return code_words(self.plan.parent, self.plan.request.code)

    @property
    def inheritance(self) -> Inheritance:
        """The parts that the new run inherits from its parent."""
        plan, request = self.plan, self.plan.request
        insists = request.start == "checkpoint"  # without one the send is refused
        return Inheritance(plan.parent, request.code == "same", plan.start == "checkpoint", insists)

    def forced(self, forced: bool) -> "Resubmission":
        """Return the resubmission; `forced` overrides the errors that the user saw."""
        return replace(self, preview=replace(self.preview, forced=forced))


def basis_of(parent: Run, request: ResubmissionRequest) -> Basis:
    """Return the basis of a plan for `parent`; reads the current code from its project.

    Raises:
        InputError: an invalid setting or a missing file.
    """
    if request.code == "same":
        return Basis(parent, wanted_spec(parent, request))
    project = Path(parent.project)
    own = parent.spec
    spec = with_requirements(wanted_spec(parent, request), project)
    if not request.sets("venv"):  # the current contents of its files are not the user's changes
        own = own.model_copy(update={"venv": spec.venv})
    config = project_files.deepspeed_config(spec, project)
    return Basis(replace(parent, spec=own), spec, config)


def made_ready(
    plan: RunPlan, site: Site, command: str, hashes: Path, snapshots: KnownSnapshots
) -> Resubmission:
    """Return `plan` with its preview; `command` submits it at `site`.

    `hashes` keeps the hashes of the project's files, `snapshots` those of the files sent last.

    Raises:
        InputError: the parent's code lacks the script or the working folder.
    """
    parent, launch, ships_code = plan.parent, plan.launch, plan.request.code == "current"
    project = Path(parent.project)
    files = project_files.look(launch.spec, project, hashes, ships_code=ships_code)
    script = normpath(launch.spec.script) if launch.spec.script else ""
    if not ships_code and (sent := _sent(parent, snapshots)):
        other = "Set a path in that code, or send the current code (`--code current`)."
        for _, _, error in project_files.lacks(
            launch.spec, sent, f"The code of {parent.id}", other
        ):
            raise InputError(error.message, other)
        files = replace(files, programs=_unchanged(parent, sent))
    job_file = Path(parent.job_file) if parent.job_file else None
    programs = files.programs or texts_of(launch.spec, project)
    program = programs.get(script, "")
    changes = with_unnamed(plan.changes, launch_of(parent), launch.spec, program)
    plan = replace(plan, changes=changes)
    effect, named = change_effect(changes), naming(program, launch.spec)
    if parent.global_batch and launch.layout.world_size != parent.layout.world_size:
        effect += f" {policy(launch.spec)}"
    return Resubmission(plan, preview_of(launch, site, command, files, job_file), effect, named)


def _sent(run: Run, snapshots: KnownSnapshots) -> Manifest | None:
    """Return the list of the run's files; None unless they are the last ones sent."""
    text = snapshots.manifest(run.site, run.root) or ""
    is_known = hashlib.sha256(text.encode()).hexdigest()[:24] == run.snapshot
    return Manifest.parse(text) if is_known else None


def _unchanged(run: Run, sent: Manifest) -> dict[str, str]:
    """Return the texts of the program that are the same in the project as in the run's code."""
    sums, texts = {file.sha256 for file in sent.files}, texts_of(run.spec, Path(run.project))
    return {path: text for path, text in texts.items()
            if hashlib.sha256(text.encode()).hexdigest() in sums}  # fmt: skip


def following(basis: Basis, follows: Follows, site: Site, run_of: Callable[[str], Run]) -> Basis:
    """Return `basis`, changed to wait for another run and to use its files.

    Raises:
        InputError: that run did not end as required.
    """
    folder, after = follows.run.folder, After(run=(follows.run.id,), when=follows.when)
    spec = basis.spec.model_copy(update={"after": after})
    if follows.instead:
        spec = mapped(spec, lambda text: text.replace(follows.instead, folder))
    dependency = dependency_of(spec, site, run_of, follows.lane)
    return replace(basis, spec=dependency.spec, dependency=dependency.options)


@dataclass(frozen=True)
class CodeNews:
    """The changes in a project since a run was sent, and which code to send next."""

    differs: bool = False
    files: tuple[str, ...] = ()
    """The paths that differ, the job's script first; empty if unknown."""
    first: CodeChoice = "same"
    """The code that the dialog proposes: what ran, so that no edit is sent unnoticed; "current" if
    nothing ran, or if a program failed and was edited since."""

    @property
    def sentence(self) -> str:
        """A sentence on the differences: `Changed since the run: train.py.`; "" if none."""
        if not self.differs:
            return ""
        if not self.files:
            return (
                "The project differs from the code that ran, perhaps only in a job file. lumitui "
                "cannot name the files, because it has sent other code since."
            )
        named = list(self.files[:_MOST_NAMED])
        if more := len(self.files) - len(named):
            named.append(count(more, "more file"))
        return f"Changed since the run: {', '.join(named)}."


def code_words(parent: Run, code: CodeChoice) -> str:
    """Return which code a resubmission of `parent` sends: `the code that failed`."""
    if code == "current":
        return "your current code"
    return f"the code that {'failed' if _program_failed(parent) else 'ran'}"


def _program_failed(run: Run) -> bool:
    """Return whether the program itself ended with an error, so that resending it fails again."""
    return run.state is State.FAILED and not may_go_on(run)


def code_news(run: Run, snapshots: KnownSnapshots, hashes: Path) -> CodeNews:
    """Return the changes in the project of `run` since its send, without querying a site.

    `snapshots` has the files that were sent last, `hashes` those of the project.
    """
    if run.snapshot is None:
        return CodeNews(first="current")  # none of its code is on the site
    try:
        now = project_files.collect(run.spec, Path(run.project), hashes).manifest
    except InputError:
        return CodeNews()  # the project cannot be sent as it is; the plan gives the reason
    if now.id == run.snapshot:
        return CodeNews()
    first: CodeChoice = "current" if _program_failed(run) else "same"
    if (before := _sent(run, snapshots)) is None:
        return CodeNews(True, first=first)
    old, new = ({one.path: one.sha256 for one in every.files} for every in (before, now))
    script = normpath(run.spec.script or "")
    changes = sorted(file_changes(old, new), key=lambda one: (one.path != script, one.path))
    words = (one.path if one.what == "changed" else f"{one.path} ({one.what})" for one in changes)
    return CodeNews(True, tuple(words), first)
