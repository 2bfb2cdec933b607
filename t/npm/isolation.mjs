/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Callers of both eras who do things at random, at a server with sessions that
 * knows by whose headers each was begun:
 *
 *   node isolation.mjs PORT MASTER_PID UPSTREAM_PORT SEED SECONDS
 */

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { HEADERS, Session, check, done, once, random, until,
         workers } from './session.mjs';


const [port, master, upPort, seed, seconds] = process.argv.slice(2)
    .map(Number);
const { below, chance, one } = random(seed);

const slow = Number(process.env.MCP_SLOW || 1);

const PREFIX = 'io.modelcontextprotocol/';
const TELLING = ['x-tenant', 'x-user', 'authorization', 'cookie', 'x-api-key'];

const faults = [];
const counts = {};

const fault = (...what) => faults.push(what.join(' '));
const count = (what) => { counts[what] = (counts[what] ?? 0) + 1; };


/* by its headers alone the server knows who asks */

const who = (headers) => TELLING.map((name) => headers[name] ?? '-').join();


/* the server: sessions by their ids, { owner, waiting: id => resolve } */

const sessions = new Map();
const FORM = { message: 'Who?', requestedSchema: { type: 'object',
                                                   properties: {} } };

const says = (text) => ({ content: [{ type: 'text', text }] });


async function tool(s, res, { name, arguments: args }) {
    if (name === 'who') {
        return says(s.owner);
    }

    const id = randomUUID();
    const answer = new Promise((resolve) => s.waiting.set(id, resolve));

    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write(`data: ${JSON.stringify({
        jsonrpc: '2.0', id, method: 'elicitation/create',
        params: { ...FORM, message: args.mark }
    })}\n\n`);

    return says(`${s.owner} ${(await answer).content?.mark}`);
}


const server = http.createServer(async (req, res) => {
    let text = '';

    for await (const part of req) {
        text += part;
    }

    const owner = who(req.headers);
    let sid = req.headers['mcp-session-id'];
    const s = sessions.get(sid);

    /* a session that is ended by the module itself has no client any more */

    if (req.method === 'DELETE') {
        sessions.delete(sid);
        return res.end();
    }

    if (req.method !== 'POST') {
        res.writeHead(405);
        return res.end();
    }

    const m = JSON.parse(text);
    let result;

    if (m.method === 'initialize') {
        sid = randomUUID();
        sessions.set(sid, { owner, waiting: new Map(), at: Date.now() });
        res.setHeader('Mcp-Session-Id', sid);
        count('begun');

        result = { protocolVersion: m.params.protocolVersion,
                   capabilities: { tools: {} },
                   serverInfo: { name: 'isolation', version: '1' } };

    } else if (!s) {
        res.writeHead(404);
        return res.end();

    } else if (s.owner !== owner) {
        fault(`the session of ${s.owner} serves ${owner}:`, text);
    }

    if (m.method === undefined) {
        s.waiting.get(m.id)?.(m.result ?? {});
    }

    if (m.id === undefined || m.method === undefined) {
        res.writeHead(202);
        return res.end();
    }

    if (m.method === 'tools/call') {
        result = await tool(s, res, m.params);
    }

    const answer = JSON.stringify({
        jsonrpc: '2.0', id: m.id,
        ...result ? { result } : { error: { code: -32601, message: 'no' } }
    });

    if (res.headersSent) {
        res.end(`data: ${answer}\n\n`);
    } else {
        res.setHeader('Content-Type', 'application/json');
        res.end(answer);
    }
});

await new Promise((resolve) => server.listen(upPort, '127.0.0.1', resolve));


/* callers; a reload or a kill may cut what runs */

let disturbed = 0;
let last = 0;

const callers = Array.from({ length: 40 }, (_, n) => ({
    n, path: one(['/bound', '/bound', '/other', '/plain']),
    headers: {
        'x-tenant': one(['acme', 'globex']), 'x-user': one(['ann', 'bob']),
        ...chance(0.7) && { authorization: `Bearer ${below(3)}` },
        ...chance(0.3) && { cookie: `c=${below(2)}` },
        ...chance(0.3) && { 'x-api-key': `${below(2)}` }
    }
}));

const parked = [];
const used = [];


