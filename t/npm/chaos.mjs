/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Clients on HTTP/2, and over TLS, that do many things at once and break off:
 * one stream, or the connection with all of them.
 *
 * chaos.mjs HTTP2_PORT TLS_PORT SECONDS SEED
 *
 * At the end it says how many sessions may be left.
 */

import http2 from 'node:http2';
import https from 'node:https';

const [port, tls, seconds, seed] = process.argv.slice(2);
const end = Date.now() + seconds * 1000;

let dice = Number(seed) || 1;

function rand(n) {
    dice = (Math.imul(dice, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor(dice / 2147483648 * n);
}

const pick = (...all) => all[rand(all.length)];
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));


const agent = new https.Agent({ keepAlive: true });

let begun = 0;
let asked = 0;
const sessions = [];


function connect() {
    const c = http2.connect(`http://127.0.0.1:${port}`, {
        settings: { initialWindowSize: pick(1024, 65535, 65535) } });

    c.on('error', () => {});
    return c;
}


/* what came, or null when it was broken off */

function ask(c, ...what) {
    asked++;
    return c ? askHttp2(c, ...what) : askTls(...what);
}


function askTls(method, path, headers, body, patience) {
    return new Promise((resolve) => {
        let timer, text = '';

        const over = (r) => { clearTimeout(timer); resolve(r); };

        const s = https.request({ path, method, headers,
                                  host: '127.0.0.1', port: tls,
                                  agent: rand(3) ? agent : false,
                                  rejectUnauthorized: false }, (r) => {
            r.on('data', (d) => { text = (text + d).slice(0, 1e6); });
            r.on('error', () => over(null));
            r.on('end', () => over({ text, head: {
                ...r.headers, ':status': r.statusCode } }));
        });

        s.on('error', () => over(null));
        s.on('close', () => over(null));

        if (patience !== undefined) {
            timer = setTimeout(() => s.destroy(), patience);
        }

        s.end(body);
    });
}


function askHttp2(c, method, path, headers, body, patience) {
    return new Promise((resolve) => {
        let s, timer, text = '', head = null;

        try {
            s = c.request({ ':method': method, ':path': path, ...headers },
                          { endStream: body === undefined });
        } catch {
            resolve(null);
            return;
        }

        const over = (r) => { clearTimeout(timer); resolve(r); };

        s.on('response', (h) => { head = h; });
        s.on('data', (d) => {
            text += d;
            if (text.length > 1e6) {
                text = '';
            }
        });
        s.on('error', () => {});
        s.on('close', () => over(head && s.rstCode === 0 ? { head, text }
                                                         : null));

        if (patience !== undefined) {
            timer = setTimeout(() => {
                s.close(http2.constants.NGHTTP2_CANCEL);
            }, patience);
        }

        if (rand(20) === 0) {
            s.pause();
            setTimeout(() => s.resume(), rand(300));
        }

        if (body !== undefined) {
            s.end(body);
        }
    });
}


function headers(s, accept) {
    const h = { accept: accept || 'application/json, text/event-stream',
                'content-type': 'application/json' };

    if (s.id) {
        h['mcp-session-id'] = s.id;
    }

    h['x-tenant'] = s.tenant;
    return h;
}


async function begin(c) {
    const s = { path: pick('/mcp', '/shaky', '/rpc', '/none'), n: 1,
                tenant: String(rand(3)) };

    begun++;

    const r = await ask(c, 'POST', s.path, headers(s), JSON.stringify({
        jsonrpc: '2.0', id: 0, method: 'initialize', params: {
            protocolVersion: '2025-11-25', capabilities: {},
            clientInfo: { name: 'h2', version: '1' } } }), 4000);

    if (r) {
        begun--;
    }

    if (r && r.head['mcp-session-id']) {
        s.id = r.head['mcp-session-id'];
        sessions.push(s);
    }
}


function message(s) {
    const name = pick('json', 'sse', 'slow', 'drip', 'big', 'large', 'cut',
                      'poll', 'other', 'wait_for_event', 'burst', 'open');

    return JSON.stringify(pick(
        { method: 'tools/call', params: { name, arguments: { topic: 'x' } } },
        { method: 'tools/call', params: { name, arguments: { topic: 'x' } } },
        { method: 'tools/list', params: {} },
        { method: 'resources/subscribe', params: { uri: 'file:///1' } },
        { method: 'logging/setLevel', params: { level: 'info' } },
        { method: 'resources/read', params: { uri: 'events://x/latest' } },
    )).replace('{', `{"jsonrpc":"2.0","id":${s.n++},`);
}


async function play(overTls) {
    let c = overTls ? null : connect();

    while (Date.now() < end) {
        const s = pick(...sessions);

        if (c && (c.destroyed || c.closed)) {
            c = connect();
        }

        if (!s || (sessions.length < 4 && rand(10) === 0)) {
            await begin(c);

        } else if (rand(4) === 0) {
            ask(c, 'GET', s.path, headers(s, 'text/event-stream'), undefined,
                pick(10, 300, 2000));

        } else if (rand(12) === 0) {
            const i = sessions.indexOf(s);
            ask(c, 'DELETE', s.path, headers(s), undefined, 3000);
            gone.push(...sessions.splice(i, 1));

        } else {
            ask(c, 'POST', s.path, headers(s), message(s),
                pick(undefined, 5, 100, 1000));
        }

        if (c && rand(30) === 0) {
            pick(() => c.destroy(), () => c.close())();
        }

        await sleep(rand(20));
    }

    c?.destroy();
}


const gone = [];

await Promise.all([play(), play(), play(true)]);

const last = Date.now() + 15000 * Number(process.env.MCP_SLOW || 1);

for (const s of [...sessions, ...gone]) {
    while (Date.now() < last) {
        const c = connect();
        const r = await ask(c, 'DELETE', s.path, headers(s), undefined, 3000);

        c.destroy();

        if (r && (r.head[':status'] === 200 || r.head[':status'] === 404)) {
            break;
        }
    }
}

console.log(`${begun} ` + 'other '.repeat(asked));
process.exit(0);
