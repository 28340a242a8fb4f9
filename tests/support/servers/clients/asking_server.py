"""paramiko's own server, which asks in ways that sshd does not, without PAM and accounts."""

import contextlib
import socket
import subprocess
import threading
from pathlib import Path

import paramiko

from lumitui.remote.ssh.config import Login
from tests.support.servers.sshd import fingerprint, new_key, public

CODE = "246810"
PASSWORD = "correct horse"


class Asking(paramiko.ServerInterface):
    """Wants `methods` one after the other."""

    def __init__(self, server: "Server") -> None:
        self.key, self.attempts = public(server.identity), server.attempts
        self.left, self.prompts, self.right = list(server.methods), server.prompts, server.right

    def get_allowed_auths(self, username: str) -> str:
        return "keyboard-interactive,password" if self.left[0] == "either" else self.left[0]

    def _judge(self, method: str, right: bool) -> int:
        self.attempts.append(f"{method} {'right' if right else 'wrong'}")
        if not right or self.left[0] != method:
            return paramiko.AUTH_FAILED  # type: ignore[attr-defined, no-any-return]
        self.left.pop(0)
        done = paramiko.AUTH_PARTIALLY_SUCCESSFUL if self.left else paramiko.AUTH_SUCCESSFUL  # type: ignore[attr-defined]
        return int(done)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._judge("publickey", f"{key.get_name()} {key.get_base64()}" == self.key)

    def check_auth_password(self, username: str, password: str) -> int:
        return self._judge("password", password == PASSWORD)

    def check_auth_interactive(self, username: str, submethods: str) -> paramiko.InteractiveQuery:  # type: ignore[name-defined]
        return paramiko.server.InteractiveQuery("Two factors", "From your phone", *self.prompts)

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        return self._judge("keyboard-interactive", responses == self.right)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return 0  # opened

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        def execute() -> None:
            data = b""
            while chunk := channel.recv(1 << 16):
                data += chunk
            done = subprocess.run(["/bin/sh", "-c", command], input=data, capture_output=True)
            channel.sendall(done.stdout)
            channel.sendall_stderr(done.stderr)
            channel.send_exit_status(done.returncode)
            channel.close()

        threading.Thread(target=execute, daemon=True).start()
        return True


class Server:
    """Listens and lets every connection in that gives `methods`."""

    def __init__(self, folder: Path) -> None:
        self.identity, self.host_key = new_key(folder / "identity"), new_key(folder / "host")
        self.methods, self.attempts = ["keyboard-interactive"], list[str]()
        self.prompts: tuple[tuple[str, bool], ...] = (("Code: ", False),)
        self.right = [CODE]
        self._host = paramiko.Ed25519Key.from_private_key_file(str(self.host_key))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[paramiko.Transport] = []
        port = self._listener.getsockname()[1]
        (folder / "config").write_text(
            f"Host *\nHostName 127.0.0.1\nPort {port}\nUser me\nIdentityFile {self.identity}\n"
            f"IdentityAgent none\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        )
        prints = {"ssh-ed25519": fingerprint(self.host_key)}
        self.login = Login("site", config=folder / "config", fingerprints=prints)
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end of the test
            while True:
                transport = paramiko.Transport(self._listener.accept()[0])
                self._open.append(transport)
                transport.add_server_key(self._host)
                transport.start_server(event=threading.Event(), server=Asking(self))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # a blocked accept would keep the port
        self._serving.join(10)
        self._listener.close()
        for transport in self._open:
            transport.close()
