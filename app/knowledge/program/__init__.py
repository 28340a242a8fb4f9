"""Analysis of a job's program: Python through `ast`, DeepSpeed configurations as HJSON.

`python_reader` reads a Python file into the types of `program_facts`, which rules use;
`deepspeed_config` reads a configuration, and `step_program` combines the files that a job's step
runs. Imports and executes nothing. Pure.
"""
