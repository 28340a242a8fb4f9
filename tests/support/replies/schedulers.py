"""Replies as squeue and sacct of both releases of Slurm and the embedded site gave them."""

from lumitui.remote.scheduler.protocol import Watch

QUEUE = """\
M-job|317|CANCELLED|1795236570|1795236570|1795236573|small-g|nid005002|None|a|
M-job|269|FAILED|1795236360|1795236360|1795236360|small-g|nid[005002-005003]|NonZeroExitCode|run-269|
M-job|282|FAILED|1795236413|1795236414|1795236414|small-g|nid005001|JobLaunchFailure|run-282|
M-job|318|PENDING|1795236570|1795240170|1795240230|small-g||BeginTime|run-318|
M-job|319|PENDING|1795236573|1795236694|1795236754|small-g||JobHeldUser|run-319|
M-job|320|RUNNING|1795236570|1795236570|1795236630|small-g|nid[005002-005004]|None|b|
M-job|321|COMPLETED|1795236570|1795236570|1795236571|small-g|nid005002|None|run-321|
"""
ACCOUNT = """\
316|FAILED|1795236570|1795236570|1795236570|small-g|3:0|nid005002|c||
317|CANCELLED by 1001|1795236570|1795236570|1795236573|small-g|0:0|nid005002|a||
318|CANCELLED by 1001|1795236570|None|1795236600|small-g|0:0|None assigned|run-318||
319|REQUEUED|1795236570|1795236570|1795236573|small-g|0:0|nid005002|run-319||
320|RUNNING|1795236570|1795236570|Unknown|small-g|0:0|nid[005002-005004]|b||
322|FAILED|1795236570|1795236570|1795236571|small-g|0:9|nid005002|run-322||
319|PENDING|1795236573|Unknown|Unknown|small-g|0:0|None assigned|run-319||
"""
# Slurm 24.11.5: a signal has its name in the reason, and what a job was ended with its exit code.
QUEUE_24 = """\
M-job|41|CANCELLED|1795244263|1795244264|1795244264|small-g||BeginTime|run-41|
M-job|40|CANCELLED|1795244263|1795244263|1795244264|small-g|nid005001|None|run-40|
M-job|37|COMPLETED|1795244263|1795244263|1795244263|small-g|nid005001|None|run-37|
M-job|31|FAILED|1795244082|1795244082|1795244083|small-g|nid[005001-005002]|NonZeroExitCode|run-31|
M-job|39|FAILED|1795244263|1795244263|1795244263|small-g|nid005001|RaisedSignal:9(Killed)|run-39|
M-job|42|PENDING|1795244263|1795247863|1795247923|small-g||BeginTime|run-42|
M-job|46|PENDING|1795244263|N/A|N/A|small-g||Dependency|run-46|
M-job|44|PENDING|1795244264|1795244385|1795244445|small-g||job requeued in held state|run-44|
M-job|45|RUNNING|1795244263|1795244263|1795244323|small-g|nid[005001-005003]|None|run-45|
M-job|36|TIMEOUT|1795244090|1795244090|1795244173|small-g|nid005001|TimeLimit|run-36|
M-job|62|FAILED|1795244394|1795244394|1795244394|standard-g||BadConstraints|run-62|
"""
ACCOUNT_24 = """\
2|FAILED|1795243412|None|1795243412|standard-g|1:0|None assigned|run-2||
34|CANCELLED|1795244087|1795244087|1795244088|small-g|0:15|nid005001|run-34||
36|TIMEOUT|1795244090|1795244090|1795244173|small-g|0:15|nid005001|run-36||
37|COMPLETED|1795244263|1795244263|1795244263|small-g|0:0|nid005001|run-37||
39|FAILED|1795244263|1795244263|1795244263|small-g|0:9|nid005001|run-39||
40|CANCELLED by 1003|1795244263|1795244263|1795244264|small-g|0:0|nid005001|run-40||
44|REQUEUED|1795244263|1795244263|1795244264|small-g|0:0|nid005001|run-44||
45|RUNNING|1795244263|1795244263|Unknown|small-g|0:0|nid[005001-005003]|run-45||
"""
WATCHES = [Watch("a", "/s/runs/a", "317"), Watch("b", "/s/runs/b b", "320")]
RECORD = {
    "job": "7",
    "name": "r",
    "word": "RUNNING",
    "reason": "",
    "submitted": 1.0,
    "started": 2.0,
    "ended": None,
    "nodes": "node1",
    "exit_code": "",
    "partition": "local",
}
