"""What screens want from the app, and what its workers answer.

A message that ends in -Wanted goes up to the app; an Answer goes to the screen or pane that asked.
"""

from lumitui.app.tui.messages.common import (
    Answer,
    Failed,
    HistoryChanged,
    RunWanted,
)
from lumitui.app.tui.messages.launches import (
    CancelWanted,
    Planned,
    PlanWanted,
    PreviewMade,
    PreviewWanted,
    ResubmitWanted,
    RunCancelled,
    SendEnded,
    SendWanted,
    StepReported,
)
from lumitui.app.tui.messages.logs import (
    FollowWanted,
    LogNews,
    PageFound,
    PageWanted,
    UnfollowWanted,
)
from lumitui.app.tui.messages.results import (
    CodeCompared,
    CompareWanted,
    ComparisonMade,
    ComparisonWanted,
    FiguresFound,
    FiguresWanted,
    LogFiguresFound,
    OverviewFound,
    OverviewWanted,
    WhyFound,
    WhyWanted,
)
from lumitui.app.tui.messages.scaling import LadderEnded, ScalingWanted, StudyMade, StudyWanted
from lumitui.app.tui.messages.sites import (
    ClusterAnswered,
    ClusterAsked,
    ClusterWanted,
    GpusRead,
    GpusWanted,
    RefreshWanted,
    SiteRefreshed,
)

__all__ = [
    "Answer",
    "CancelWanted",
    "ClusterAnswered",
    "ClusterAsked",
    "ClusterWanted",
    "CodeCompared",
    "CompareWanted",
    "ComparisonMade",
    "ComparisonWanted",
    "Failed",
    "FiguresFound",
    "FiguresWanted",
    "FollowWanted",
    "GpusRead",
    "GpusWanted",
    "HistoryChanged",
    "LadderEnded",
    "LogFiguresFound",
    "LogNews",
    "OverviewFound",
    "OverviewWanted",
    "PageFound",
    "PageWanted",
    "PlanWanted",
    "Planned",
    "PreviewMade",
    "PreviewWanted",
    "RefreshWanted",
    "ResubmitWanted",
    "RunCancelled",
    "RunWanted",
    "ScalingWanted",
    "SendEnded",
    "SendWanted",
    "SiteRefreshed",
    "StepReported",
    "StudyMade",
    "StudyWanted",
    "UnfollowWanted",
    "WhyFound",
    "WhyWanted",
]
