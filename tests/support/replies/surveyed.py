"""What a cluster without a profile answered (Slurm 22.05), and the profile that is made of it."""

from collections.abc import Mapping
from datetime import date

from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.survey.profile.ask_cluster import HostAddress, ask
from lumitui.remote.survey.profile.profile_text import text_of
from lumitui.remote.survey.profile.proposal import propose
from lumitui.remote.survey.profile.shape_choice import choose
from tests.support.places import ROOT
from tests.support.servers.transports import FixedAnswer

REPLIES = ROOT / "tests" / "support" / "replies"
SURVEY = (REPLIES / "survey-22.05.txt").read_text()
"""Of `init --host`; MARKER stands for its marker."""
NODE = (REPLIES / "node-22.05.txt").read_text()
"""Of the script on one of its nodes."""


def text_from(
    answer: str | bytes,
    *,
    partition: str = "",
    gpus: int = 0,
    name: str = "new",
    keys: Mapping[str, str] | None = None,
) -> str:
    """Return the profile's text that an answer leads to; `keys`: of the login's host."""
    data = answer if isinstance(answer, bytes) else answer.encode("utf-8", "surrogateescape")
    cluster = ask(FixedAnswer(data))
    host = HostAddress("login.example", fingerprints=keys or {})
    proposal = propose(name, host, cluster, choose(cluster, partition, gpus))
    return text_of(proposal, "login.example", date(2026, 11, 22))


def site_of(text: str) -> Site:
    """Return the site that a profile's text describes."""
    document = Document(text, "new.yaml")
    return validate(document, Site, document.data)


def with_changes(*changes: tuple[str, str]) -> str:
    """Return the answer with each first text replaced by the second; all of them must be there."""
    answer = SURVEY
    for old, new in changes:
        assert old in answer, old
        answer = answer.replace(old, new)
    return answer
