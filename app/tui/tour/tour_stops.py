"""The stops of the tour: keys, description, and destination."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TourStop:
    """One line of the tour."""

    keys: str
    words: str
    """The description; with the keys, at most 66 cells: the line must fit 80."""
    leads: str
    """The place that completes the stop; see `place_of`."""

    @property
    def of_one_run(self) -> bool:
        """Whether it needs the run that trains on 8 nodes."""
        return self.leads not in ("failed", "new", "")


STOPS = (
    TourStop("enter", "opens the run under the cursor, which trains on 8 nodes", "overview"),
    TourStop("l", "follows its log, which grows as the job trains", "log"),
    TourStop("p", "shows the proof: the cores and GPUs each rank measured", "proof"),
    TourStop("m", "draws its loss; . draws the next metric", "metrics"),
    TourStop("S", "shows how it scales on 1 to 8 nodes, and predicts 16", "scaling"),
    # The dialog covers the line, so the description tells how to close it.
    TourStop("+", "plans it on twice the nodes, shows the changes; esc closes", "resubmit"),
    TourStop("1, ↓, d", "shows why the run below it failed", "failed"),
    TourStop("2", "starts a job file, from an example or your own script", "new"),
)
END = TourStop("q", "ends the tour. `lumitui demo` really trains, on this machine", "")
"""The text after the last stop."""

_PLACES = {"ResubmitDialog": "resubmit", "ScalingScreen": "scaling", "NewScreen": "new"}


def place_of(screen: str, pane: str, state: str) -> str:
    """Return the user's position: the screen's name, or the pane of a run in a state."""
    if screen != "RunScreen":
        return _PLACES.get(screen, "")
    return "failed" if (pane, state) == ("overview", "failed") else pane
