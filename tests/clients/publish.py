"""What the version selector and the upload of a documentation workflow ask, as the library `requests` sends it.

publish.py SITE TOKEN FOLDER, with the address of the site and a folder, which may be empty. Exits with 1 and a reason.
"""

import json
import sys

import requests

site, token, folder = sys.argv[1:]
api = site + "s/api/v2"
headers = {"Authorization": f"Bearer {token}", "accept": "*/*"}


def expect(true, *told):
    if not true:
        sys.exit(" ".join(str(word) for word in told))


def upload(path, content, created=True):
    # One part without a type, whose file name is the field's.
    answer = requests.put(f"{api}/files/{path}", headers=headers, files={"file": content}, timeout=30)
    expect(answer.status_code == 200 and not answer.history, path, answer.status_code, answer.text)
    expect(answer.json()["status"] == "OK", answer.text)
    expect(answer.json()["created"] == created, answer.text)


def directories():
    query = {"list": "true", "limit": 64000, "type": "d"}
    answer = requests.get(f"{api}/files/{folder}", headers=headers, params=query, timeout=30)
    expect(answer.status_code == 200 and not answer.history, answer.status_code, answer.text)
    return [entry["path"] for entry in answer.json()["files"]]


below = f"{folder}/" if folder else ""
for name in ["1.0.0/index.html", "develop/index.html", "pull-requests/PR-7/index.html", "index.html"]:
    upload(below + name, b"<h1>" + name.encode() + b"</h1>")
    upload(below + name, b"<h1>" + name.encode() + b"</h1>", created=False)
expect(directories() == ["1.0.0", "develop", "pull-requests"], directories())

# A link, by the request that another workflow sends; it says that the JSON is a form.
form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
link = json.dumps({"target": f"{folder}/develop"})
for force in ["", "?force=true"]:
    answer = requests.put(f"{api}/symlinks/{folder}/latest{force}", headers=form, data=link, timeout=30)
    expect(answer.status_code == 200, answer.status_code, answer.text)
expect(directories() == ["1.0.0", "develop", "latest", "pull-requests"], directories())

# With an empty folder two slashes follow each other.
upload(f"{folder}/versions.json", json.dumps(directories()).encode())
page = requests.get(f"{site}{below}versions.json", timeout=30)
expect(page.json() == directories() and not page.history, page.text)
expect(page.headers["Content-Type"].startswith("application/json"), page.headers)
latest = requests.get(f"{site}{below}latest/index.html", timeout=30)
expect(latest.text == "<h1>develop/index.html</h1>", latest.text)

# The preview goes by one request without a slash at the end, and is gone.
for status in [200, 404]:
    answer = requests.delete(f"{api}/files/{below}pull-requests", headers=headers, timeout=30)
    expect(answer.status_code == status, answer.status_code, answer.text)
gone = requests.get(f"{site}{below}pull-requests/PR-7/index.html", timeout=30)
expect(gone.status_code == 404, gone.status_code)
print("published", folder)
