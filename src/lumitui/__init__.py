"""Compose, prove and scale multi-GPU training jobs on Slurm supercomputers.

The subpackages are links to the folders at the root of the repository (`app`, `remote`,
`templates`, `trainers`), so that a wheel installs `lumitui.app` and never a top-level `app`.
"""
