"""The adviser: rules over a neutral model of a job, and causes of failures.

`script_job` is the model that rules read, and `bash` reads a script into it. Each module of `rules`
contains the rules of one subject, each a small pure function. `finding_text` formats findings;
`failure` explains a log by the rows of `causes`. Nothing here reads or writes a file.
"""
