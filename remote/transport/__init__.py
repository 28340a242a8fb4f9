"""How a request runs somewhere: POSIX sh over one channel, framed and quoted."""
