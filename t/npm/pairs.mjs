/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * The same script for each client and each server of the table in pairs.t,
 * all at the same time at one nginx, which is reloaded and loses a worker on
 * the way:
 *
 *   node pairs.mjs PORT MASTER_PID RPC_PORT ROWS
 *
 * ROWS is JSON: [{ name, client, server, path, steps: [[NAME, CELL], ...] }].
 * A step says "+" if it was carried, else how it was refused, for which CELL
 * is a pattern; "s" expects that nothing is heard, "." leaves the step out.
 */

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import {
    Client as Client2, LOG_LEVEL_META_KEY,
    StreamableHTTPClientTransport as Transport2
} from '@modelcontextprotocol/client';

import { check, done, same, until } from './checks.mjs';
import { workers } from './session.mjs';


const [port, master, rpcPort] = process.argv.slice(2, 5).map(Number);
const rows = JSON.parse(process.argv[5]);
const base = `http://127.0.0.1:${port}`;

const CAPABILITIES = {
    sampling: {}, elicitation: { form: {} }, roots: { listChanged: true }
};

const ANSWERS = {
    'sampling/createMessage': () => ({
        model: 'm', role: 'assistant', stopReason: 'endTurn',
        content: { type: 'text', text: 'Paris' }
    }),

    'elicitation/create': () => ({
        action: 'accept',
        content: { name: 'Grace', integer: 7, check: true }
    }),

    'roots/list': () => ({ roots: [{ uri: 'file:///one', name: 'one' }] })
};

const textOf = (r) => r.content?.map((c) => c.text ?? '').join('\n') ?? '';


/* a plain HTTP handler, which knows nothing of MCP but some methods */

const marks = new Set();
const waiting = new Map();

const plain = {
    'tools/list': () => ({
        tools: ['echo', 'hold'].map((name) => ({
            name, description: name, inputSchema: { type: 'object' }
        }))
    }),

    'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
    'resources/list': () => ({ resources: [] }),

    'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'plain' }] }),

    'completion/complete': () => ({
        completion: { values: ['Grace'], total: 1, hasMore: false }
    }),

    'tools/call': async ({ name, arguments: { text, mark } }, res) => {
        if (name === 'hold') {
            text = await new Promise((resolve) => {
                waiting.set(mark, () => resolve('released'));
                res.on('close', () => resolve('cancelled'));
            });
            marks.add(`${mark} ${text}`);
        }

        return { content: [{ type: 'text', text }] };
    }
};

http.createServer(async (req, res) => {
    let text = '';

    for await (const part of req) {
        text += part;
    }

    const { id, method, params } = JSON.parse(text);
    const error = { code: -32601, message: 'Method not found' };
    const result = await plain[method]?.(params ?? {}, res);

    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ jsonrpc: '2.0', id,
                             ...result ? { result } : { error } }));
}).listen(rpcPort, '127.0.0.1');


/* a POST is repeated: a worker may die before it answers */

async function publish(event, id) {
    for (let i = 0; ; i++) {
        try {
            const r = await fetch(`${base}/publish`, {
                method: 'POST', body: JSON.stringify(event),
                headers: { 'Content-Type': 'application/json',
                           'Idempotency-Key': id }
            });

            if (r.status !== 202) {
                throw new Error(`publish: ${r.status} ${await r.text()}`);
            }
            return;

        } catch (e) {
            if (i === 20 || e.message !== 'fetch failed') {
                throw e;
            }
            await sleep(50);
        }
    }
}


/* what the clients of an endpoint are told of, by one of them after another */

const endpoints = new Map();

class Endpoint {
    constructor() {
        Object.assign(this, { pairs: [], told: 0, last: Promise.resolve() });
    }

    alone(run) {
        const next = this.last.then(run, run);

        this.last = next.catch(() => {});
        return next;
    }
}


class Pair {
    constructor(row, n) {
        Object.assign(this, row, { n, heard: [], errors: [], published: 0,
                                   steps: Object.fromEntries(row.steps),
                                   modern: row.client.startsWith('m') });
        this.uri = row.server === 'everything'
                   ? `demo://resource/dynamic/text/${n}` : `pairs://${n}`;
        this.topic = `pairs/${n}`;
        this.event = `event://${n}`;

        if (!endpoints.has(row.path)) {
            endpoints.set(row.path, new Endpoint());
        }
        this.endpoint = endpoints.get(row.path);
        this.endpoint.pairs.push(this);
    }

