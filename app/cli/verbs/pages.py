"""`lumitui docs`: the pages of the documentation, which are installed with the program."""

from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import show
from lumitui.app.explain.doc_pages import contents, page_names, page_text, page_title

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def listed() -> str:
    """Return the pages with their titles, by subject."""
    width = max(map(len, page_names()))
    subjects = [
        "\n".join([subject, *(f"  {name:{width}}  {page_title(name)}" for name in own)])
        for subject, own in contents()
    ]
    return "\n\n".join(subjects)


def _beginning(ctx: click.Context, param: click.Parameter, text: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in page_names() if name.startswith(text)]


@click.command()
@click.argument("page", metavar="[PAGE]", required=False, shell_complete=_beginning)
def docs(page: str | None) -> None:
    """List the documentation's pages, or print one.

    PAGE/SECTION prints one section: `why/gpu-memory`, `rules/account`, `exit_codes/6`.
    """
    show(listed() if page is None else page_text(page).rstrip("\n"))
