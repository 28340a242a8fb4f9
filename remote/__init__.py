"""What crosses the network: sites, connections, the scheduler's commands, code and logs."""
