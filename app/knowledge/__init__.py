"""The adviser's rules over one neutral model of a job, and the causes of failures.

`script_job` is what a rule sees, `bash` reads a script into it, and each module of `rules` has the
rules of a subject, each a small pure function. `report` lays findings out; `failure` explains a
log by the rows of `causes`. Nothing here reads or writes a file.
"""
