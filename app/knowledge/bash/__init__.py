"""Reads an sbatch script into the neutral model of a job, with tree-sitter-bash."""

from lumitui.app.knowledge.bash.script_reader import read_script

__all__ = ["read_script"]
