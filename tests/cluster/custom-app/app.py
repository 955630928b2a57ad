"""A custom application, as tests and the demo run it: pages, headers, refusals and a web socket of its own on port 8000.

It tells what it was asked, so that one can see what arrives. A site whose id ends with `-slow` warms up first: it does
not listen before there is a file `warm` in the site's content.
"""

import base64
import hashlib
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = "/data"
PAGES = {"/": "text/html; charset=utf-8", "/builds": "text/html; charset=utf-8", "/static/base.css": "text/css"}
released = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        own = {"Content_Security_Policy": "default-src 'self'; img-src *", "X_Frame_Options": "DENY",
               "Cache_Control": "no-cache"}
        told = json.dumps({"path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()}})
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self.echo()
        elif path in PAGES:
            self.answer(200, PAGES[path], told.encode(), **own)
        elif path == "/bare":
            self.answer(200, "application/json", told.encode())
        elif path == "/health":
            self.answer(200, "application/json", b'{"status": "up"}')
        elif path == "/moved":
            self.answer(302, "text/plain", b"", Location="/builds")
        elif path == "/poll":
            # A long poll: the answer comes when somebody asks for /release.
            released.wait()
            self.answer(200, "text/plain", b"released")
        elif path == "/release":
            released.set()
            self.answer(200, "text/plain", b"ok")
        else:
            self.answer(404, "text/plain", b"the application has no " + self.path.encode(), **own)

    def echo(self):
        """Sends back each short text message of a web socket, until the other side closes it."""
        secret = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()
        self.send_response(101)
        for name, value in {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}.items():
            self.send_header(name, value)
        self.end_headers()
        while True:
            kind, length = self.rfile.read(2)
            mask, body = self.rfile.read(4), self.rfile.read(length & 0x7F)
            if kind & 0x0F == 8:
                break
            text = bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))
            self.wfile.write(bytes([0x81, len(text)]) + text)
        self.close_connection = True

    def log_message(self, *_):
        pass


if os.environ.get("SITE_ID", "").endswith("-slow"):
    while not os.path.exists(f"{CONTENT}/warm"):
        time.sleep(0.1)
ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
