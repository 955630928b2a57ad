// A headless Chromium that does what a test says: one JSON object a line in, one a line out.
//
// DRIVER        the folder whose node_modules has playwright-core
// CHROMIUM      the browser
// EDGE          the address that names below `localhost` lead to
// CA            who signed the edge's certificate; no other is trusted
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { connect } from 'node:tls';

const { DRIVER, CHROMIUM, EDGE, CA } = process.env;
const { chromium } = createRequire(`${DRIVER}/`)('playwright-core');

// Chromium knows no authority of ours. A certificate that the authority did sign is pinned by its key.
const pinned = (servername) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: EDGE, port: 443, servername, ca: readFileSync(CA) }, () => {
      const key = socket.getPeerX509Certificate().publicKey.export({ type: 'spki', format: 'der' });
      socket.end();
      resolve(createHash('sha256').update(key).digest('base64'));
    });
    socket.on('error', reject);
  });
const keys = await Promise.all(['sites.localhost', 'id.localhost'].map(pinned));

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  // Its sandbox does not start as root, and a container is one already.
  args: [
    '--no-sandbox', `--host-resolver-rules=MAP *.localhost ${EDGE}`,
    `--ignore-certificate-errors-spki-list=${keys.join(',')}`,
  ],
});

const people = new Map();

// What the page's own script does with the progress bar, kept over the reload that ends an upload.
const watch = () => {
  document.addEventListener('DOMContentLoaded', () => {
    const bar = document.getElementById('upload-progress');
    if (!bar) return;
    const note = () => {
      const seen = JSON.parse(sessionStorage.getItem('progress') ?? '[]');
      if (!bar.hidden) sessionStorage.setItem('progress', JSON.stringify([...seen, bar.value]));
    };
    new MutationObserver(note).observe(bar, { attributes: true });
  });
};

const dropped = (files) => {
  const transfer = new DataTransfer();
  for (const { name, text } of files) transfer.items.add(new File([text], name));
  const target = document.querySelector('.tools');
  const send = (kind) =>
    target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
  send('dragover');
  const over = target.classList.contains('over');
  send('drop');
  return over;
};

const deeds = {
  // Somebody with a browser of their own.
  async person(_, { name, scripts = true }) {
    const context = await browser.newContext({ javaScriptEnabled: scripts, viewport: { width: 1000, height: 640 } });
    if (scripts) await context.addInitScript(watch);
    const page = await context.newPage();
    const person = { page, trouble: [], answer: undefined };
    page.on('console', (line) => {
      // A page that names no icon makes the browser ask the host for one, which is nobody's.
      if (line.type() !== 'error' || line.location().url.endsWith('/favicon.ico')) return;
      person.trouble.push(`console: ${line.text()} ${line.location().url}`);
    });
    page.on('pageerror', (error) => person.trouble.push(`script: ${error.message}`));
    page.on('requestfailed', (request) => person.trouble.push(`request: ${request.url()} ${request.failure()?.errorText}`));
    page.on('dialog', (dialog) => {
      const { answer } = person;
      person.answer = undefined;
      return answer === undefined ? dialog.dismiss() : dialog.accept(answer);
    });
    people.set(name, person);
  },
  async open({ page }, { url }) {
    const answer = await page.goto(url);
    return { status: answer.status(), url: page.url(), headers: answer.headers(), title: await page.title() };
  },
  // The dialog that a click opens, if any, is answered so.
  async click(person, { at, answer }) {
    person.answer = answer;
    await person.page.locator(at).click();
  },
  async fill({ page }, { at, text }) {
    await page.locator(at).fill(text);
  },
  async choose({ page }, { at, files }) {
    const chosen = files.map(({ name, text }) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) }));
    await page.locator(at).setInputFiles(chosen);
  },
  async drop({ page }, { files }) {
    return page.evaluate(dropped, files);
  },
  async see({ page }, { at, text = '' }) {
    const found = page.locator(at).filter({ hasText: text }).first();
    await found.waitFor({ state: 'visible' });
    return found.innerText();
  },
  async gone({ page }, { at, text = '' }) {
    await page.locator(at).filter({ hasText: text }).waitFor({ state: 'hidden' });
  },
  async where({ page }, { url }) {
    await page.waitForURL((now) => now.href.startsWith(url));
    return page.url();
  },
  async value({ page }, { at }) {
    return page.locator(at).inputValue();
  },
  async run({ page }, { script }) {
    return page.evaluate(script);
  },
  async shot({ page }, { path }) {
    await page.screenshot({ path });
  },
  async trouble(person) {
    return person.trouble.splice(0);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { deed, who, ...more } = JSON.parse(line);
  let told;
  try {
    told = { ok: (await deeds[deed](people.get(who), more)) ?? null };
  } catch (error) {
    const page = people.get(who)?.page;
    const shown = page ? await page.locator('body').innerText({ timeout: 1000 }).catch(() => '') : '';
    told = { failed: `${error.message}\nat ${page?.url()}:\n${shown.slice(0, 2000)}` };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
await browser.close();
