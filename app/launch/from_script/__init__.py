"""Turns job scripts into job files. Pure.

`from_script` combines what `request_keys`, `program_keys` and `script_environment` read from the
neutral model; `import_report` compares the script with the one that lumitui writes.
"""
