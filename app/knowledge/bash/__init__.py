"""Reader of sbatch scripts into the neutral job model, using tree-sitter-bash."""

from lumitui.app.knowledge.bash.script_reader import read_script

__all__ = ["read_script"]
