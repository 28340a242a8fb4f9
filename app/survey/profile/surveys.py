"""Writes new profiles from one request to Slurm, and updates them from a measured node."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.explain.words import count
from lumitui.app.history.listing.tags import with_tags
from lumitui.app.history.run import NODE_PROBE, SAVED_TAG
from lumitui.app.survey.profile.node_job import REPORT, folder_of, node_job
from lumitui.app.survey.profile.profile_edit import Edited, edited
from lumitui.remote.site.errors import InputError, LumiError, RefusedError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.states import State
from lumitui.remote.survey.profile import node_report
from lumitui.remote.survey.profile.ask_cluster import (
    NO_PYTHON,
    Cluster,
    HostAddress,
    ask,
    unprofiled,
)
from lumitui.remote.survey.profile.node_facts import compare
from lumitui.remote.survey.profile.profile_text import text_of
from lumitui.remote.survey.profile.proposal import propose
from lumitui.remote.survey.profile.shape_choice import choose

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumitui.app.history.history import History
    from lumitui.app.history.run import Run
    from lumitui.app.job.settings import Settings
    from lumitui.app.launch.send.drafts import Drafts
    from lumitui.app.launch.send.preview import Preview
    from lumitui.remote.connect import Connections
    from lumitui.remote.site.sites import Sites
    from lumitui.remote.survey.profile.node_facts import NodeFacts
    from lumitui.remote.transport.transport import Transport

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
_MOST_REPORT = 1 << 20
"""Maximum bytes of a node's report; that of 288 cores and 8 GPUs has some 20,000."""


@dataclass(frozen=True)
class WrittenProfile:
    """A new profile, written or not."""

    path: Path
    site: Site
    guessed: tuple[str, ...]
    """Keys with guessed values."""
    left_out: tuple[str, ...]
    """Partitions and nodes that it omits, each with the reason."""
    text: str
    image: str = ""
    """A sentence on the images that were found; "": there is nothing to say."""


@dataclass(frozen=True)
class Looked:
    """A node's measurements, and the profile with them."""

    measured: NodeFacts
    edited: Edited
    run: Run | None = None