async function modern(c, params) {
    const body = JSON.stringify({
        jsonrpc: '2.0', id: 1, method: 'tools/call', params: {
            ...params, _meta: {
                [`${PREFIX}protocolVersion`]: '2026-07-28',
                [`${PREFIX}clientCapabilities`]: { elicitation: { form: {} } }
            }
        }
    });

    const r = await once(port, 'POST', c.path, {
        ...HEADERS, ...c.headers, 'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'tools/call', 'Mcp-Name': params.name
    }, body);

    const lines = r.text.split('\n').filter((l) => /^data: ?\{/.test(l));
    const text = lines.length ? lines.at(-1).replace(/^data: ?/, '') : r.text;

    return { status: r.status, ...JSON.parse(text) };
}


const textOf = (r) => r.result?.content?.[0]?.text;

/* where nothing says who they are, all that may tell does */

const same = (a, b) => a.path === b.path
    && (a.path === '/plain' ? TELLING : ['x-tenant', 'x-user'])
        .every((name) => a.headers[name] === b.headers[name]);


/* the request of p, with other things */

const come = (p, c, params = {}) => modern(c, {
    name: 'ask', arguments: { mark: p.mark }, requestState: p.state,
    inputResponses: { [p.key]: { action: 'accept',
                                 content: { mark: `yes ${p.mark}` } } },
    ...params
});


function refused(r, what, p, c) {
    if (r.status !== 400 || r.error?.code !== -32602) {
        fault(`${what}: ${r.status} ${JSON.stringify(r)}, of`,
              who(p.caller.headers), p.caller.path, 'by', who(c.headers),
              c.path);
    }
}


function spoilt(state) {
    const at = below(state.length - 1);
    const other = one([...'ABCDabcd0123_-'].filter((x) => x !== state[at]));

    return one([
        () => state.slice(0, at) + other + state.slice(at + 1),
        () => state.slice(0, at), () => `${state}A`, () => `A${state}`,
        () => state + state, () => ''
    ])();
}


const deeds = {
    async who(c) {
        const r = await modern(c, { name: 'who', arguments: {} });

        if (textOf(r) !== who(c.headers)) {
            fault(`modern ${who(c.headers)}: ${JSON.stringify(r)}`);
        }
    },

    async legacy(c) {
        if (!c.session) {
            const s = new Session({ port, path: c.path, headers: c.headers });

            await s.begin();
            c.session = s;
        }

        const text = (await c.session.call('tools/call', {
            name: 'who', arguments: {}
        })).content[0].text;

        if (text !== who(c.headers)) {
            fault(`legacy ${who(c.headers)}: ${text}`);
        }
    },

    async ask(c) {
        const mark = randomUUID();
        const since = disturbed;
        const r = await modern(c, { name: 'ask', arguments: { mark } });

        if (r.result?.resultType !== 'input_required') {
            fault(`not asked: ${r.status} ${JSON.stringify(r)}`);
            return;
        }

        const [[key, asked]] = Object.entries(r.result.inputRequests);

        if (asked.params.message !== mark) {
            fault(`asked for ${asked.params.message}, not ${mark}`);
        }

        parked.push({ caller: c, mark, key, since,
                      state: r.result.requestState });
    },

    async answer() {
        const p = parked.shift();

        if (!p) {
            return deeds.ask(one(callers));
        }

        const r = await come(p, p.caller);

        used.push(p);

        if (textOf(r) !== `${who(p.caller.headers)} yes ${p.mark}`
            && (p.since === disturbed || !r.error))
        {
            fault(`answered ${r.status} ${JSON.stringify(r)}, not to`,
                  who(p.caller.headers));
        }
    },

    async steal(c) {
        const p = parked.length && one(parked);

        if (p && !same(c, p.caller)) {
            refused(await come(p, c), 'stolen', p, c);
        }
    },

    async tamper() {
        const p = parked.length && one(parked);

        if (p) {
            refused(await come(p, p.caller, {
                requestState: spoilt(p.state)
            }), 'tampered', p, p.caller);
        }
    },

    async divert() {
        const p = parked.length && one(parked);

        if (p) {
            refused(await come(p, p.caller, chance(0.5)
                ? { arguments: { mark: randomUUID() } } : { name: 'who' }),
                    'diverted', p, p.caller);
        }
    },

    async replay() {
        const p = used.length && one(used);

        if (p) {
            refused(await come(p, p.caller), 'replayed', p, p.caller);
        }
    },

    async forget() {
        for (const [id, s] of sessions) {
            if (chance(0.01) && s.waiting.size === 0
                && Date.now() - s.at > 500)
            {
                sessions.delete(id);
            }
        }
    }
};


const names = Object.keys(deeds);
const end = Date.now() + seconds * 1000;

async function act() {
    while (Date.now() < end && faults.length < 20) {
        const name = one(names);
        const before = disturbed;

        try {
            await deeds[name](one(callers));
            count(name);

        } catch (e) {
            /* the connection, or what ran on it */
            count('cut');

            if (before === disturbed && Date.now() - last > 3000 * slow) {
                fault(`${name}: ${e.stack}`);
            }
        }
    }
}


async function disturb() {
    while (Date.now() < end) {
        await sleep(1200);
        disturbed++;
        last = Date.now();

        if (chance(0.5)) {
            process.kill(master, 'SIGHUP');
            count('reload');
        } else {
            process.kill(one(workers(master)), 'SIGKILL');
            count('kill');
        }
    }
}


await Promise.all([disturb(), ...Array.from({ length: 12 }, act)]);

check(faults.length === 0, 'nobody gets what is not theirs',
      [faults.length, ...faults.slice(0, 6)]);
check(names.every((name) => counts[name] > 0), 'all was tried', counts);

const legacy = callers.find((c) => c.session);

check(await until(async () => await legacy.session.answers(), 10),
      'and nginx serves');

console.log(`# ${JSON.stringify(counts)}`);
done();
