"""`lumitui docs`: the pages of the documentation."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import show
from lumitui.app.explain.doc_pages import page_names, page_text, page_title

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _listed() -> Iterator[str]:
    names = page_names()
    width = max(map(len, names))
    for name in names:
        yield f"{name:{width}}  {page_title(name)}"


def _beginning(ctx: click.Context, param: click.Parameter, text: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in page_names() if name.startswith(text)]


@click.command()
@click.argument("page", metavar="[PAGE]", required=False, shell_complete=_beginning)
def docs(page: str | None) -> None:
    """List the pages of the documentation, or print one."""
    show("\n".join(_listed()) if page is None else page_text(page).rstrip("\n"))
