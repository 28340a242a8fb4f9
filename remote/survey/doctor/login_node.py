"""Checks of the login node: tools, containers, modules and free space. Pure."""

from collections.abc import Iterator

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.profile import Site


def connection(text: str, words: str = "") -> Finding:
    """Check that the login node returns the user and the host; `words` is any other answer."""
    user, _, host = text.strip().partition("\n")
    if not host:
        message = f"id and uname print nothing{f': {words}' if words else ''}"
        return Finding("connection", "error", message, "Log in manually.")
    return Finding("connection", "note", f"{user} at {host}")


def configuration(note: str) -> Finding:
    """Return a warning about how the connection is configured on this machine."""
    return Finding("configuration", "warning", note, "Change the option if you need to.")


def tools(text: str, site: Site) -> Iterator[Finding]:
    """Check the commands; `text` lists the missing ones."""
    missing = text.split()
    if missing:
        do = "Ask the site's support, or add them to the PATH of non-interactive shells."
        yield Finding("tools", "error", f"missing: {', '.join(missing)}", do)
    else:
        yield Finding("tools", "note", "all found")


def python(text: str, site: Site) -> Iterator[Finding]:
    """Check that the Python of a site without a scheduler can import torch."""
    path, _, has_torch = text.strip().rpartition(" ")
    if has_torch == "True":
        yield Finding("python", "note", f"{path} has torch")
        return
    answer = f"{path} lacks torch" if has_torch == "False" else text.strip()[-200:] or "no answer"
    do = "Set LUMITUI_PYTHON to a Python with torch, which the bundled trainers need."
    yield Finding("python", "warning", f"{answer}; the profile has {site.python}", do)


def images(text: str, site: Site) -> Iterator[Finding]:
    """Check the containers' images; `text` lists the unreadable ones."""
    missing = set(text.splitlines())
    for name, container in site.containers.items():
        if container.image in missing:
            severity: Severity = "error" if name == site.default_container else "warning"
            do = f"Set `containers.{name}.image`, or `container: {{image: …}}` in the job file."
            yield Finding(f"image {name}", severity, f"cannot read {container.image}", do)
        else:
            yield Finding(f"image {name}", "note", container.image)


def module_command(text: str, site: Site) -> Iterator[Finding]:
    """Check that a login shell has the command `module`, if the profile needs it."""
    if not (site.modules or any(container.modules for container in site.containers.values())):
        return
    if text.strip() == "yes":
        yield Finding("module", "note", "available in a login shell")
    else:
        do = "The profile's `modules:` would fail. Ask the site how to enable modules."
        yield Finding("module", "error", "missing in a login shell", do)


def work_root(text: str, root: str) -> Finding:
    """Check that the work root is writable, and show its free space."""
    place, word, last, *_ = [*text.splitlines(), "", "", ""]
    usage = last.split()
    kib = count(usage[3]) if len(usage) > 3 else None
    free = f", {kib / 2**20:.1f} GiB free" if kib is not None else ""
    if word not in ("writable", "refused"):
        do = "Log in and check the folder manually."
        return Finding("work root", "error", f"no answer: {last_words(text)}; it is {root}", do)
    if word == "refused":
        do = "Check the account and your quota, or set `work_root` in your own profile."
        message = f"{place} is not writable{free}; the work root is {root}"
        return Finding("work root", "error", message, do)
    if kib is not None and kib < 2**20:
        do = "Free some space: `lumitui site prune`."
        return Finding("work root", "warning", f"{place}{free}", do)
    return Finding("work root", "note", f"{place} is writable{free}")
