"""Other sizes of a run: what they measured, what they would take, and runs sent together."""

from lumitui.app.follow.results.summary import Summary, summarize
from lumitui.app.scale.scaling import rungs, scaling_words
from lumitui.app.scale.scaling.drawing import drawing, write_drawing
from lumitui.app.scale.scaling.size_advice import Goal, advise, seconds_in
from lumitui.app.scale.scaling.studies import ScalingQuestion
from lumitui.app.scale.series_words import LadderUnfinished, failure, ladder_terms
from lumitui.app.scale.speedup import Speedup, TrainedRun, speedups

__all__ = [
    "Goal",
    "LadderUnfinished",
    "ScalingQuestion",
    "Speedup",
    "Summary",
    "TrainedRun",
    "advise",
    "drawing",
    "failure",
    "ladder_terms",
    "rungs",
    "scaling_words",
    "seconds_in",
    "speedups",
    "summarize",
    "write_drawing",
]
