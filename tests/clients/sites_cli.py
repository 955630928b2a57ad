"""The contract of the command line: what it asks of the Hub and of a site, until there is the real one.

sites_cli.py [-o json] auth login --username U          (the password of the demo's people is their name)
                       auth whoami
                       list
                       site --space S --name N [--token T] [--v1] content (upload|list|download|delete|checksum) ...
                                                           update set:share:accessgroups GROUP[,GROUP]
                                                           signed-urls (create|verify) ...

The Hub is at SITES_HUB; ~/.sites-cli keeps the token of the login. What fails says why and exits with 1.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import quote, urljoin

import requests

HUB = os.environ["SITES_HUB"]
ISSUER = os.environ["SITES_ISSUER"]
KEPT = pathlib.Path.home() / ".sites-cli"


def fail(told):
    print(told, file=sys.stderr)
    sys.exit(1)


def checked(answer):
    """An answer that must be a good one; its own words otherwise."""
    if answer.ok:
        return answer
    try:
        fail(f"{answer.status_code}: {answer.json()['message']}")
    except (ValueError, KeyError):
        fail(f"{answer.status_code} without a message")


class Form(HTMLParser):
    """The first form of a page."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        if tag == "form":
            self.action = self.action or known.get("action")
        elif tag == "input" and known.get("name"):
            self.fields[known["name"]] = known.get("value") or ""


def login(options):
    client = {"client_id": "sites-cli"}
    device = checked(requests.post(f"{ISSUER}/device/auth", data={**client, "scope": "openid email groups"})).json()
    person_at_a_browser(device["verification_uri_complete"], options.username)
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device["device_code"]}
    token = checked(requests.post(f"{ISSUER}/token", data={**client, **grant})).json()["access_token"]
    KEPT.write_text(json.dumps({"token": token}))
    KEPT.chmod(0o600)
    print("logged in")


def person_at_a_browser(address, name):
    """Confirms the code and logs in: every page is one form."""
    browser = requests.Session()
    page = browser.get(address)
    for _ in range(6):
        form = Form(page.text)
        if not form.action:
            return
        known = {"name": name, "password": name} if "password" in form.fields else {"confirm": "yes"}
        page = browser.post(urljoin(page.url, form.action), data={**form.fields, **known})
    fail(f"no end of forms at {page.url}")


def credential(options=None):
    token = getattr(options, "token", None)
    if not token and KEPT.exists():
        token = json.loads(KEPT.read_text())["token"]
    return {"Authorization": f"Bearer {token}"} if token else {}


def hub(method, path, **more):
    return checked(requests.request(method, f"{HUB}/hub/api/v2/{path}", headers=credential(), **more)).json()


def show(options, value, line):
    print(json.dumps(value) if options.output == "json" else line)


def whoami(options):
    me = hub("GET", "whoami/")
    show(options, me, me["user"] or "anonymous")


def sites(options):
    found = hub("GET", "sites/")["sites"]
    show(options, found, "\n".join(f"{site['space']}/{site['name']}" for site in found))


