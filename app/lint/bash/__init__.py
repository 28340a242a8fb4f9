"""Reads an sbatch script into the neutral model of a job, with tree-sitter-bash."""

from lumitui.app.lint.bash.read import read_script

__all__ = ["read_script"]
