"""What the login node shows: tools, containers, modules, and room to write. Pure."""

from collections.abc import Iterator

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.profile import Site


def connection(text: str, words: str = "") -> Finding:
    """Check that the login node answers; shows the user's name and the host.

    `words` is what it answered instead.
    """
    user, _, host = text.strip().partition("\n")
    if not host:
        message = f"id and uname gave no answer{f': {words}' if words else ''}"
        return Finding("connection", "error", message, "Log in manually.")
    return Finding("connection", "note", f"{user} at {host}")


def configuration(note: str) -> Finding:
    """Return a warning about how the connection is configured on this machine."""
    return Finding("configuration", "warning", note, "Change the option if you need to.")


def tools(text: str, site: Site) -> Iterator[Finding]:
    """Check that no command is missing (the answer lists those that are)."""
    missing = text.split()
    if missing:
        do = "Ask the site's support, or add them to the PATH of non-interactive shells."
        yield Finding("tools", "error", f"missing: {', '.join(missing)}", do)
    else:
        yield Finding("tools", "note", "all found")


def python(text: str, site: Site) -> Iterator[Finding]:
    """Check that the site's python can import torch (a site of plain processes)."""
    path, _, has_torch = text.strip().rpartition(" ")
    if has_torch == "True":
        yield Finding("python", "note", f"{path} has torch")
        return
    answer = f"{path} has no torch" if has_torch == "False" else text.strip()[-200:] or "no answer"
    do = "Set LUMITUI_PYTHON to a python that has torch: bundled trainers need it."
    yield Finding("python", "warning", f"{answer}; the profile has {site.python}", do)


def images(text: str, site: Site) -> Iterator[Finding]:
    """Check that the containers' images can be read (the answer lists those that cannot)."""
    missing = set(text.splitlines())
    for name, container in site.containers.items():
        if container.image in missing:
            severity: Severity = "error" if name == site.default_container else "warning"
            do = f"Name another image: `containers.{name}.image`, or `container: {{image: …}}`."
            yield Finding(f"image {name}", severity, f"{container.image} cannot be read", do)
        else:
            yield Finding(f"image {name}", "note", container.image)


def module_command(text: str, site: Site) -> Iterator[Finding]:
    """Check that a login shell has `module` where the profile uses it."""
    if not (site.modules or any(container.modules for container in site.containers.values())):
        return
    if text.strip() == "yes":
        yield Finding("module", "note", "a login shell has it")
    else:
        do = "Ask the site how modules are set up: the profile's `modules:` lines would fail."
        yield Finding("module", "error", "a login shell does not have it", do)


def work_root(text: str, root: str) -> Finding:
    """Check that files can be written at the work root, and show the free space."""
    place, word, last, *_ = [*text.splitlines(), "", "", ""]
    usage = last.split()
    kib = count(usage[3]) if len(usage) > 3 else None
    free = f", {kib / 2**20:.1f} GiB free" if kib is not None else ""
    if word not in ("writable", "refused"):
        do = "Log in and check the folder manually."
        return Finding("work root", "error", f"no answer: {last_words(text)}; it is {root}", do)
    if word == "refused":
        do = "Check the account and your quota, or set `work_root` in your own profile."
        message = f"{place} cannot be written{free}; the work root is {root}"
        return Finding("work root", "error", message, do)
    if kib is not None and kib < 2**20:
        do = "Make room: `lumitui site prune`."
        return Finding("work root", "warning", f"{place}{free}", do)
    return Finding("work root", "note", f"{place} is writable{free}")
