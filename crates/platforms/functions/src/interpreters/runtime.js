// Node side of the /init and /run protocol on the inherited descriptor 3, with nothing but the standard library.
'use strict';
const http = require('http');
const END = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX\n';
const LARGEST_BODY = 72 << 20;
let main = null;

const explain = (why) => (why instanceof Error ? `${why.name}: ${why.message}` : String(why));

function load(value) {
  const code = value.code || '';
  const name = value.main || 'main';
  const module = { exports: {} };
  if (value.binary) return loadArchive(code, name);
  const path = require('path');
  const from = require('module').createRequire(path.join(process.cwd(), 'function.js'));
  const vm = require('vm');
  // The declared function of that name, or an export of that name.
  const tail = `\n;typeof ${name} === 'function' ? ${name} : exports[${JSON.stringify(name)}]`;
  const wrapped = `(function (exports, require, module) { return eval(${JSON.stringify(code + tail)}); })`;
  const found = vm.runInThisContext(wrapped, { filename: 'function.js' })(module.exports, from, module);
  return typeof found === 'function' ? found : module.exports[name];
}

function loadArchive(code, name) {
  const { mkdtempSync, writeFileSync } = require('fs');
  const { tmpdir } = require('os');
  const path = require('path');
  const folder = mkdtempSync(path.join(tmpdir(), 'function-'));
  const archive = path.join(folder, 'function.zip');
  writeFileSync(archive, Buffer.from(code, 'base64'));
  const unpacked = require('child_process').spawnSync('unzip', ['-q', archive, '-d', folder]);
  if (unpacked.status !== 0) throw new Error('the archive cannot be unpacked: is the program unzip installed?');
  return require(folder)[name];
}

async function init(request) {
  if (main) return [403, { error: 'this instance has a function already; /init comes once' }];
  const value = request.value || {};
  for (const [key, text] of Object.entries(value.env || {})) {
    process.env[key] = typeof text === 'string' ? text : JSON.stringify(text);
  }
  const name = value.main || 'main';
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) return [502, { error: `main is \`${name}\`, allowed is the name of a function` }];
  let found;
  try {
    found = load(value);
  } catch (why) {
    console.error(why);
    return [502, { error: `the code cannot be loaded: ${explain(why)}` }];
  }
  if (typeof found !== 'function') {
    return [502, { error: `the code has no function \`${name}\`; define it, export it or set main` }];
  }
  main = found;
  return [200, { ok: true }];
}

async function run(request) {
  if (!main) return [403, { error: '/run came before a successful /init' }];
  for (const [key, text] of Object.entries(request)) {
    if (key !== 'value') process.env[`__OW_${key.toUpperCase()}`] = typeof text === 'string' ? text : JSON.stringify(text);
  }
  try {
    const result = await main(request.value || {});
    if (result === undefined) return [200, {}];
    if (result === null || typeof result !== 'object') {
      return [502, { error: `the function returned ${result === null ? 'null' : typeof result}, allowed is an object or array` }];
    }
    if (result.error !== undefined && !Array.isArray(result)) return [502, result];
    JSON.stringify(result);
    return [200, result];
  } catch (why) {
    console.error(why);
    // OpenWhisk's convention: what a promise rejects with is the error itself.
    return [502, { error: why instanceof Error ? explain(why) : why ?? 'the function failed without a reason' }];
  } finally {
    process.stdout.write(END);
    process.stderr.write(END);
  }
}

async function answer(request, body) {
  const path = request.url.split('?')[0];
  if (path !== '/init' && path !== '/run') return [404, { error: 'this server has /init and /run' }];
  if (request.method !== 'POST') return [405, { error: 'only POST is understood here' }];
  let parsed;
  try {
    parsed = body.length ? JSON.parse(body) : {};
    if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('not a JSON object');
  } catch (why) {
    return [400, { error: `the body of ${path}: ${why.message}` }];
  }
  return path === '/init' ? init(parsed) : run(parsed);
}

const server = http.createServer((request, response) => {
  const pieces = [];
  let size = 0;
  request.on('data', (piece) => {
    size += piece.length;
    if (size <= LARGEST_BODY) pieces.push(piece);
  });
  request.on('end', async () => {
    const [status, result] = size > LARGEST_BODY
      ? [413, { error: `the body has ${size} bytes, allowed is ${LARGEST_BODY}` }]
      : await answer(request, Buffer.concat(pieces).toString());
    const text = Buffer.from(JSON.stringify(result));
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': text.length });
    response.end(text);
  });
});
// The platform decides how long a call and an idle connection may last.
server.requestTimeout = 0;
server.keepAliveTimeout = 0;
server.on('connection', (socket) => socket.setNoDelay(true));
if (process.env.LISTEN_FDS === '1') server.listen({ fd: 3 });
else server.listen(Number(process.env.PORT || 8080), '127.0.0.1');
