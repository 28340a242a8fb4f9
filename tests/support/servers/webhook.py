"""A webhook on this machine, which keeps what it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Webhook(ThreadingHTTPServer):
    """An address that keeps the path, the type and the body of what it is sent."""

    status = 200
    """Its answer; a redirect leads to nobody."""
    told: list[tuple[str, str, str]]

    @property
    def address(self) -> str:
        """Return its address, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.told.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *given: object) -> None:
        """Print nothing."""


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Serve one until the block ends."""
    server = Webhook(("127.0.0.1", 0), _Answer)
    server.told = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
