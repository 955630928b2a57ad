"""A mail server for tests: aiosmtpd on a free port of this machine.

The first line of its output is the port; then one line of JSON for each login and each mail. With MAIL_USER and
MAIL_PASSWORD it takes mail only after that login. To a recipient that begins with "refused" it says no, in words that
repeat what it knows. A login as "silent" it never answers.
"""

import asyncio
import json
import os

from aiosmtpd.smtp import SMTP, AuthResult

USER = os.environ.get("MAIL_USER", "")
PASSWORD = os.environ.get("MAIL_PASSWORD", "")


def tell(**what):
    print(json.dumps(what), flush=True)


def login(server, session, envelope, mechanism, data):
    good = data.login == USER.encode() and data.password == PASSWORD.encode()
    tell(login=data.login.decode(), good=good, mechanism=mechanism)
    # A failure that was "handled" is one that nobody answers.
    return AuthResult(success=good, handled=data.login == b"silent")


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("refused"):
            return f"550 {PASSWORD} has no mailbox {address}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        text = envelope.original_content.decode("utf-8", "surrogateescape")
        head, _, body = text.partition("\r\n\r\n")
        tell(sender=envelope.mail_from, recipients=envelope.rcpt_tos, head=head, body=body)
        return "250 OK"


options = {"auth_required": True, "auth_require_tls": False, "authenticator": login} if USER else {}


async def main():
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Handler(), **options), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
