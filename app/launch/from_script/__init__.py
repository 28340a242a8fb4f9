"""Turns job scripts into job files. Pure.

`from_script` combines what `request_keys`, `program_keys` and `script_environment` read from the
neutral model; `script_diff` compares the script with the one that lumitui writes.
"""