    count(method, match = () => true) {
        return this.heard.filter((h) => h.method === method
                                        && match(h.params ?? {})).length;
    }

    updates(uri) {
        return this.count('resources/updated', (p) => p.uri === uri);
    }

    async connect() {
        const url = new URL(base + this.path);
        const info = { name: this.name, version: '1' };

        if (this.client === 'l1') {
            this.sdk = new Client1(info, { capabilities: CAPABILITIES });
            this.transport = new Transport1(url);

        } else {
            this.sdk = new Client2(info, {
                capabilities: CAPABILITIES, versionNegotiation: { mode: {
                    l2: 'legacy', ma: 'auto', mp: { pin: '2026-07-28' }
                }[this.client] }
            });
            this.transport = new Transport2(url);
        }

        const schemas = {
            'sampling/createMessage': types.CreateMessageRequestSchema,
            'elicitation/create': types.ElicitRequestSchema,
            'roots/list': types.ListRootsRequestSchema,
            'message': types.LoggingMessageNotificationSchema,
            'tools/list_changed': types.ToolListChangedNotificationSchema,
            'prompts/list_changed': types.PromptListChangedNotificationSchema,
            'resources/list_changed':
                types.ResourceListChangedNotificationSchema,
            'resources/updated': types.ResourceUpdatedNotificationSchema
        };

        for (const [method, schema] of Object.entries(schemas)) {
            const first = this.client === 'l1';

            if (ANSWERS[method]) {
                this.sdk.setRequestHandler(first ? schema : method,
                                           async () => ANSWERS[method]());
                continue;
            }

            this.sdk.setNotificationHandler(
                first ? schema : `notifications/${method}`,
                (n) => { this.heard.push({ method, params: n.params }); });
        }

        this.sdk.onerror = (e) => this.errors.push(
            `${e.message} ${e.cause?.message ?? ''}`);

        await this.sdk.connect(this.transport);
        await this.listen();

        same(this.modern ? 'modern' : 'legacy',
             this.sdk.getProtocolEra?.() ?? 'legacy', `${this.name}: its era`);
        same(Boolean(this.transport.sessionId), !this.modern,
             `${this.name}: a session, or none`);
    }

    /* changes and updates, once for each connection of a modern client */

    async listen() {
        const uris = [this.uri, this.event, `events://${this.topic}/latest`];

        if (!this.modern) {
            for (const uri of this.subscribed ? [] : uris) {
                await this.sdk.subscribeResource({ uri });
            }
            this.subscribed = true;
            return;
        }

        if (this.listens) {
            return;
        }

        const filter = {
            toolsListChanged: true, promptsListChanged: true,
            resourcesListChanged: true, resourceSubscriptions: uris
        };

        const s = await again(() => this.sdk.listen(filter));

        this.listens = true;
        s.closed.then((how) => { this.listens = false; this.ended = how; });
        same(s.honoredFilter, filter, `${this.name}: acknowledged`);
    }

    call(name, args = {}, options = {}) {
        const { level, ...rest } = options;
        const params = { name, arguments: args };

        if (level && this.modern) {
            params._meta = { [LOG_LEVEL_META_KEY]: level };
        }

        return this.client === 'l1'
               ? this.sdk.callTool(params, undefined, rest)
               : this.sdk.callTool(params, rest);
    }
}


/* a connection that nginx closed, or whose worker died, is no answer */

async function again(fn) {
    for (let i = 0; ; i++) {
        try {
            return await fn();

        } catch (e) {
            const cut = /fetch failed|terminated|socket/.test(
                `${e.message} ${e.cause?.message}`);

            if (!cut || i === 20) {
                throw e;
            }
            await sleep(50);
        }
    }
}


const hears = (fn, ms) => until(fn, ms).then((ok) => ok ? '+' : 'not heard');


/* how an upstream says that it could not ask */

function answered(r, wanted) {
    const text = textOf(r);

    return !r.isError && wanted.test(text) ? '+' : `answer: ${text}`;
}


/* what a step does at each server: of server-everything, and of the others */

const ask = (tool, wanted) => (p, what) => p.server === 'everything'
    ? p.call(tool, what === 'sampling' ? { prompt: 'x', maxTokens: 9 } : {},
             p.steps[what] === '+' ? {} : { timeout: 2000 })
        .then((r) => answered(r, wanted))
    : p.call('ask', { what }).then((r) => answered(r, wanted));


