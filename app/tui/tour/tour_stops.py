"""The stops of the tour: the keys of each, what they show, and the place that they lead to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TourStop:
    """One line of the tour."""

    keys: str
    words: str
    """What the keys show; with the keys, at most 66 cells: the line must fit 80."""
    leads: str
    """The place where the stop is over; see `place_of`."""


STOPS = (
    TourStop("enter", "opens the run under the cursor, which trains on 8 nodes", "overview"),
    TourStop("l", "follows its log, which grows as the job trains", "log"),
    TourStop("p", "shows the proof: the cores and GPUs each rank measured", "proof"),
    TourStop("m", "draws its loss and its images per second", "metrics"),
    TourStop("S", "shows how it scales on 1 to 8 nodes, and predicts 16", "scaling"),
    # The dialog covers the line: its words say how to leave it.
    TourStop("+", "plans it on twice the nodes, shows the changes; esc closes", "resubmit"),
    TourStop("1, ↓, d", "shows why the run below it failed", "failed"),
    TourStop("2", "starts a job file, from an example or your own script", "new"),
)
END = TourStop("q", "ends the tour. `lumitui demo` really trains, on this machine", "")
"""What is shown after the last one."""

_PLACES = {"ResubmitDialog": "resubmit", "ScalingScreen": "scaling", "NewScreen": "new"}


def place_of(screen: str, pane: str, state: str) -> str:
    """Return where the user is: by the name of the screen, or by the pane of a run in a state."""
    if screen != "RunScreen":
        return _PLACES.get(screen, "")
    return "failed" if (pane, state) == ("overview", "failed") else pane
