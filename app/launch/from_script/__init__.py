"""Job files made from job scripts: what a script says in the words of a job file. Pure.

`adopt` puts together what `request`, `program` and `environment` read from the neutral model, and
`compare` says what the job file's own script does otherwise.
"""
