"""What is done to a send: faults as data, and their cross product with the steps of a send.

A fault is provoked while a client waits at the beginning of a step; what must happen after the
recovery goes into `Scene.after`. Which pairs are impossible is not listed anywhere: a send
without faults is watched first (`watch_steps`), and a fault says what it needs of a step.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lumitui.app.launch.send.submit import SEND_STEPS
from tests.support.attacks.broken_sends import (
    SITE,
    SMALL_SITE,
    UNENDED,
    Laptop,
    Seen,
    Violated,
    empty,
    jobs_named,
    look,
    settle,
    slurmctld_stopped,
)
from tests.support.attacks.sending_client import TRACEBACK, Client
from tests.support.jobs.small_jobs import wait_until

REQUEST = "makes a request over the link"
SBATCH = "calls sbatch"


@dataclass(frozen=True)
class Uses:
    """What a step did in a send without faults."""

    up: int = 0
    """Bytes to the site while it lasted."""
    down: int = 0
    seconds: float = 0.0
    does: frozenset[str] = frozenset()
    """Of REQUEST and SBATCH."""


@dataclass
class Scene:
    """One client that waits at the beginning of `step`, and everything a fault may break."""

    laptop: Laptop
    client: Client
    run_id: str
    step: str
    uses: Uses
    chance: random.Random
    after: ExitStack = field(default_factory=ExitStack)
    """What ends the fault once the run is settled."""

    def called_sbatch(self) -> bool:
        """Whether the run's sbatch was started."""
        return f"--job-name={self.run_id}\t" in self.laptop.cluster.calls_log.read_text()

    def bytes_and_way(self) -> tuple[int, Literal["up", "down"]]:
        """Draw after how many bytes of the step, and which way, something happens to the link."""
        if self.chance.random() < 0.5:
            return self.chance.randint(1, max(1, self.uses.up)), "up"
        return self.chance.randint(1, max(1, self.uses.down)), "down"


@dataclass(frozen=True)
class Fault:
    """One thing that happens to a send in life."""

    name: str
    provoke: Callable[[Scene], None]
    needs: str = ""
    """What the step must do for the fault to be possible: REQUEST, SBATCH or nothing."""
    site: str = SITE
    ahead: float = 0.0
    """How far the client's clock is ahead of that of the client that settles the run."""

    def impossible(self, step: str, uses: Uses) -> str:
        """Return why it cannot happen to a step that does `uses`; "" when it can."""
        return f"{step} never {self.needs}" if self.needs and self.needs not in uses.does else ""


def _kill_before(scene: Scene) -> None:
    scene.client.kill()


def _kill_after(scene: Scene) -> None:
    scene.client.pass_step()
    scene.client.kill()


def _kill_within(scene: Scene) -> None:
    scene.client.release()
    time.sleep(scene.chance.uniform(0, 1.2 * scene.uses.seconds))
    scene.client.kill()


def _cut(scene: Scene) -> None:
    scene.laptop.proxy.cut()
    scene.client.finish()


def _cut_after_bytes(scene: Scene) -> None:
    scene.laptop.proxy.cut_after(*scene.bytes_and_way())
    scene.client.finish()


def _begin_stall(scene: Scene) -> None:
    """Freeze the link at once or in the middle of the step, with the script on its way."""
    if REQUEST in scene.uses.does and scene.chance.random() < 0.7:
        scene.laptop.proxy.stall_after(*scene.bytes_and_way())
    else:
        scene.laptop.proxy.stall()


def _stall(scene: Scene) -> None:
    _begin_stall(scene)
    scene.client.release()
    time.sleep(scene.chance.uniform(0.1, 1.0))
    scene.laptop.proxy.flow()
    scene.client.await_step()
    scene.client.finish()


def _stall_and_kill(scene: Scene) -> None:
    """What the dead client sent arrives, now or when another process has settled its run."""

    def free() -> None:
        scene.laptop.proxy.flow()
        time.sleep(0.4)  # until it has arrived: nobody tells

    _begin_stall(scene)
    scene.client.release()
    time.sleep(scene.chance.uniform(0.1, 0.6))
    scene.client.kill()
    if scene.chance.random() < 0.5:
        free()
    else:
        scene.after.callback(free)


def _stop_slurmctld(scene: Scene) -> None:
    with slurmctld_stopped(scene.laptop.cluster):
        scene.client.release()
        limit = time.monotonic() + 60
        while not (passed := scene.client.reached(0.1)) and not scene.called_sbatch():
            if time.monotonic() > limit:
                raise Violated(f"{scene.step} waits for slurmctld, and not in sbatch")
        if not passed:
            time.sleep(scene.chance.uniform(0, 1.0))
    if not passed:
        scene.client.await_step()
    scene.client.finish()


def _make_room(scene: Scene) -> None:
    """End a full disk, but not before the job has met it."""
    fill = Path(scene.laptop.cluster.small) / f"fill-{scene.run_id}"
    if fill.exists():

        def ended() -> bool:
            unended = jobs_named(scene.laptop.cluster, [scene.run_id], UNENDED)
            return not unended[scene.run_id]

        wait_until(ended, 60, "the job ends on the full disk")
        empty(fill)


def _accident(kind: str) -> Callable[[Scene], None]:
    """Return what lets the run's sbatch meet an accident of tests/cluster/accident.sh."""

    def provoke(scene: Scene) -> None:
        scene.laptop.accident(scene.run_id, kind)
        scene.after.callback(_make_room, scene)
        scene.client.finish()

    return provoke


