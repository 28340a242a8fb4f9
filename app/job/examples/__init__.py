"""The examples in `templates/examples`, adapted to a site.

An example is one YAML file in the folder of its group, or a folder there with a `job.yaml` and the
files of its project. The first line of its comment is its summary.
"""

from lumitui.app.job.examples.adapted import (
    OWN_SCRIPT,
    Beginning,
    chosen,
    fitting_partition,
    text_for,
)
from lumitui.app.job.examples.example_table import (
    EXAMPLES,
    GROUPS,
    JobExample,
    examples,
    names,
    run_file,
)
from lumitui.app.job.examples.new_files import refuse_there, write_all, write_new

__all__ = [
    "EXAMPLES",
    "GROUPS",
    "OWN_SCRIPT",
    "Beginning",
    "JobExample",
    "chosen",
    "examples",
    "fitting_partition",
    "names",
    "refuse_there",
    "run_file",
    "text_for",
    "write_all",
    "write_new",
]
