"""Running requests on a machine: POSIX sh over one channel, framed and quoted."""
