"""`lumitui docs`: the pages of the documentation, as they travel with the program."""

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import show
from lumitui.app.runs import InputError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_FOLDER = files("lumitui") / "docs"


def names() -> list[str]:
    """Return the names of the pages."""
    found = (item.name for item in _FOLDER.iterdir())
    return sorted(name.removesuffix(".md") for name in found if name.endswith(".md"))


def text_of(name: str) -> str:
    """Return a page; `name` may be the path under which another text names it.

    Raises:
        InputError: there is no such page.
    """
    page = name.removeprefix("docs/").removesuffix(".md")
    if page in names():
        return (_FOLDER / f"{page}.md").read_text(encoding="utf-8")
    near = get_close_matches(page, names(), 1, 0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InputError(f"There is no page {name!r}.", f"{meant}`lumitui docs` lists them.")


def _listed() -> Iterator[str]:
    every = names()
    width = max(map(len, every))
    for name in every:
        title = text_of(name).partition("\n")[0].lstrip("# ")
        yield f"{name:{width}}  {title}"


def _beginning(ctx: click.Context, param: click.Parameter, text: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names() if name.startswith(text)]


@click.command()
@click.argument("page", metavar="[PAGE]", required=False, shell_complete=_beginning)
def docs(page: str | None) -> None:
    """List the pages of the documentation, or print one."""
    show("\n".join(_listed()) if page is None else text_of(page).rstrip("\n"))
