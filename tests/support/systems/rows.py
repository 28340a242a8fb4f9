"""The table of `tests/golden/seeds.yaml`: the documents' job scripts, and ours beside each."""

from functools import cache
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.launch.compose import compose
from lumitui.app.launch.send.code.project_files import deepspeed_config
from lumitui.remote.site.container import Mpi
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.places import GOLDEN

TABLE = GOLDEN / "seeds.yaml"
SHAPES = {
    "lumi": "lumi-g",
    "puhti": "puhti",
    "mahti": "mahti",
    "roihu": "roihu",
    "karolina": "karolina",
    "mn5": "mn5-acc",
}
"""The mini cluster of each site."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Group(_Part):
    """Scripts of one place."""

    source: str
    site: str
    document: str = ""
    """Which of the five documents shows or names them; "" none does."""
    note: str = ""


class Row(_Part):
    """One job script, and the job file that does the same."""

    script: str
    group: str
    asks: dict[str, str]
    """Its #SBATCH options, and those that its document has it submitted with."""
    launch: str
    """The line that starts the ranks, whole."""
    ranks: int
    """Ranks on a node."""
    job: dict[str, Any]
    """Ours, without name, site and program."""
    differs: dict[str, str] = {}
    """What ours does otherwise on purpose, by option or part: the name of its reason. What all jobs
    of the launcher do otherwise is in the table's own lists."""
    same: tuple[str, ...] = ()
    """What of those lists is not otherwise here."""
    mpi: Mpi | None = None
    """Which mpirun the script calls, where that is another one than the profile's."""
    ci: bool = False
    """Whether it is also run by `make test`."""

    @property
    def name(self) -> str:
        """What the row is called in tests and in the table."""
        return f"{self.group}/{self.script}"

    @property
    def nodes(self) -> int:
        """How many nodes our job has."""
        return int(self.job.get("nodes", 1))


class Table(_Part):
    """The whole file."""

    groups: dict[str, Group]
    programs: dict[str, dict[str, Any]]
    """What ours trains with each strategy: keys of a job file."""
    reasons: dict[str, str]
    everywhere: dict[str, str]
    """What every job of ours does otherwise."""
    launchers: dict[str, dict[str, str]]
    """What every job of a launcher does otherwise besides."""
    rows: tuple[Row, ...]

    @model_validator(mode="after")
    def _known_words(self) -> Self:
        for row in self.rows:
            assert row.group in self.groups, row.name
            unknown = set(row.differs.values()) - set(self.reasons)
            assert not unknown, f"{row.name}: no such reason: {unknown}"
        used = {reason for row in self.rows for reason in row.differs.values()}
        used |= set(self.everywhere.values())
        used |= {reason for each in self.launchers.values() for reason in each.values()}
        assert used == set(self.reasons), f"reasons of no row: {set(self.reasons) - used}"
        names = [row.name for row in self.rows]
        assert len(names) == len(set(names)), "a script is listed twice"
        return self

    def expected(self, row: Row) -> set[str]:
        """Return all options and parts that ours has otherwise than the row's script."""
        general = {*self.everywhere, *self.launchers[row.job["launcher"]]}
        assert general >= set(row.same), f"{row.name}: `same` has what is in no list"
        return (general - set(row.same)) | set(row.differs)

    def site_of(self, row: Row) -> str:
        """Return the name of the site that the row's script is for."""
        return self.groups[row.group].site

    def job_of(self, row: Row, site: str | None = None, account: str | None = None) -> JobSpec:
        """Return our job file; at another site or account where these are given."""
        strategy = row.job.get("strategy", "ddp")
        program = self.programs[strategy] if "script" not in row.job else {}
        data = {
            "name": row.name.replace("/", "-").replace(".", "-").replace(" ", "-").lower(),
            "site": site or self.site_of(row),
            "account": account or row.asks.get("account", "none"),
            **({} if "script" in row.job else {"trainer": STRATEGIES[strategy].trainer}),
            **program,
            **row.job,
        }
        if account:
            data["account"] = account
        return JobSpec.model_validate(data)

    def launch_of(self, row: Row) -> Launch:
        """Return what our job file means at the script's own site."""
        job = self.job_of(row)
        site = _site(job.site)
        if row.mpi:
            site = site.model_copy(update={"mpi": row.mpi})
        return compose(job, site, deepspeed_config=deepspeed_config(job, Path(".")))


@cache
def _site(name: str) -> Site:
    return Sites([BUILT_IN]).load(name)


@cache
def table() -> Table:
    """Return the table, read once."""
    return Table.model_validate(yaml.load(TABLE.read_text(), yaml.CSafeLoader))
