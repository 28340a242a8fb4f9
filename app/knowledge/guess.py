"""Guess of a script's site, from names in it that only one profile has."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile

from lumitui.app.knowledge.bash.directives import read_directives
from lumitui.app.knowledge.bash.resource_options import gpus_of
from lumitui.app.knowledge.rules.phrases import one_of
from lumitui.app.knowledge.script_job import CommandOptions
from lumitui.remote.site.profile import Site

_ENOUGH = 2
"""Minimum points for a guess."""
_COMMON = {
    "gpu", "small", "large", "test", "cpu", "batch", "debug", "main", "normal", "standard", "dev",
    "medium", "long", "short", "interactive", "compute", "regular", "boost", "shared",
}  # fmt: skip
"""Names of partitions and QOSs that many sites share."""


@dataclass(frozen=True)
class Guess:
    """The guessed site and the reasons for it, or the candidates."""

    site: Site | None
    because: str
    candidates: tuple[str, ...] = ()


def guess_site(text: str, sites: Sequence[Site], today: date, own: Collection[str] = ()) -> Guess:
    """Return the site that a script's partition, account, paths and modules fit best.

    `own` names the added profiles, the user's or the machine's. One whose partitions and GPUs fit
    wins over all bundled profiles, except over one of the same cluster. If any fit as well as that
    one, the first wins whose default account is the script's, or else the first that has modules or
    containers and no default account. Otherwise the bundled profile wins, because a profile from
    `init --host` may contain nothing but partitions. A closed site wins only if no other fits.
    """
    clusters = [site for site in sites if site.scheduler == "slurm"]
    options = read_directives(text).options
    facts = _Facts.of(options)
    fitting = [site for site in clusters if facts.indicate(site) and not site.is_closed(today)]
    if fitting:
        clusters = [site for site in clusters if not site.is_closed(today)]
    bundled = {site.hosts.login for site in clusters if site.name not in own}
    new = [site for site in fitting if site.name in own and site.hosts.login not in bundled]
    clusters = new or clusters
    scores = {site.name: facts.fit(site) + min(_marks(site, text), 4) for site in clusters}
    best = max(scores.values(), default=0)
    fits = [site for site in clusters if scores[site.name] == best]
    fits = [site for site in fits if not site.is_closed(today)] or fits
    as_well = [site.name for site in (fitting if new else fits)]
    added = [site for site in fits if site.name in own]
    mine = [site for site in added if facts.is_default(site)]
    complete = [site for site in added if site.modules or site.containers]
    mine = mine or [site for site in complete if not site.account.default]
    if mine:
        fits = mine[:1]
    elif len(fits) > 1:
        fits = [site for site in fits if site.name not in own] or fits
    if len(fits) != 1 or best < _ENOUGH:
        return Guess(None, "", tuple(site.name for site in fits))
    words = facts.told(fits[0]) + (["its paths and modules"] if _marks(fits[0], text) else [])
    others = [name for name in as_well if name != fits[0].name]
    whose = "your profile" if {*others} & {*own} else "the profile"
    more = f" ({whose} {' or '.join(others)} also fits: pass --site to choose)" if others else ""
    return Guess(fits[0], f"{one_of(words, 'and')}{more}")


@dataclass(frozen=True)
class _Facts:
    """The parts of a request that differ between sites."""

    partition: str
    account: str
    qos: str
    gpu: str

    @classmethod
    def of(cls, options: CommandOptions) -> "_Facts":
        return cls(
            (options.value("partition") or "").split(",")[0],
            options.value("account") or "",
            options.value("qos") or "",
            gpus_of(options, None, None)[1],
        )

    def fit(self, site: Site) -> int:
        """Return how well the facts fit a site, in points."""
        return self._partition(site) + self._account(site) + self._qos(site) + self._gpu(site)

    def indicate(self, site: Site) -> bool:
        """Return whether partition and GPUs fit a site, and one of them is a site's own name."""
        sure, gpu = self._partition(site), self._gpu(site)
        return bool(sure) and sure + gpu >= 3 and gpu >= 0 and self._account(site) >= 0

    def is_default(self, site: Site) -> bool:
        return bool(self.account) and self.account == site.account.default

    def told(self, site: Site) -> list[str]:
        """Return the facts that indicate a site, in words."""
        return [
            words
            for words, points in (
                (f"the partition {self.partition}", self._partition(site)),
                (self._of_account(site), self._account(site)),
                (f"the QOS {self.qos}", self._qos(site)),
                (f"the GPU type {self.gpu}", self._gpu(site)),
            )
            if points > 0
        ]

    def _of_account(self, site: Site) -> str:
        default = " (your profile's default)" if self.is_default(site) else ""
        return f"the account {self.account}{default}"

    def _partition(self, site: Site) -> int:
        own = {entry.slurm_partition for entry in site.partitions.values()}
        if not self.partition or self.partition not in {*site.partitions, *own}:
            return 0
        return 1 if self.partition in _COMMON else 4

    def _account(self, site: Site) -> int:
        """Return the points for the account; patterns may match any word, so likeness counts."""
        if self.is_default(site):
            return 4  # as much as the greatest likeness to an example
        name, example = self.account.lower(), site.account.example
        if not name or re.search(r"[$<]|xx", name):
            return 0
        if not re.match(site.account.pattern, name, re.IGNORECASE):
            return -2
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(name, example, strict=False))
        return min(len([*alike]), 8) // 2

    def _qos(self, site: Site) -> int:
        own = {word for entry in site.partitions.values() for word in entry.arguments}
        return 3 if self.qos and f"--qos={self.qos}" in own and self.qos not in _COMMON else 0

    def _gpu(self, site: Site) -> int:
        if not self.gpu or site.node.gres_types is None:
            return 0
        return 2 if self.gpu in site.node.gres_types else -3


def _marks(site: Site, text: str) -> int:
    """Return how many of a site's own paths and modules a text contains."""
    lines = [*site.modules, *site.environment.values()]
    for container in site.containers.values():
        lines += [container.image or "", *container.modules]
    marks = {
        part
        for line in lines
        for part in re.findall(r"/[a-z]\w+/[\w.-]+(?:/[\w.-]+)?|[A-Za-z]\w*-[\w-]{6,}", line)
        if not part.startswith(("/tmp", "/dev", "/usr", "/scratch", "/opt"))
    }
    return sum(mark in text for mark in marks)
