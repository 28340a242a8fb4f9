"""Access to a running job: run a command in it, and reach its ports from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.launch.program_call import program_place
from lumitui.remote.scheduler.job_step import StepCall
from lumitui.remote.site.errors import InputError, LinkError
from lumitui.remote.site.states import State
from lumitui.remote.ssh.prompts import attendance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumitui.app.follow.refresh import Watcher
    from lumitui.app.history.run import Run
    from lumitui.remote.connect import Connection
    from lumitui.remote.site.profile import Site
    from lumitui.remote.transport.sessions import Sessions, Stream


def prepare(
    watcher: Watcher,
    site: Site,
    run: Run,
    command: Sequence[str],
    *,
    node: str,
    rank: int | None,
    terminal: bool,
) -> Callable[[], int]:
    """Return a runner for `command` (empty: a shell) in a running job, with this process's streams.

    The runner returns the exit status, and raises LinkError if the link is lost. Only `prepare` may
    prompt for a login.

    Raises:
        InputError: the run is not running, or has no such rank.
        RefusedError: the job has no such node.
    """
    connection = watcher.connection(run.site)
    call = _call(site, run, command, node=node, rank=rank, terminal=terminal)
    with attendance(True):
        path = connection.scheduler.place_step(call)
    sessions = _sessions(connection)
    return lambda: sessions.attach(path, terminal=terminal)


def reach_port(
    watcher: Watcher, site: Site, run: Run, port: int, *, node: str, rank: int | None
) -> Callable[[], Stream]:
    """Return a function that opens streams to a port of a job's node; raises like `prepare`."""
    connection = watcher.connection(run.site)
    with attendance(True):
        call = _call(site, run, (), node=node, rank=rank, terminal=False)
        host = connection.scheduler.node_of(call)
    sessions = _sessions(connection)
    return lambda: sessions.tunnel(host, port)


def _call(
    site: Site,
    run: Run,
    command: Sequence[str],
    *,
    node: str,
    rank: int | None,
    terminal: bool,
) -> StepCall:
    if run.state is not State.RUNNING or run.job_id is None:
        begins = run.started is None and not run.state.is_final
        hint = "Wait until it has started." if begins else "Choose a run that is running."
        raise InputError(f"{run.id} is {run.state}, not running.", hint)
    if rank is not None and rank >= run.layout.world_size:
        raise InputError(
            f"{run.id} has no rank {rank}.", f"Its ranks are 0 to {run.layout.world_size - 1}."
        )
    place = program_place(run.spec, site)
    return StepCall(
        folder=run.folder,
        job_id=run.job_id,
        command=tuple(command),
        node=node,
        node_index=(rank or 0) // run.layout.ranks_per_node,
        rank=rank,
        container=place.container,
        image=place.image,
        activate=place.activate,
        terminal=terminal,
    )


def _sessions(connection: Connection) -> Sessions:
    if connection.sessions is None:
        raise LinkError("This connection does not support sessions.", "Connect with SSH.")
    return connection.sessions
