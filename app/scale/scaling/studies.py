"""The scaling of runs in the history: measurements and the site's offers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    # Imported when a study is made, so that the program starts faster.
    from collections.abc import Callable, Sequence

    from lumitui.app.history.history import History
    from lumitui.app.history.run import Run
    from lumitui.app.job.launch import Launch
    from lumitui.app.job.spec import JobSpec
    from lumitui.app.scale.scaling.measured import MeasuredRun, Training
    from lumitui.app.scale.scaling.study import Offer, Scaling
    from lumitui.remote.site.node import Links
    from lumitui.remote.site.profile import Site
    from lumitui.remote.site.sites import Sites

    _Ratio = Callable[[Launch], float | None]

LADDER = (1, 2, 4, 8, 16)
"""The numbers of nodes that are always compared, if the site has them."""
_KEPT = 256
"""Maximum number of runs with cached metrics."""
_MOST_BYTES = 1_000_000
"""Of a program whose defaults are read."""


@dataclass(frozen=True)
class ScalingQuestion:
    """A query about the scaling of a run."""

    nodes: tuple[int, ...] = ()
    """Additional numbers of nodes to predict."""
    samples: int | None = None
    """The work in samples; None: that of the run."""
    epochs: int | None = None
    """The work in epochs, instead of `samples`."""
    times: float | None = None
    """The work as a multiple of the run's, instead of `samples`."""
    settings: tuple[str, ...] = ()
    """Changes of the run, as `key=value`."""
    alone: bool = False
    """Predict only from the run, using its site's links; ignore other sizes."""
    as_sent: bool = False
    """Whether each size has the work of the job that a resubmission with `settings` sends."""
    other_code: bool = False
    """Whether that job gets other code than the run had."""
    resumes: bool = False
    """Whether it starts from a checkpoint."""


class Scalings:
    """Computes the scaling of runs from history and profile, without querying a site.

    Thread-safe.
    """

    def __init__(self, history: History, sites: Sites) -> None:
        self._history, self._sites = history, sites
        self._training = lru_cache(_KEPT)(self._read)

    def of(self, run_id: str, question: ScalingQuestion | None = None) -> Scaling:
        """Return the scaling of a run, from all runs of its lineage.

        Raises:
            InputError: no such run, an invalid setting, the size of an epoch is unknown, or the
                run alone does not allow a prediction.
        """
        from lumitui.app.scale.scaling.measured import MeasuredRun
        from lumitui.app.scale.scaling.study import epoch_of, scaling_of

        query = question or ScalingQuestion()
        run = self._history.get(run_id)
        lineage, root = self._history.lineage, self._history.lineage(run.id)[0].id
        family = [
            MeasuredRun(item, self._training(item.id, item.metrics_offset))
            for item in lineage(root)
        ]
        samples = query.samples
        if query.epochs is not None:
            if (epoch := epoch_of(family)) is None:
                message = f"The number of samples in an epoch of {run.id} is unknown."
                raise InputError(message, "Give the number of samples.")
            samples = query.epochs * epoch
        site = self._site(run)
        links = site.node.links if site else None
        if query.as_sent:
            family = [item for item in family if _alike(run, item.run)]
        if query.alone:
            family = [item for item in family if item.run.id == run.id]
        note = site.billing_note if site else ""
        measured = {item.run.layout.nodes for item in family if item.training.speed}
        offers = _offers(run, site, query, measured, partial(self._work, run, query))
        changed = _changed(run, query) if query.as_sent else ()
        scaling = scaling_of(run, family, offers, samples, links, note, changed)
        if query.times is not None:
            if not scaling.knows_work:
                message = f"The number of samples of {run.id} is unknown."
                raise InputError(message, "Give the number of samples.")
            samples = round(query.times * scaling.whole.samples)
            scaling = scaling_of(run, family, offers, samples, links, note, changed)
        if query.alone and scaling.steps is None:
            raise _unpredictable(family[0], links)
        return scaling

    def _work(self, run: Run, query: ScalingQuestion, launch: Launch) -> float | None:
        if not query.as_sent:
            return 1.0
        return None if query.resumes else self.work_of(launch, run)

    def work_of(self, launch: Launch, run: Run) -> float | None:
        """Return the samples of `launch` as a multiple of those of `run`; None if unknown."""
        from lumitui.app.scale.scaling.sent_work import work_ratio

        if run.state is not State.DONE or run.resumed_from is not None:
            return None
        training = self._training(run.id, run.metrics_offset)
        return work_ratio(run, training, launch, self._defaults(run))

    def _read(self, run_id: str, _offset: int) -> Training:
        from lumitui.app.scale.scaling.assumed_batch import assumed_batch
        from lumitui.app.scale.scaling.measured import training_of

        run, points = self._history.get(run_id), self._history.metrics.of(run_id)
        resumed = run.resumed_from is not None
        training = training_of(points, run.global_batch, resumed=resumed)
        if training.samples or not training.speed:
            return training
        assumed = assumed_batch(run.spec, run.layout, self._defaults(run))
        if assumed is None:
            return training
        full = training_of(points, assumed.samples, resumed=resumed)
        # More training than the run had time for: the argument means something else.
        fits = full.samples and full.samples / training.speed <= run.ran(run.updated)
        return replace(full, assumed=assumed.argument) if fits else training

    def _defaults(self, run: Run) -> dict[str, str]:
        """Return the defaults of the program's options, if it is unchanged since the run."""
        from lumitui.app.scale.changes import option_defaults

        if not run.spec.script:
            return {}
        path = Path(run.project) / run.spec.script
        try:
            if path.stat().st_mtime > run.created:
                return {}
            return option_defaults(read_plain(path, _MOST_BYTES).decode("utf-8"))
        except (OSError, ValueError):
            return {}

    def _site(self, run: Run) -> Site | None:
        try:
            return self._sites.load(run.site)
        except InputError:
            return None  # without the profile, only measurements are known


