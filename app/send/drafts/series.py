"""The runs of one job file, sent one after the other, each exactly once."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from lumitui.app.history.run import Run
from lumitui.app.send.preview import Preview
from lumitui.app.send.shipment import slug
from lumitui.remote.errors import InputError, LumiError, OutcomeUnknown

_LONGEST_NOTE = 200


def send_series(
    previews: Sequence[Preview],
    send: Callable[[Preview], Run],
    sent: Callable[[Run], None] = lambda run: None,
) -> tuple[Run, ...]:
    """Send each of `previews` by `send`, in order; `sent` hears of each run that has a job.

    The runs of a grid get a note with a word that they share, which `history --search` finds.
    Nothing is sent when one of them has an error; the first that fails ends it.

    Raises:
        LumiError: as `send`; of several, the message says which were sent before.
    """
    for preview in previews:
        preview.check()
    group = f"{slug(previews[0].name)[:20]}-{secrets.token_hex(2)}"
    done: list[Run] = []
    for preview in previews:
        note = f"grid {group}: {preview.cell}"[:_LONGEST_NOTE] if preview.cell else ""
        try:
            run = send(replace(preview, note=note))
        except LumiError as error:
            if len(previews) == 1:
                raise
            raise _stopped(error, previews, done) from error
        done.append(run)
        sent(run)
    return tuple(done)


def _stopped(error: LumiError, previews: Sequence[Preview], done: Sequence[Run]) -> LumiError:
    """Return `error` with what was sent before it, and how the rest is sent."""
    count, cell = len(done), previews[len(done)].cell
    names = f": {', '.join(run.id for run in done)}" if done else ""
    skip = count + isinstance(error, OutcomeUnknown)  # that one may be a job
    rest = f" The rest: `lumitui submit JOB --skip {skip}`." if skip < len(previews) else ""
    return type(error)(
        f"{count} of {len(previews)} runs were sent{names}. Then {cell} failed: {error.message}",
        f"{error.hint}{rest}".strip(),
    )


def only(previews: Sequence[Preview]) -> Preview:
    """Return the preview of a job file that is one run.

    Raises:
        InputError: it has a grid of several.
    """
    if len(previews) > 1:
        raise InputError(
            f"The job file has a grid of {len(previews)} runs, and this is about one.",
            "Remove `grid:`, or use `lumitui submit`, which sends them all.",
            field="grid",
        )
    return previews[0]
