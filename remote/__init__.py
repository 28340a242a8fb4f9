"""The network side: sites, connections, the scheduler's commands, code and logs."""
