"""Which site a script is for, from the names in it that only one profile has."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile

from lumitui.app.lint.bash.request.directives import read_directives
from lumitui.remote.site.profile import Site


@dataclass(frozen=True)
class Guess:
    """The site, and what told it; or the sites that it could be."""

    site: Site | None
    because: str
    candidates: tuple[str, ...] = ()


def guess_site(text: str, sites: Sequence[Site], today: date) -> Guess:
    """Return the site that a script's partition, account, paths and modules fit best."""
    clusters = [site for site in sites if site.scheduler == "slurm"]
    options = read_directives(text).options
    partition = (options.value("partition") or "").split(",")[0]
    account = options.value("account") or ""
    scores = {
        site.name: _from_partition(site, partition) + _from_account(site, account)
        + min(_marks(site, text), 4)
        for site in clusters
    }  # fmt: skip
    best = max(scores.values(), default=0)
    fits = [site for site in clusters if scores[site.name] == best]
    if len(fits) > 1:
        fits = [site for site in fits if not site.is_closed(today)] or fits
    if len(fits) != 1 or best <= 0:
        return Guess(None, "", tuple(site.name for site in fits))
    told = [
        f"the partition {partition}" if _from_partition(fits[0], partition) else "",
        f"the account {account}" if _from_account(fits[0], account) > 0 else "",
        "its paths and modules" if _marks(fits[0], text) else "",
    ]
    return Guess(fits[0], " and ".join(filter(None, told)))


def _from_partition(site: Site, name: str) -> int:
    return 4 if name in _partitions(site) else 0


def _from_account(site: Site, name: str) -> int:
    """Return how well an account fits: some sites' patterns take nearly any word."""
    if not name or "$" in name:
        return 0
    if not re.match(site.account.pattern, name):
        return -5
    alike = sum(1 for _ in takewhile(_same, zip(name, site.account.example, strict=False)))
    return min(alike, 8) // 2


def _same(letters: tuple[str, str]) -> bool:
    return letters[0] == letters[1]


def _partitions(site: Site) -> set[str]:
    own = {entry.slurm_partition for entry in site.partitions.values() if entry.slurm_partition}
    return {*site.partitions, *own}


def _marks(site: Site, text: str) -> int:
    """Return how many of a site's own paths and modules a text has."""
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
