"""What crosses the wire: sites, connections, the scheduler's commands, code and logs."""
