"""Job files made from job scripts: what a script says in the words of a job file. Pure.

`from_script` puts together what `request_keys`, `program_keys` and `script_environment` read from
the neutral model; `script_diff` compares the script with the one that lumitui writes.
"""
