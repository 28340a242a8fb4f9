"""The SSH connection: configuration, trust, login, channels. The only user of paramiko."""