def _offers(
    run: Run, site: Site | None, question: ScalingQuestion, measured: set[int], ratio: _Ratio
) -> list[Offer]:
    from lumitui.app.scale.rescale import apply_settings

    if site is None:
        return []
    largest = max(run.layout.nodes * 2, LADDER[-1])
    nodes = {1 << exponent for exponent in range(largest.bit_length())}
    nodes = {number for number in nodes | measured if number <= most_nodes(site, run)}
    counts = sorted(nodes | {run.layout.nodes, *question.nodes})
    spec = apply_settings(run.spec, question.settings)
    return [_offer(run, spec, site, number, question.settings, ratio) for number in counts]


def _changed(run: Run, query: ScalingQuestion) -> tuple[str, ...]:
    """Return what of the training a resubmission changes, in words."""
    from lumitui.app.scale.rescale import apply_settings
    from lumitui.app.scale.scaling.sent_work import changes_of_work

    changed = changes_of_work(run, apply_settings(run.spec, query.settings))
    return (*changed, *["the code"] * query.other_code)


def _alike(run: Run, other: Run) -> bool:
    """Return whether two runs differ only in size and length, so that one tells the other's."""
    from lumitui.app.scale.scaling.sent_work import changes_of_work

    resized = run.layout.world_size != other.layout.world_size
    return not changes_of_work(run, other.spec, resized=resized)


def _unpredictable(item: MeasuredRun, links: Links | None) -> InputError:
    """Return why lumitui cannot predict from this run alone."""
    run, training = item.run, item.training
    if training.speed is None:
        why = f"{run.id} has reported no samples/s."
        do = "Wait until it has trained some steps."
    elif links is None:
        why = f"The profile of {run.site} does not contain the speed of its links."
        do = "Add `links:` to its node, or run the job on one more size and omit --predict."
    else:
        missing = "parameters" if not training.parameters else "global_batch"
        why = f"The start line of {run.id}'s metrics.jsonl has no `{missing}`."
        do = "The bundled trainers write it. Or run one more size and omit --predict."
    return InputError(why, do)


def most_nodes(site: Site, run: Run) -> int:
    """Return the most nodes that `run` can grow to: its partition's, or those it moves on to."""
    return max((one.max_nodes for _, one in site.partitions_from(run.spec.partition)), default=0)


def _offer(
    run: Run, spec: JobSpec, site: Site, nodes: int, settings: Sequence[str], ratio: _Ratio
) -> Offer:
    """Return the site's offer for `run` with `settings` on `nodes` nodes, or why it refuses."""
    from lumitui.app.scale.rescale import rescale
    from lumitui.app.scale.run_plan import launch_of, sent_config
    from lumitui.app.scale.scaling.study import Offer, batch_of

    try:
        launch = rescale(
            launch_of(run), spec, site, [], nodes=nodes, settings=settings, written=sent_config(run)
        )
    except InputError as error:
        gpus = nodes * run.layout.gpus_per_node
        return Offer(nodes, gpus, 0.0, 0.0, 0.0, refused=error.message)
    partition = site.partitions.get(launch.spec.partition)
    whole_nodes = partition and partition.allocation == "node" and not launch.layout.on_cpu
    return Offer(
        nodes,
        nodes * launch.layout.gpus_per_node,
        launch.price.per_hour,
        launch.spec.chain * walltime.seconds_of(launch.spec.time),
        launch.price.amount,
        launch.spec.partition,
        batch_of(launch.spec, launch.layout.world_size),
        idle=max(0, site.node.gpus - launch.layout.gpus_per_node) if whole_nodes else 0,
        work=ratio(launch),
    )
