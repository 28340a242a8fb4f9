"""What a job wants of the cluster, and how a finding about it is made."""

from dataclasses import dataclass

from lumitui.app.knowledge.model.source_position import NOWHERE, Position
from lumitui.app.knowledge.rule import Finding, Severity
from lumitui.app.survey.inquiry.job_paths import Place
from lumitui.app.survey.inquiry.topics import TOPICS

_KNOWN = {topic.id: topic for topic in TOPICS}


@dataclass(frozen=True)
class Wanted:
    """What a job wants of the cluster, for the comparison with what it has."""

    places: tuple[Place, ...] = ()
    account: str = ""
    partition: str = ""
    qos: str = ""
    seconds: int | None = None
    nodes: int | None = None
    price: float | None = None
    """What it is billed at its time limit, in the site's unit."""
    unit: str = "hours"
    field_of: tuple[tuple[str, Position], ...] = ()
    """Where the job says its `account`, `partition`, `time` and `nodes`."""

    def at(self, name: str) -> Position:
        """Return where the job says `name`."""
        return dict(self.field_of).get(name, NOWHERE)


def finding(
    name: str, message: str, do: str, at: Position = NOWHERE, severity: Severity | None = None
) -> Finding:
    """Return a finding of the rule `name`, with its own severity unless another is given."""
    topic = _KNOWN[name]
    return Finding(name, severity or topic.severity, message, do, topic.source, at)
