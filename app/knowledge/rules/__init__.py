"""The rules, in modules by subject. Each is a small pure function of a job and its site.

`rule_table` collects every `Rule` that these modules define.
"""
