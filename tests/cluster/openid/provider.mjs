// An OpenID provider for local clusters and tests: `oidc-provider` with the users and clients of two files.
//
// ISSUER    its public address, such as https://id.localhost
// AUDIENCE  who its access tokens are for; they are JWTs
// CONFIG    folder with users.json and clients.json (see the examples beside the manifests); keys.json there, a set of
//           private keys, replaces the key that is made at each start
// HOST      address to listen on, all by default
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Provider } from 'oidc-provider';

const { ISSUER: issuer, AUDIENCE: audience, CONFIG: config = '/etc/openid', HOST: host, PORT: port = '8080' } =
  process.env;
const read = (name) => JSON.parse(readFileSync(`${config}/${name}`, 'utf8'));
const users = read('users.json');
const fresh = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const jwks = existsSync(`${config}/keys.json`)
  ? read('keys.json') : { keys: [{ ...fresh(), use: 'sig', alg: 'RS256', kid: 'sites-test' }] };

const claims = (name) => {
  const { password, ...known } = users[name];
  return { sub: name, preferred_username: name, email_verified: true, ...known };
};
const has = (name) => Object.hasOwn(users, name);

const provider = new Provider(issuer, {
  clients: read('clients.json'),
  jwks,
  cookies: { keys: [randomBytes(32).toString('hex')] },
  scopes: ['openid', 'offline_access', 'email', 'profile', 'groups'],
  claims: {
    openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'], groups: ['groups'],
  },
  // Everything in the ID token: readers that never ask for more still know the groups.
  conformIdTokenClaims: false,
  pkce: { required: () => false },
  ttl: { AccessToken: 3600, ClientCredentials: 3600, IdToken: 3600, Session: 43200, Grant: 43200, Interaction: 3600 },
  findAccount: (_ctx, name) => (has(name) ? { accountId: name, claims: () => claims(name) } : undefined),
  extraTokenClaims: (_ctx, token) => (token.accountId && has(token.accountId) ? claims(token.accountId) : undefined),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
    rpInitiatedLogout: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => `urn:sites:${audience}`,
      useGrantedResource: () => true,
      // Who asks for `…:opaque` gets a token that only the provider can read.
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'openid email profile groups', audience, accessTokenTTL: 3600,
        accessTokenFormat: resource.endsWith(':opaque') ? 'opaque' : 'jwt',
      }),
    },
  },
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  // Nobody is asked to consent.
  async loadExistingGrant(ctx) {
    const { client, session, params } = ctx.oidc;
    const known = ctx.oidc.result?.consent?.grantId ?? session.grantIdFor(client.clientId);
    if (known) return provider.Grant.find(known);
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    const scope = params.scope ?? 'openid';
    grant.addOIDCScope(scope);
    grant.addResourceScope(`urn:sites:${audience}`, scope);
    await grant.save();
    return grant;
  },
  renderError(ctx, out) {
    ctx.type = 'json';
    ctx.body = out;
  },
});
provider.proxy = true;

const page = (uid, message) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in</title>
<body style="font-family: sans-serif; max-width: 20em; margin: 4em auto">
<h1>Log in</h1><p role="alert">${message}</p>
<form method="post" action="/interaction/${uid}">
<p><label>Name <input name="name" autocomplete="username" autofocus></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password"></label></p>
<p><button>Log in</button></p>
</form></body></html>`;

const body = async (request) => {
  let text = '';
  for await (const piece of request) {
    text += piece;
    if (text.length > 10_000) throw new Error('too long');
  }
  return new URLSearchParams(text);
};

provider.use(async (ctx, next) => {
  if (ctx.path === '/healthz') {
    ctx.body = 'ok\n';
    return;
  }
  if (!ctx.path.startsWith('/interaction/')) {
    await next();
    return;
  }
  const { uid, prompt } = await provider.interactionDetails(ctx.req, ctx.res);
  ctx.type = 'html';
  if (prompt.name !== 'login' || ctx.method !== 'POST') {
    ctx.body = page(uid, '');
    return;
  }
  const form = await body(ctx.req);
  const name = form.get('name') ?? '';
  if (!has(name) || users[name].password !== form.get('password')) {
    ctx.status = 403;
    ctx.body = page(uid, 'Wrong name or password.');
    return;
  }
  const returnTo = await provider.interactionResult(ctx.req, ctx.res, { login: { accountId: name } });
  ctx.redirect(returnTo);
});

provider.on('server_error', (_ctx, error) => console.error(error));
provider.listen(Number(port), host, () => console.log(`OpenID provider ${issuer} on port ${port}`));