def _wrapper(kind: str) -> Callable[[Scene], None]:
    """Return what lets the run's sbatch meet a wrapper, in one of its ways."""

    def provoke(scene: Scene) -> None:
        _accident(f"{kind} {scene.chance.randrange(30)}")(scene)

    return provoke


def _flip(scene: Scene) -> None:
    scene.laptop.proxy.flip(scene.chance.choice((300, 3000, 30_000)))
    scene.after.callback(scene.laptop.proxy.flip, 0)
    scene.client.finish()
    scene.laptop.proxy.flip(0)


def _other_host(scene: Scene) -> None:
    cluster, proxy = scene.laptop.cluster, scene.laptop.proxy
    proxy.to(cluster.other_port)
    scene.after.callback(lambda: proxy.to(cluster.port))
    if REQUEST in scene.uses.does and scene.chance.random() < 0.7:
        _cut_after_bytes(scene)
    else:
        _cut(scene)


FAULTS: Sequence[Fault] = (
    Fault("client killed before", _kill_before),
    Fault("client killed within", _kill_within),
    Fault("client killed after", _kill_after),
    Fault("link cut", _cut),
    Fault("link cut after N bytes", _cut_after_bytes, REQUEST),
    Fault("link stalled then freed", _stall),
    Fault("link stalled, client killed, link freed", _stall_and_kill, REQUEST),
    Fault("slurmctld stopped and continued", _stop_slurmctld),
    Fault("sbatch killed after acceptance", _accident("killed"), SBATCH),
    Fault("session killed after acceptance", _accident("session-killed"), SBATCH),
    Fault("session killed before sbatch", _accident("session-killed-before"), SBATCH),
    Fault("sbatch frozen until given up", _accident("frozen"), SBATCH),
    Fault("sbatch fails after acceptance", _wrapper("fails"), SBATCH),
    Fault("sbatch says nothing after acceptance", _wrapper("silent"), SBATCH),
    Fault("sbatch prints other numbers", _wrapper("digits"), SBATCH),
    Fault("sbatch prints another job's id", _wrapper("stranger"), SBATCH),
    Fault("sbatch fails, and submits later", _wrapper("late"), SBATCH),
    Fault("bits flipped", _flip, REQUEST),
    Fault("link cut, clock set back an hour", _cut_after_bytes, REQUEST, ahead=3600.0),
    Fault("clock set back, no sbatch", _accident("session-killed-before"), SBATCH, ahead=3600.0),
    Fault("clock ahead, no sbatch", _accident("session-killed-before"), SBATCH, ahead=-259200.0),
    Fault("clock behind, sbatch killed", _accident("killed"), SBATCH, ahead=259200.0),
    Fault("receipt's disk full", _accident("disk-full"), SBATCH, SMALL_SITE),
    Fault("receipt's disk without inodes", _accident("no-inodes"), SBATCH, SMALL_SITE),
    Fault("next connection on another login host", _other_host),
)


@dataclass(frozen=True)
class Case:
    """One fault at one step, and where its random numbers begin."""

    step: str
    fault: Fault
    seed: str = ""

    def __str__(self) -> str:
        """As pytest and the table name it."""
        return f"{self.step}: {self.fault.name}"


def matrix(steps: Sequence[str] = SEND_STEPS) -> list[Case]:
    """Return every fault at every step."""
    return [Case(step, fault) for step in steps for fault in FAULTS]


def watch_steps(laptop: Laptop) -> dict[str, Uses]:
    """Send once without faults and return what each step did; the run is judged like any other."""
    found: dict[str, Uses] = {}
    cluster = laptop.cluster
    with laptop.client() as client:
        while client.sent is None:
            step, run_id = client.steps[-1], laptop.being_sent()
            laptop.proxy.reset()
            sessions, began = cluster.sessions().commands, time.monotonic()
            client.pass_step()
            seconds, counts = time.monotonic() - began, laptop.proxy.stats()
            does = set()
            if cluster.sessions().commands > sessions:
                does.add(REQUEST)
            calls = [call for call in cluster.calls() if call.command == "sbatch"]
            if any(f"--job-name={run_id}" in call.args for call in calls) and not any(
                SBATCH in uses.does for uses in found.values()
            ):
                does.add(SBATCH)
            found[step] = Uses(counts.up, counts.down, seconds, frozenset(does))
    return found


_small_disk = threading.Lock()


def broken(case: Case, laptop: Laptop, uses: Mapping[str, Uses]) -> Seen:
    """Send once with the fault, and return the run as soon as it is settled; `judge` it then."""
    chance = random.Random(case.seed or str(case))
    with ExitStack() as after:
        if case.fault.site == SMALL_SITE:
            # Another laptop's send would meet this one's fault before its own.
            after.enter_context(_small_disk)
        client = after.enter_context(laptop.client(case.fault.site, case.fault.ahead))
        # A cut that was still to come would be the next send's.
        after.callback(laptop.proxy.cut)
        run_id = laptop.being_sent()
        if not client.advance(case.step):
            raise Violated(f"{run_id} never came to {case.step}: {client.sent}")
        scene = Scene(laptop, client, run_id, case.step, uses[case.step], chance, after)
        case.fault.provoke(scene)
        if client.sent is not None and client.sent.error == TRACEBACK:
            raise Violated(f"{run_id}: {client.sent.words}", "tracebacks")
        seen = look(laptop, run_id)
        # The client that looks next may be on either login host, or on both at once.
        hosts = laptop.hosts
        return settle(seen, hosts if chance.random() < 0.3 else [chance.choice(hosts)])


def why_impossible(case: Case, uses: Mapping[str, Uses]) -> str:
    """Return why the case cannot be, from what its step was seen to do; "" when it can."""
    return case.fault.impossible(case.step, uses[case.step])
