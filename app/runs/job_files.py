"""Job files: opened, mechanically fixed, and made of scripts."""

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.guess import guess_site
from lumitui.app.launch.from_script.import_report import lines_of, report_of
from lumitui.app.launch.from_script.job_file_text import text_of
from lumitui.app.launch.from_script.notes import Said
from lumitui.app.launch.send.drafts.draft import open_file, save
from lumitui.app.launch.send.drafts.drafts import total
from lumitui.app.launch.send.drafts.fixes import fixed

__all__ = [
    "Said",
    "fixed",
    "guess_site",
    "lines_of",
    "open_file",
    "read_script",
    "report_of",
    "save",
    "text_of",
    "total",
]