async function echo(p) {
    const everything = p.server === 'everything';
    const r = await again(() => p.call('echo', everything
                                       ? { message: p.name }
                                       : { text: p.name }));

    return answered(r, new RegExp(p.name));
}


const steps = {
    async list(p) {
        const { tools } = await again(() => p.sdk.listTools());

        return tools.some((t) => t.name === 'echo') ? '+' : 'no echo';
    },

    call: echo,

    async progress(p) {
        const seen = [];

        /* the SDK itself tells of rounds, with a message */

        const options = { onprogress: ({ progress, message }) => {
            if (message === undefined) {
                seen.push(progress);
            }
        } };

        await (p.server === 'everything'
               ? p.call('trigger-long-running-operation',
                        { duration: 0.3, steps: 3 }, options)
               : p.call('steps', {}, options));

        return seen.join() === '1,2,3' ? '+' : `progress ${seen}`;
    },

    async log(p) {
        if (!p.modern) {
            await p.sdk.setLoggingLevel('warning');
        }

        if (p.server === 'everything') {
            if (!p.modern) {
                await p.sdk.setLoggingLevel('debug');
            }
            await p.call('toggle-simulated-logging', {},
                         { level: 'debug' });
            return p.steps.log === 'w' ? 'w'
                   : hears(() => p.count('message') > 0);
        }

        await p.call('log', {}, { level: 'warning' });

        const said = () => p.heard.filter((h) => h.method === 'message'
            && /^a message of/.test(h.params.data));

        await until(() => said().length >= 2);

        const levels = said().map((h) => h.params.level);

        return levels.join() === 'warning,error' ? '+' : `levels ${levels}`;
    },

    sampling: ask('trigger-sampling-request', /Paris/),
    elicit: ask('trigger-elicitation-request', /Grace/),
    roots: ask('get-roots-list', /file:\/\/\/one/),

    async complete(p) {
        const [name, argument] = p.server === 'everything'
            ? ['completable-prompt', { name: 'department', value: 'S' }]
            : ['greet', { name: 'who', value: 'G' }];
        const r = await p.sdk.complete({ ref: { type: 'ref/prompt', name },
                                         argument });

        return /^(Sales|Grace)/.test(r.completion.values[0]) ? '+' : 'none';
    },

    async read(p) {
        const r = await p.sdk.readResource({ uri: p.uri });

        return r.contents[0].uri === p.uri && r.contents[0].text
               ? '+' : 'nothing';
    },

    /* each client of the endpoint is told of the change, and of each once */

    changed: (p) => p.endpoint.alone(async () => {
        if (p.server === 'everything') {
            await p.call('gzip-file-as-resource', {
                name: `${p.n}.gz`, data: 'data:text/plain,hello'
            });
            return p.steps.changed === 's' ? 's'
                   : hears(() => p.count('resources/list_changed') > 0);
        }

        p.endpoint.told++;
        await p.call('grow', { name: `grown-${p.n}` });

        const { pairs, told } = p.endpoint;

        await until(() => pairs.every((q) =>
            q.count('tools/list_changed') >= told));

        const counts = pairs.map((q) => q.count('tools/list_changed'));

        if (counts.some((n) => n !== told)) {
            return `told ${counts} times, not ${told}`;
        }

        const { tools } = await p.sdk.listTools();

        return tools.some((t) => t.name === `grown-${p.n}`) ? '+'
               : 'not listed';
    }),

    async updated(p) {
        const n = p.updates(p.uri);

        if (p.server === 'everything') {
            await p.call('toggle-subscriber-updates');
        } else {
            await again(() => p.call('touch', { uri: p.uri }));
        }

        return p.steps.updated === 's' ? 's'
               : hears(() => p.updates(p.uri) > n);
    },

    /* a message is for clients with sessions alone */

    async publish(p) {
        const n = ++p.published;
        const message = (q) => q.data === `${p.event} ${n}`;

        await publish({ kind: 'index', path: p.event, n },
                      `${p.event} ${n}`);

        await until(() => p.updates(p.event) >= n
                          && (p.modern || p.count('message', message)));

        const got = [p.updates(p.event) >= n, p.count('message', message)];

        return got.join() === `true,${p.modern ? 0 : 1}` ? '+'
               : `heard ${got}`;
    },

    async topic(p) {
        const uri = `events://${p.topic}/latest`;

        await publish({ topic: p.topic, state: 'green' }, p.topic);

        if (!await until(() => p.updates(uri))) {
            return 'not heard';
        }

        const r = await p.sdk.readResource({ uri });

        return /green/.test(r.contents[0].text) ? '+' : 'not read';
    },

    async cancel(p) {
        const mark = `cancel-${p.n}`;
        const stop = new AbortController();
        const options = { signal: stop.signal,
                          onprogress: () => stop.abort() };

        const call = p.server === 'everything'
            ? p.call('trigger-long-running-operation',
                     { duration: 60, steps: 600 }, options)
            : p.call('hold', { mark }, options);

        if (p.server === 'rpc') {
            await until(() => waiting.has(mark));
            stop.abort();
        }

        if (await call.then(() => true, () => false)) {
            return 'it was answered';
        }

        if (p.server === 'everything') {
            return '+';
        }

        return hears(async () => (p.server === 'rpc' ? [...marks].join('\n')
            : textOf(await p.call('marks'))).includes(`${mark} cancelled`));
    }
};


