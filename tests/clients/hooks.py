"""What schemathesis is told beside the document: see tests/support/schema.rs."""

import os
import socket

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection


# Form data has texts only, of which `1` is a truth value: what the document forbids there may be what it allows.
@schemathesis.check
def forbidden_data_is_refused(ctx, response, case):
    if case.media_type == "application/x-www-form-urlencoded":
        return None
    return negative_data_rejection(ctx, response, case)


ask = socket.getaddrinfo


# Names below `localhost` lead to the edge of a real node, which has an address of its own.
def answer(host, *more, **others):
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and name.endswith(".localhost"):
        host = os.environ["EDGE_ADDRESS"]
    return ask(host, *more, **others)


socket.getaddrinfo = answer
