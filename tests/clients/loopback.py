"""Names below `localhost` lead to EDGE_ADDRESS: the edge of a real node, which has an address of its own."""

import os
import socket

ask = socket.getaddrinfo


def answer(host, *more, **others):
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and name.endswith(".localhost"):
        host = os.environ["EDGE_ADDRESS"]
    return ask(host, *more, **others)


socket.getaddrinfo = answer