class Surveys:
    """Describes clusters that have no profile, and measures nodes. Threads may share it."""

    def __init__(
        self,
        sites: Sites,
        history: History,
        drafts: Drafts,
        connections: Callable[[], Connections],
        transport: Callable[[Run], Transport],
        settings: Settings,
    ) -> None:
        """Write profiles into the user's own folder, and the files of jobs into their data."""
        self._sites, self._history, self._drafts = sites, history, drafts
        self._connections, self._transport = connections, transport
        self._folders, self._data = settings.profiles, settings.data

    # -- a new profile

    def describe(
        self, name: str, host: HostAddress, *, partition: str = "", gpus: int = 0, keep: bool = True
    ) -> WrittenProfile:
        """Survey the cluster at `host`, and with `keep` write the profile `name`.

        `partition` chooses among several kinds of nodes, and `gpus` is the number of GPUs per node
        if Slurm does not show it. Never overwrites a file.

        Raises:
            InputError: the name exists or is invalid, or there are no GPUs to describe.
            LinkError: the host cannot be reached.
            LumiError: it has no Slurm, or the file cannot be written.
        """
        path = self._new_file(name)
        site = unprofiled(name, host)
        connection = self._connections().get(site)
        cluster = ask(connection.transport)
        choice, keys = choose(cluster, partition, gpus), connection.host_keys()
        proposal = propose(name, replace(host, fingerprints=keys), cluster, choice)
        text = text_of(proposal, host.login, datetime.now(UTC).date())
        document = Document(text, str(path))
        described = validate(document, Site, document.data, "`lumitui schema site` lists the keys.")
        profile = WrittenProfile(path, described, proposal.guessed, choice.left_out, text,
                                 _image_words(cluster))  # fmt: skip
        if keep:
            self.save(profile)
        return profile

    def save(self, profile: WrittenProfile) -> None:
        """Write a profile that `describe` did not keep; raise as `describe` does."""
        _write_new(profile.path, profile.text)

    def _new_file(self, name: str) -> Path:
        """Return the file of a new profile; InputError if the name is taken or invalid."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is not a site name.", "Use letters, digits, dots and dashes."
            )
        if name in self._sites.names():
            path = self._sites.path(name)
            raise InputError(
                f"A profile {name!r} already exists: {path}.",
                "Choose another name, or remove the file if it is yours.",
            )
        return self._folders[0] / f"{name}.yaml"

    # -- a node

    def preview(self, site_name: str, *, partition: str = "", account: str = "") -> Preview:
        """Return the preview of the five-minute job that measures a node of `site_name`.

        Raises:
            InputError: there is no such site or partition, or the site has no Slurm.
            LumiError: its files cannot be written.
        """
        site = self._sites.load(site_name)
        folder = folder_of(self._data)
        spec = node_job(site, partition, account)
        (preview,) = self._drafts.previews(spec, folder)
        # The job is lumitui's own, and must measure without masks: the user cannot change that.
        findings = tuple(one for one in preview.findings if one.at.field != "binding")
        return replace(preview, findings=findings)

    def under_way(self, site_name: str) -> Run | None:
        """Return the newest unfinished job of this kind on a site, without querying the site."""
        runs = self._history.unfinished(site_name)
        return next((run for run in runs if run.name == NODE_PROBE), None)

    def measured(self, site_name: str) -> Run | None:
        """Return the newest job of this kind that has ended on a site; None: there is none."""
        runs = self._history.page(200, site=site_name)
        return next((run for run in runs if run.name == NODE_PROBE and run.state.is_final), None)

    def looked(self, run: Run) -> Looked:
        """Return the measurements of an ended run, and the profile with them.

        Raises:
            InputError: the run is not a probe, or its site has no profile.
            LumiError: it has no report.
        """
        if run.name != NODE_PROBE:
            raise InputError(
                f"{run.id} is not a job of `lumitui site check --probe`.",
                f"Choose a run called {NODE_PROBE}-….",
            )
        script = f"head -c {_MOST_REPORT} {quote(run.folder)}/{REPORT}"
        result = self._transport(run).run(script)
        report = node_report.read(result.out.decode("utf-8", "replace"))
        if not report.host:
            raise _silent(run)
        site = self._sites.load(run.site)
        measured = compare(report, site)
        return Looked(measured, edited(measured, site, self._folders), run)

    def write(self, looked: Looked) -> Path:
        """Write the changed profile into the user's own folder, and return its file.

        Raises:
            InputError: another program changed the file meanwhile.
            LumiError: it cannot be written.
        """
        from lumitui.app.job.settings import write_whole

        change = looked.edited
        if change.path.exists() and change.path.read_text(encoding="utf-8") != change.before:
            raise InputError(f"Another program changed {change.path}.", "Try again.")
        try:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(change.path, change.after)
        except OSError as error:
            raise _unwritten(change.path, error) from error
        if run := looked.run:
            self._history.update(run.id, note=with_tags(run.note, SAVED_TAG))
        return change.path


def _image_words(cluster: Cluster) -> str:
    """Return a sentence on the images that a survey found; "": there is nothing to say."""
    images = cluster.images
    for module in cluster.modules:
        return (f"Jobs load the module {module}, PyTorch's default in `module avail`. For another, "
                "set `modules:` in the profile or in a job file.")  # fmt: skip
    for image in images.working:
        return (
            f"Jobs run in {image.path} (torch {image.torch}), unless a job file names another "
            "image, or none."
        )
    if images.paths:
        return (
            f"{count(len(images.paths), 'container image')} found, but lumitui did not find "
            f"torch in them: {images.paths[0]}. The profile shows the line to add, at `missing: "
            "containers`."
        )
    if NO_PYTHON in cluster.commands:
        return (
            'The login node has no python3, and no image was found: see "No Python on the nodes?" '
            "in `lumitui docs sites`."
        )
    return ""


def _write_new(path: Path, text: str) -> None:
    """Write a new file that only its owner can read; InputError if it already exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} already exists.", "Choose another name.") from error
    except OSError as error:
        raise _unwritten(path, error) from error


def _silent(run: Run) -> LumiError:
    probe = f"lumitui site check {run.site} --probe"
    if not run.state.is_final:
        hint = f"Once `lumitui status` shows that it ended, run `{probe} --run {run.id}`."
        return LumiError(f"{run.id} is {run.state}, so it has no report yet.", hint)
    if run.state is State.DONE:
        hint = f"Read `lumitui logs {run.id}`, then measure again: `{probe}`."
        return RefusedError(f"{run.id} left no report.", hint)
    hint = f"`lumitui why {run.id}` names the cause; to measure again, run `{probe}`."
    return LumiError(f"{run.id} is {run.state} without a report.", hint)


def _unwritten(path: Path, error: OSError) -> LumiError:
    return LumiError(f"Cannot write {path}: {error.strerror}.", "Check the folder's permissions.")
