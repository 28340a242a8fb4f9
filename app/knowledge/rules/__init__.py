"""The rules, in modules by subject. Each is a small pure function over a job and its site.

`rule_table` takes every `Rule` that a module here defines.
"""
