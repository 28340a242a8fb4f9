"""What a job's program shows: Python by `ast`, DeepSpeed's configuration as HJSON.

`program_facts` is what a rule sees of a Python file and `python_reader` reads it,
`deepspeed_config` reads a configuration, and `step_program` joins what a step of a job runs.
Nothing is imported or executed. Pure.
"""
