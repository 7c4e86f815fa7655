"""TCP ports on the loopback address."""

import contextlib
import random
import socket
from typing import Final

HOST: Final = "127.0.0.1"

# Below the range from which Linux gives ports to outgoing connections (32768 to 60999), so that a server that
# is away for a while finds its port free when it comes back.
_PORTS: Final = range(20000, 32000)


def free_port() -> int:
    """Find a port that nobody listens on now."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
