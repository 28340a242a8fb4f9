"""Listens on a port of 127.0.0.1 and starts a command for each connection, as inetd does.

    door.py PORT PIDFILE COMMAND...

The command gets the connection as its standard input and output. It may enter another network
first: a connection belongs to the network in which it was made.
"""

import ctypes
import os
import socket
import subprocess
import sys
import threading

_SET_NAME = 15  # prctl(2), PR_SET_NAME


def main(port: int, pidfile: str, command: list[str]) -> None:
    """Listen, and leave the terminal once connections are taken."""
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    if os.fork():
        os._exit(0)
    os.setsid()
    ctypes.CDLL(None).prctl(_SET_NAME, b"sshd")  # what `alive` expects of a login host
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    with open(pidfile, "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    while True:
        connection, _ = listener.accept()
        descriptor = connection.fileno()
        process = subprocess.Popen(command, stdin=descriptor, stdout=descriptor)
        connection.close()
        threading.Thread(target=process.wait, daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
