"""The types of other packages that callers of the door name: for annotations, and for schemas.

To import this at run time is dear: it is for `TYPE_CHECKING`, and for `lumitui schema`.
"""

from lumitui.app.follow.recover import PassedOver
from lumitui.app.follow.results.summary import Summary
from lumitui.app.follow.results.sweep import Sweep
from lumitui.app.follow.sites.cluster_overviews import Answered
from lumitui.app.follow.sites.inventory import RemovedItems
from lumitui.app.history.attempts import AttemptRecord
from lumitui.app.history.file.sqlite_file import FileFacts
from lumitui.app.history.listing.filter_syntax import Term
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.knowledge.masks.mask_checks import Starter
from lumitui.app.knowledge.report.checked import CheckedScript
from lumitui.app.knowledge.rule import Finding as LintFinding
from lumitui.app.knowledge.rule_catalogue import Subject, Topic
from lumitui.app.launch.core_binding import RankBinding
from lumitui.app.launch.draft.mask_text import Explained
from lumitui.app.launch.draft.problems import Problem
from lumitui.app.launch.from_script.notes import Said
from lumitui.app.launch.rules.finding import Finding
from lumitui.app.launch.send.preview import Preview
from lumitui.app.scale.changes import PlanChange
from lumitui.app.scale.resubmission import CodeNews, Resubmission
from lumitui.app.scale.run_plan import Start
from lumitui.app.scale.scaling.size_advice import SizeAdvice
from lumitui.app.scale.scaling.study import Scaling
from lumitui.app.scale.series_words import MemberOutcome, Standing
from lumitui.app.scale.speedup import Speedup
from lumitui.app.survey.profile.surveys import Looked
from lumitui.remote.scheduler.cluster_overview import ClusterOverview
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import Sites
from lumitui.remote.source.guard import Suspect
from lumitui.remote.ssh.prompts import LoginQuestion as LoginQuestion
from lumitui.remote.survey.doctor.check_result import Check
from lumitui.remote.survey.doctor.profile_checks import Remark
from lumitui.remote.transfer.environments.image_listing import Image
from lumitui.remote.transfer.environments.venvs import RemovedVenvs, Venv
from lumitui.remote.transfer.results.fetch_files import Fetched, FetchOutcome
from lumitui.remote.transfer.snapshots.prune import Pruned
from lumitui.remote.transfer.staging.staging_upkeep import Loose, Stock

__all__ = [
    "Answered",
    "AttemptRecord",
    "Check",
    "CheckedScript",
    "ClusterOverview",
    "CodeNews",
    "Diagnosis",
    "Explained",
    "FetchOutcome",
    "Fetched",
    "FileFacts",
    "Finding",
    "Image",
    "LintFinding",
    "LoginQuestion",
    "Looked",
    "Loose",
    "MemberOutcome",
    "PassedOver",
    "PlanChange",
    "Preview",
    "Problem",
    "Pruned",
    "RankBinding",
    "Remark",
    "RemovedItems",
    "RemovedVenvs",
    "Resubmission",
    "Run",
    "RunSeries",
    "Said",
    "Scaling",
    "SeriesMember",
    "Site",
    "Sites",
    "SizeAdvice",
    "Speedup",
    "Standing",
    "Start",
    "Starter",
    "Stock",
    "Subject",
    "Summary",
    "Suspect",
    "Sweep",
    "Term",
    "Topic",
    "Venv",
]