class Site:
    def __init__(self, options):
        version = "v1" if options.v1 else "v2"
        self.options = options
        self.api = f"{HUB}/{options.space}/{options.name}/s/api/{version}"

    def ask(self, method, path, **more):
        return checked(requests.request(method, f"{self.api}/{path}", headers=credential(self.options), **more))

    def upload(self):
        source, folder = pathlib.Path(self.options.source), self.options.destination.strip("/")
        if not source.exists():
            fail(f"{source} is not there")
        if source.is_dir() and not self.options.recursive:
            fail(f"{source} is a folder: --recursive")
        files = [source] if source.is_file() else sorted(file for file in source.rglob("*") if not file.is_symlink())
        sent = []
        for file in files:
            if file.is_file():
                name = file.name if file == source else file.relative_to(source).as_posix()
                target = f"{folder}/{name}".lstrip("/")
                with file.open("rb") as body:
                    query = {"backup_if_present": str(self.options.if_exists_backup).lower()}
                    told = self.ask("PUT", f"files/{quote(target, safe='')}", params=query, files={"file": body}).json()
                if told["status"] != "OK":
                    fail(told["message"])
                sent.append(target)
        show(self.options, sent, "\n".join(sent))

    def list(self):
        query = {"list": "true", "recursive": str(self.options.recursive).lower(), "limit": 64000}
        found = self.ask("GET", f"files/{quote(self.options.path)}", params=query).json()["files"]
        found = [entry for entry in found if fnmatch.fnmatch(entry["path"], self.options.match)]
        show(self.options, found, "\n".join(entry["path"] for entry in found))

    def download(self):
        folder = self.options.destination or f"./{self.options.space}/{self.options.name}"
        target = pathlib.Path(folder) / self.options.path.lstrip("/")
        answer = self.ask("GET", f"files/{quote(self.options.path)}", stream=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            for piece in answer.iter_content(1 << 16):
                file.write(piece)
        print(target)

    def delete(self):
        self.ask("DELETE", f"files/{quote(self.options.path)}")

    def checksum(self):
        told = self.ask("GET", f"checksums/{quote(self.options.path)}").json()
        show(self.options, told, told["checksum"])

    def update(self):
        groups = self.options.value.split(",")
        kind, field = "private", {"set:share:accessgroups": "view_groups", "set:share:accessusers": "view_users"}
        change = {"type": kind, "share": {field[self.options.what]: groups}}
        told = hub("PATCH", f"sites/{self.options.space}/{self.options.name}/", json=change)
        show(self.options, told, told["type"])

    def sign(self):
        made = self.ask("POST", "signed-urls", json={"url": self.options.url, "duration": self.options.duration}).json()
        show(self.options, made, made["url"])

    def verify(self):
        told = self.ask("POST", "signed-urls/verify", json={"url": self.options.signed}).json()
        show(self.options, told, "valid" if told["valid"] else "not valid")


def arguments():
    top = argparse.ArgumentParser()
    top.add_argument("-o", "--output", choices=["table", "json"], default="table")
    commands = top.add_subparsers(required=True)
    auth = commands.add_parser("auth").add_subparsers(required=True)
    one = auth.add_parser("login")
    one.add_argument("--username", required=True)
    one.set_defaults(run=login)
    one = auth.add_parser("whoami")
    one.add_argument("-o", "--output", choices=["table", "json"], default=argparse.SUPPRESS)
    one.set_defaults(run=whoami)
    commands.add_parser("list").set_defaults(run=sites)
    site = commands.add_parser("site")
    site.add_argument("--space", required=True)
    site.add_argument("--name", required=True)
    site.add_argument("--token")
    version = site.add_mutually_exclusive_group()
    version.add_argument("--v1", action="store_true")
    version.add_argument("--v2", action="store_true")
    areas = site.add_subparsers(required=True)
    content = areas.add_parser("content").add_subparsers(required=True)
    for name in ["upload", "list", "download", "delete", "checksum"]:
        one = content.add_parser(name)
        one.add_argument("--yes", "--force", action="store_true")
        one.set_defaults(run=lambda options, name=name: getattr(Site(options), name)())
        if name == "upload":
            one.add_argument("-s", "--source", required=True)
            one.add_argument("--destination", default="/")
            one.add_argument("--if-exists-backup", action="store_true")
        else:
            one.add_argument("--path", default="/", required=name != "list")
        if name in ["upload", "list"]:
            one.add_argument("--recursive", action="store_true")
        if name == "list":
            one.add_argument("--match", default="*")
        if name == "download":
            one.add_argument("--destination")
    update = areas.add_parser("update")
    update.add_argument("what", choices=["set:share:accessgroups", "set:share:accessusers"])
    update.add_argument("value")
    update.set_defaults(run=lambda options: Site(options).update())
    signed = areas.add_parser("signed-urls").add_subparsers(required=True)
    one = signed.add_parser("create")
    one.add_argument("--url", required=True)
    one.add_argument("--duration", type=int, required=True)
    one.set_defaults(run=lambda options: Site(options).sign())
    one = signed.add_parser("verify")
    one.add_argument("--signed", "--url", required=True)
    one.set_defaults(run=lambda options: Site(options).verify())
    return top.parse_args()


chosen = arguments()
chosen.run(chosen)
