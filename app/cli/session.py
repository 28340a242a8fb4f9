"""Shared parts of all verbs: the core, common options, and shell completion."""

import gc
import math
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lumitui.app.cli.output import say, warn
from lumitui.app.runs import HistoryError, InputError, LinkError, LumiError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from lumitui.app.job.settings import Settings
    from lumitui.app.runs import ColleagueRuns, Runs, Sites

Verb = TypeVar("Verb", bound=Callable[..., Any])
WAY_OUT = "Run `lumitui --help` to list the commands, or `lumitui COMMAND --help` for one."


def own_settings() -> "Settings":
    """Return the user's settings."""
    from lumitui.app.job.settings import settings

    return settings()


@contextmanager
def core() -> Iterator["Runs"]:
    """Open the core for one verb; it prompts on the terminal."""
    # Late: importing pydantic and jinja2 takes ten times as long as `lumitui --version` itself.
    from lumitui.app.cli.confirmation import ask
    from lumitui.app.runs import Runs

    runs = Runs(own_settings(), ask=ask)
    restore = _terminal_state()
    try:
        _show_warnings(runs)
        yield runs
    finally:
        restore()
        _show_warnings(runs)
        runs.close()


def _show_warnings(runs: "Runs") -> None:
    for warning in (*runs.history.take_warnings(), *runs.sites.take_warnings()):
        warn(warning)


@contextmanager
def profiles() -> Iterator["Sites"]:
    """Pass the user's profiles to a verb that needs no core; warn about skipped ones."""
    from lumitui.app.runs import Sites

    sites = Sites(own_settings().profiles)
    try:
        yield sites
    finally:
        for warning in sites.take_warnings():
            warn(warning)


def profile_file(site: str | None) -> Path | None:
    """Return the path given instead of a site's name, or None if it is a name or missing."""
    path = Path(site or "")
    return path if path.suffix in (".yaml", ".yml") or len(path.parts) > 1 else None


def _terminal_state() -> Callable[[], None]:
    """Return a function that restores the terminal's current settings.

    A login prompts for a password in its connection's thread. Ctrl-C leaves that thread waiting,
    with the terminal's echo off.
    """
    import termios

    try:
        state = termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError, AttributeError):
        return lambda: None  # stdin is missing or not a terminal

    def restore() -> None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, state)

    return restore


def columns() -> int:
    """Return the width of tables: the terminal's, COLUMNS, or unlimited to a pipe.

    A terminal narrower than 20 columns wraps the lines itself.
    """
    return max(20, shutil.get_terminal_size((100_000, 24)).columns)


def json_option(verb: Verb) -> Verb:
    """Add `--json` to a verb; `Reply` finds it in the arguments."""
    text = "Print one JSON object on stdout."
    return click.option("--json", is_flag=True, expose_value=False, help=text)(verb)


def runs_beginning(ctx: click.Context, param: click.Parameter, text: str) -> "list[CompletionItem]":
    """Complete run ids that begin with `text`."""
    from click.shell_completion import CompletionItem

    try:
        with core() as runs:
            page = runs.history.page(limit=200)
    except LumiError:
        return []  # a completion cannot show an error
    return [CompletionItem(run.id, help=run.state) for run in page if run.id.startswith(text)]


def sites_beginning(
    ctx: click.Context, param: click.Parameter, text: str
) -> "list[CompletionItem]":
    """Complete site names that begin with `text`."""
    from click.shell_completion import CompletionItem

    from lumitui.app.runs import Sites

    names = Sites(own_settings().profiles).names()
    return [CompletionItem(name) for name in names if name.startswith(text)]


class GivenPath(click.Path):
    """A path given by the user; an empty path, such as an unset variable, is a mistake."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` as a Path; refuse an empty path, which would mean the current folder."""
        if value == "":
            self.fail("the path is empty; write `.` for the current folder.", param, ctx)
        return super().convert(value, param, ctx)


MOST = 10**9
"""The largest number of runs, bytes or seconds that an option accepts: SQLite has 64 bits."""


def no_nan(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Refuse `nan`, which click accepts in every range."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("'nan' is not a number of seconds.", ctx, param)
    return value


run_argument = click.argument("run_id", metavar="RUN", shell_complete=runs_beginning)
site_argument = click.argument("site_name", metavar="SITE", shell_complete=sites_beginning)
job_argument = click.argument("job", metavar="JOB", type=GivenPath())
_wait = click.option("--wait", is_flag=True, help="Wait for the end; exit with 5 if the job fails.")
_timeout = click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=MOST),
    callback=no_nan,
    help="Wait for the end, at most this long.",
)


