"""The verb that shows a run in TensorBoard."""

from pathlib import Path

import click

from lumitui.app.cli import output
from lumitui.app.cli.session import core, port_option, run_argument


@click.command()
@run_argument
@port_option
def board(run_id: str, port: int) -> None:
    """Show a run's curves in TensorBoard, on this machine alone.

    A bundled trainer writes event files with `--watch tensorboard`; of any other run the kept
    metrics are shown. They are as of now: run the verb again for later steps. Ctrl-C ends it.
    """
    import subprocess
    from contextlib import suppress
    from tempfile import TemporaryDirectory

    from lumitui.app.follow.results.event_files import check_installed, command

    with TemporaryDirectory(prefix="lumitui-board-") as folder:
        with core() as runs:
            shown = runs.boards.prepare(runs.history.get(run_id).id, Path(folder))
        check_installed()
        output.say(f"TensorBoard shows {shown.source}; its address is below. Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):
            subprocess.run(command(shown, port), check=False)
