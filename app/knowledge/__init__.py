"""The adviser's rules over one neutral model of a job, from a job file or from any sbatch script.

`model` is what a rule sees, `bash` reads a script into it, `rules` has one small pure function
a rule, in folders by subject; `report` lays the findings out. No I/O anywhere below.
"""
