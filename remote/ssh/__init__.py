"""The SSH connection: configuration, trust, login, channels. Only here is paramiko."""