def wait_options(verb: Callable[..., object]) -> Callable[..., object]:
    """Add `--wait` and `--timeout` to a verb that sends one run."""
    return _wait(_timeout(verb))


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def site_option(text: str, **more: Any) -> Callable[[Verb], Verb]:
    """Add `--site` to a verb, with the help `text`."""
    return click.option(
        "--site", "site_name", metavar="SITE", shell_complete=sites_beginning, help=text, **more
    )


runs_site_option = site_option("Only runs at this site.")
target_site_option = site_option(
    "Target site. [default: guessed from partition, account and paths]"
)
account_option = click.option(
    "--account", metavar="NAME", default="", help="Project to bill, or whose folder to use."
)
of_option = click.option(
    "--of", "user", metavar="USER", default="", help="Read this colleague's runs instead of yours."
)
of_site_option = site_option("With --of: the site. [default: the only one you use]")
of_account_option = click.option(
    "--account", metavar="NAME", default="", help="With --of: project billed for the runs."
)
dry_option = click.option("--dry-run", "dry", is_flag=True, help="List what would be removed.")
force_option = click.option(
    "--force", is_flag=True, help="Send the job despite the adviser's errors."
)
output_option = click.option(
    "--output",
    "-o",
    "path",
    type=GivenPath(),
    default="job.yaml",
    show_default=True,
    help="File to write; other files go beside it.",
)


def open_tui(job: Path | None, *, demo: bool = False) -> int:
    """Open the terminal interface, with a job file or the demo's; return its exit code."""
    refuse_without_terminal()
    gc.disable()  # until the first paint: most objects up to then are modules and classes
    # Late: Textual alone takes longer than any verb.
    from lumitui.app.explain.words import count
    from lumitui.app.tui.app import run_tui

    code = run_tui(own_settings(), job, demo=demo)
    with core() as runs:
        left = [site for site, _ in runs.history.unfinished_states().values()]
    if left:
        on = ", ".join(sorted(set(left)))
        say(f"Continues without lumitui: {count(len(left), 'job')} on {on}.")
    return code


def refuse_without_terminal() -> None:
    """Refuse to open the TUI without a terminal.

    Raises:
        InputError: stdin or stdout is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("The TUI needs a terminal.", WAY_OUT)


@contextmanager
def core_of(
    user: str, site_name: str | None, account: str, run_id: str = ""
) -> "Iterator[tuple[Runs, ColleagueRuns | None]]":
    """Open the core for a verb that only reads; with `user`, of that colleague's runs.

    Raises:
        InputError: the runs may not be read, the site is missing, or options need --of.
        LinkError: the site cannot be reached.
    """
    if not user:
        refuse_options("works only with --of", "site_name", "account")
        with core() as runs:
            yield runs, None
        return
    with core() as runs:
        used = [name for name in runs.clusters.sites() if name != "laptop"]
        if site_name is None and len(used) != 1:
            raise InputError(f"At which site are the runs of {user}?", "Give --site SITE.")
        site = site_name or used[0]
        with runs.of_colleague(user, site, account=account, run_id=run_id) as (theirs, found):
            for words in (*found.warnings, *(f"{one.folder}: {one.why}" for one in found.passed)):
                warn(words)
            yield theirs, found


def known_site(runs: "Runs", name: str | None) -> None:
    """Refuse a `name` that is not a site and has no runs in the history; None means any site.

    Raises:
        InputError: the site does not exist.
    """
    if name is not None and not runs.history.page(limit=1, site=name):
        runs.sites.path(name)


def refuse_silence(sites: Collection[str], failed: Mapping[str, LumiError]) -> None:
    """Raise if all queried `sites` are among those that `failed`.

    Raises:
        LinkError: no site could be reached.
        LumiError: a site answered, but not with the states of its jobs.
        HistoryError: the answer could not be recorded.
    """
    if not sites or set(sites) - set(failed):
        return
    for error in failed.values():
        if isinstance(error, HistoryError):
            raise error
    reasons = sorted(failed.values(), key=lambda error: isinstance(error, LinkError))
    raise type(reasons[0])(
        f"No answer from {', '.join(failed)}.",
        "See the warning. The states are those of the last poll; the jobs keep running.",
    )


def refuse_options(why: str, *names: str) -> None:
    """Refuse the options `names`, which would have no effect: `why` ends the message.

    Raises:
        InputError: the command line has the option named in the message.
    """
    from click.core import ParameterSource

    ctx = click.get_current_context()
    flags = {param.name: param.opts[0] for param in ctx.command.params}
    for name in names:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{flags[name]} {why}.", "Omit one of them.")
