"""Ask a site everything about one job in one request."""

from lumitui.remote.scheduler.slurm import CLEAN
from lumitui.remote.site.profile import Site
from lumitui.remote.survey.inquiry import answers as read
from lumitui.remote.survey.inquiry.answers import Answers
from lumitui.remote.survey.inquiry.inquiry_request import (
    MOST_PATHS,
    SECONDS,
    Asked,
    commands_of,
    inquiry_script,
    path_part,
)
from lumitui.remote.survey.inquiry.meter_rows import budget_rows, quota_rows
from lumitui.remote.transport.records import new_marker
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.request_parts import read_parts
from lumitui.remote.transport.transport import Transport

_KEYS = {"quota": "quota: command:", "balance": "commands: balance:"}


@purpose("inquiry")
def inquire(transport: Transport, site: Site, asked: Asked) -> Answers:
    """Return what `site` says; what it cannot say is in the answers' `faults`.

    Raises:
        LinkError: it could not be asked, or its answer is no answer.
    """
    marker = new_marker()
    result = transport.run(inquiry_script(marker, CLEAN, asked), timeout=SECONDS)
    return parse_answers(result.out, marker, site, asked)


def parse_answers(output: bytes, marker: str, site: Site, asked: Asked) -> Answers:
    """Return the answers in a request's output; no bytes make it raise but AnswerUnusable."""
    texts, faults = read_parts(output, marker, commands_of(asked), _KEYS)
    looked = [
        read.path_state(path, texts.get(path_part(number), ""))
        for number, path in enumerate(asked.paths[:MOST_PATHS])
    ]
    trial = read.trial(texts.get("trial", ""))
    if "trial" in texts and trial is None:
        faults["trial"] = "`sbatch --test-only` said nothing that can be read."
    return Answers(
        paths=tuple(state for state in looked if state),
        jobs=read.own_jobs(texts.get("jobs", "")),
        associations=read.associations(texts.get("associations", "")),
        qos=read.qualities(texts.get("qos", "")),
        partition=read.partition_now(texts.get("partition", "")),
        trial=trial,
        quotas=quota_rows(texts.get("quota", ""), site.quota) if site.quota else (),
        budgets=budget_rows(texts.get("balance", ""), site.budget) if site.budget else (),
        faults=faults,
    )
