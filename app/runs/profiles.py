"""What a person's own files say: profiles of sites, and any plain file."""

from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.sites import Sites

__all__ = ["Sites", "read_plain"]
