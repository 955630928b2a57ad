"""A web socket by hand: opens one, sends texts one after the other and wants each back.

web_socket.py HOST PATH TEXT... over https, with the certificate authorities of this machine.
"""

import base64
import os
import socket
import ssl
import sys

host, path, *texts = sys.argv[1:]
plain = socket.create_connection((host, 443), timeout=60)
stream = ssl.create_default_context().wrap_socket(plain, server_hostname=host).makefile("rwb")
key = base64.b64encode(os.urandom(16)).decode()
stream.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
stream.flush()
status = stream.readline().decode().strip()
if " 101 " not in status + " ":
    sys.exit(status)
while stream.readline().strip():
    pass
for text in texts:
    body, mask = text.encode(), os.urandom(4)
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))
    stream.write(bytes([0x81, 0x80 | len(body)]) + mask + masked)
    stream.flush()
    _, length = stream.read(2)
    print(stream.read(length).decode())
stream.write(bytes([0x88, 0x80]) + os.urandom(4))
stream.flush()
