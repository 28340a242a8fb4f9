"""How far a transfer is, in one line: a bar, bytes, rate, time left. Pure."""

from lumitui.app.explain.words import short_length, size
from lumitui.remote.transfer.contents.shipment_progress import ShipmentProgress

_CELLS = 8


def progress_line(progress: ShipmentProgress) -> str:
    """Return one line about a shipment under way, of 60 characters where its name is short."""
    if progress.phase == "asking":
        return f"staging {progress.name}: asking what the site has"
    verb = "reading" if progress.phase == "reading" else "staging"
    done, total = progress.done, progress.total
    share = min(1.0, done / total) if total else 1.0
    full = int(share * _CELLS)
    bar = "#" * full + "." * (_CELLS - full)
    line = f"{verb} {progress.name} [{bar}] {share:4.0%} {size(done)} of {size(total)}"
    if progress.rate and done < total:
        line += f" {size(int(progress.rate))}/s"
        if progress.seconds_left is not None:
            line += f" {short_length(progress.seconds_left)} left"
    return line
