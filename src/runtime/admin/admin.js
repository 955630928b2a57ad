// The file manager's script: everything it does is a call of the Site API with the visitor's own session.
"use strict";

const api = document.body.dataset.api;
const message = document.getElementById("message");

function say(text, error = false) {
  message.textContent = text;
  message.classList.toggle("error", error);
}

async function call(method, path, body) {
  const answer = await fetch(`${api}/${path}`, { method, body, credentials: "same-origin" });
  const value = await answer.json().catch(() => ({ message: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(value.message);
  return value;
}

// Does something, says what failed, and shows the folder as it is then.
async function act(work) {
  try {
    if ((await work()) !== false) location.reload();
  } catch (error) {
    say(error.message, true);
  }
}

const encode = (path) => path.split("/").map(encodeURIComponent).join("/");

for (const element of document.querySelectorAll(".tools, .actions, #new-token")) element.hidden = false;

const tools = document.querySelector(".tools");
if (tools) {
  const here = tools.dataset.here;
  const progress = document.getElementById("upload-progress");
  const send = (file, done, total) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PUT", `${api}/files/${here}${encodeURIComponent(file.name)}`);
      request.upload.onprogress = (event) => {
        if (event.lengthComputable) progress.value = (done + event.loaded) / Math.max(total, 1);
      };
      request.onerror = () => reject(new Error(`${file.name}: the connection broke`));
      request.onload = () => {
        if (request.status === 200) return resolve();
        let text = `the server answered ${request.status}`;
        try {
          text = JSON.parse(request.responseText).message;
        } catch {
          // Not ours: the status says enough.
        }
        reject(new Error(`${file.name}: ${text}`));
      };
      request.send(file);
    });
  const upload = (files) =>
    act(async () => {
      if (files.length === 0) return false;
      const total = files.reduce((sum, file) => sum + file.size, 0);
      let done = 0;
      progress.hidden = false;
      for (const file of files) {
        say(`Uploading ${file.name} …`);
        await send(file, done, total);
        done += file.size;
      }
    });
  document.getElementById("upload").addEventListener("change", (event) => upload([...event.target.files]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      tools.classList.toggle("over", kind === "dragover");
      if (kind === "drop") upload([...event.dataTransfer.files]);
    });
  }
  document.getElementById("new-folder").addEventListener("click", () => {
    const name = prompt("Name of the new folder");
    if (name) act(() => call("PUT", `directories/${here}${encode(name)}`));
  });
  document.getElementById("new-file").addEventListener("click", () => {
    const name = prompt("Name of the new file", "index.html");
    if (name) edit(`${here}${encode(name)}`, name, "", null);
  });
}

let save = null;
function edit(path, name, text, tag) {
  document.getElementById("editor-name").textContent = name;
  document.getElementById("editor-text").value = text;
  save = () =>
    act(async () => {
      const headers = tag ? { "If-Match": tag } : { "If-None-Match": "*" };
      const body = document.getElementById("editor-text").value;
      const answer = await fetch(`${api}/files/${path}`, { method: "PUT", body, headers, credentials: "same-origin" });
      // Read to its end: the page is loaded again, which would break off what is left of it.
      const value = await answer.json().catch(() => ({ message: `the server answered ${answer.status}` }));
      if (!answer.ok) {
        document.getElementById("editor").close();
        throw new Error(value.message);
      }
    });
  document.getElementById("editor").showModal();
}
document.getElementById("editor-save")?.addEventListener("click", () => save());

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-act]");
  if (!button) return;
  const row = button.closest("tr");
  const { path, name, token } = row.dataset;
  const kinds = {
    delete: () => confirm(`Delete ${name} and all that is in it?`) && act(() => call("DELETE", `files/${path}`)),
    move: () => {
      const source = decodeURIComponent(path);
      const destination = prompt("New path, from the site's root", source);
      if (destination && destination !== source) {
        act(() => call("POST", "move", JSON.stringify({ source, destination })));
      }
    },
    edit: async () => {
      const answer = await fetch(`${api}/files/${path}`, { credentials: "same-origin" });
      const type = answer.headers.get("Content-Type") ?? "";
      if (!answer.ok) return say(`the server answered ${answer.status}`, true);
      if (!/^text\/|json|javascript|xml|yaml/.test(type)) return say(`${name} is no text`, true);
      edit(path, name, await answer.text(), answer.headers.get("ETag"));
    },
    revoke: () => confirm("Revoke this token? Whoever uses it is locked out.") && act(() => call("DELETE", `tokens/${token}`)),
  };
  kinds[button.dataset.act]?.();
});

document.getElementById("new-token")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  act(async () => {
    const duration = Number(form.get("days")) * 86400;
    const wanted = { label: form.get("label"), privilege: form.get("privilege"), duration };
    const made = await call("POST", "tokens", JSON.stringify(wanted));
    const shown = document.getElementById("token");
    shown.hidden = false;
    shown.textContent = `Copy it now, it is shown once: ${made.value}`;
    return false;
  });
});
