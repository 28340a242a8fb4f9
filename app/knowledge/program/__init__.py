"""What a job's program says of itself: Python by `ast`, DeepSpeed's configuration as HJSON.

`facts` is what a rule sees of a Python file, `python` reads it, `deepspeed` reads a configuration,
and `run` puts together what a step of a job runs. Nothing is imported or executed. Pure.
"""