async function run(p, name) {
    let got;

    try {
        got = await steps[name](p, { elicit: 'elicitation' }[name] ?? name);

    } catch (e) {
        got = `error ${e.code}: ${e.message}`;
    }

    const wanted = p.steps[name];

    check(wanted.length === 1 ? got === wanted : new RegExp(wanted).test(got),
          `${p.name}: ${name}`, { got, wanted, errors: p.errors });
}


/* a call that goes on over a reload */

async function hold(p) {
    const mark = `reload-${p.n}`;
    let running;

    const options = { onprogress: () => { running = true; } };

    const call = p.server === 'everything'
        ? p.call('trigger-long-running-operation', { duration: 3, steps: 30 },
                 options)
        : p.call('hold', { mark }, options);

    await until(() => running || waiting.has(mark));

    return async () => {
        if (p.server === 'rpc') {
            waiting.get(mark)();
        } else if (p.server !== 'everything') {
            await again(() => p.call('release', { mark }));
        }

        return answered(await call, /released|completed/);
    };
}


async function basics(p) {
    await p.listen();

    for (const name of ['list', 'call', 'updated', 'publish']) {
        if (p.steps[name] === '+'
            && !(name === 'updated' && p.server === 'everything'))
        {
            await run(p, name);
        }
    }
}


const each = (fn) => Promise.all(pairs.map(async (p) => {
    try {
        await fn(p);

    } catch (e) {
        check(false, `${p.name}: ${e.message}`, e.stack);
    }
}));

const pairs = rows.map((row, n) => new Pair(row, n + 1));

await each((p) => p.connect());

/* a topic that comes changes the list of resources */

function silent() {
    for (const p of pairs) {
        const none = (step, count) => p.steps[step] !== 's'
            || same(count(), 0, `${p.name}: ${step} is not heard`);

        none('changed', () => p.count('resources/list_changed'));
        none('updated', () => p.updates(p.uri));
    }
}


for (const name of Object.keys(steps)) {
    if (name === 'topic') {
        silent();
    }

    await each((p) => p.steps[name] === '.' ? null : run(p, name));
}


/* a reload: what runs goes on, listening ends with a result */

const running = await Promise.all(pairs.map(hold));
const before = workers(master);

process.kill(master, 'SIGHUP');

await until(() => workers(master).filter((w) => !before.includes(w)).length
                  >= 2);
await until(() => pairs.every((p) => !p.modern || !p.listens));

for (const p of pairs.filter((q) => q.modern)) {
    same(p.ended, 'graceful', `${p.name}: a reload ends its listening`);
}

await each(basics);
await each(async (p) => same(await running[p.n - 1](), '+',
                             `${p.name}: a call over the reload`));
await until(() => before.every((w) => !workers(master).includes(w)));


/* a worker dies: connections are cut, and nothing else */

const [victim] = workers(master);

process.kill(victim, 'SIGKILL');
await until(() => workers(master).length === 2
                  && !workers(master).includes(victim));

/* those that it served notice */

await until(async () => {
    const { listens } = await again(() => fetch(`${base}/status`)
                                    .then((r) => r.json()));

    return listens.open === pairs.filter((p) => p.listens).length;
});

await each(basics);

await each((p) => p.sdk.close());
done();
