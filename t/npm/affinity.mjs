/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * SDK clients that call all the time, each with a session of its own (those of
 * 2026-07-28 share one that the module makes, each by its token), at replicas
 * of which one restarts and one goes:
 *
 *   node affinity.mjs PORT MASTER_PID SERVERS_FILE REPLICA_PORT...
 */

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 }
    from '@modelcontextprotocol/client';

import { check, done, same, until } from './checks.mjs';
import { workers } from './session.mjs';


const [port, master, file, ...ports] = process.argv.slice(2);
const url = new URL(`http://127.0.0.1:${port}/mcp`);
const running = new Map();

process.on('exit', () => running.forEach((p) => p.kill('SIGKILL')));


const listening = (p) => new Promise((resolve) => {
    const s = net.connect(Number(p), '127.0.0.1');

    s.on('connect', () => { s.destroy(); resolve(true); });
    s.on('error', () => resolve(false));
});


async function up(p) {
    running.set(p, spawn(process.execPath, ['fixture-server.mjs', p, 'legacy',
                                            './pairs-parts.mjs'],
                         { stdio: 'ignore' }));
    await until(() => listening(p));
}


async function down(p) {
    running.get(p).kill('SIGKILL');
    await until(async () => !await listening(p));
}


/* calls one after another; calls: { at, end, where, n, error } */

class Caller {
    constructor(kind, n) {
        Object.assign(this, { kind, name: `${kind} ${n}`, calls: [] });
    }

    async connect() {
        const info = { name: this.name, version: '1' };
        const headers = { Authorization: `Bearer ${this.name}` };
        const options = { requestInit: { headers } };

        if (this.kind === 'v1') {
            this.sdk = new Client1(info, {});
            await this.sdk.connect(new Transport1(url, options));
            return;
        }

        this.sdk = new Client2(info, { versionNegotiation: {
            mode: this.kind === 'v2' ? 'legacy' : { pin: '2026-07-28' }
        } });
        await this.sdk.connect(new Transport2(url, options));
    }

    async work() {
        while (!this.stop) {
            const call = { at: Date.now() };

            try {
                const r = await this.sdk.callTool({ name: 'where',
                                                    arguments: {} });
                const [where, n] = r.content[0].text.split(' ');

                Object.assign(call, { where, n: Number(n) });

            } catch (e) {
                call.error = `${e.message} ${e.cause?.message ?? ''}`;
            }

            call.end = Date.now();
            this.calls.push(call);
        }
    }

    since(at) {
        return this.calls.filter((c) => c.at > at);
    }

    last() {
        return this.calls.at(-1);
    }
}


/* each has made some more calls */

async function more(n = 5) {
    const from = callers.map((c) => c.calls.length);

    return await until(() => callers.every(
        (c, i) => c.calls.length >= from[i] + n));
}


/* a call that was running may fail; a reload closes idle connections */

function errors(from, to, wanted) {
    const wrong = callers.flatMap((c) => c.since(from)
        .filter((call) => call.error && !(call.at <= to
                                          && wanted.test(call.error)))
        .map((call) => `${c.name} at ${call.at - from}: ${call.error}`));

    return wrong;
}


const kinds = ['v1', 'v2', 'modern'];
const callers = kinds.flatMap((kind) => [1, 2, 3, 4, 5].map(
    (n) => new Caller(kind, n)));

await Promise.all(ports.map(up));
await Promise.all(callers.map((c) => c.connect()));

const work = callers.map((c) => c.work());
const began = Date.now() - 1000;

await more(10);

check(callers.every((c) => new Set(c.calls.map((x) => x.where)).size === 1),
      'all calls of a session go to one replica',
      callers.map((c) => [c.name, ...new Set(c.calls.map((x) => x.where))]));
check(callers.every((c) => c.calls.every((x, i) => x.n === i + 1)),
      'in one session there');
check(new Set(callers.map((c) => c.last().where)).size === 3,
      'all replicas have some');
same(errors(began, 0), [], 'and none fails');


/* the replica of the first caller restarts */

const first = callers[0].last().where;
const others = callers.filter((c) => c.last().where !== first);
const killed = Date.now();

await down(first);

const gone = Date.now();

check(await more(), 'all go on while one is down');
await up(first);
check(await more(), 'and once it is back');

same(errors(killed - 1000, gone, /./), [], 'only running calls have failed');
check(others.every((c) => c.calls.every((x, i) => x.error
                                                  || x.n === i + 1)),
      'sessions at the other replicas stay');


/* another one leaves the configuration, and then stops */

const second = others[0].last().where;
const stay = others.filter((c) => c.last().where !== second);
const before = workers(master);
const reload = Date.now();

fs.writeFileSync(file, ports.filter((p) => p !== second)
    .map((p) => `server 127.0.0.1:${p};\n`).join(''));
process.kill(Number(master), 'SIGHUP');

await until(() => workers(master).every((w) => !before.includes(w)));
await more(2);

const after = Date.now();

await down(second);
check(await more(), 'all go on without the one that was removed');

same(errors(reload, after, /fetch failed/), [],
     'no call has failed that had reached a worker');
same(errors(after, 0), [], 'and none since');
check(callers.every((c) => c.since(after).every((x) => x.where !== second)),
      'nobody asks it any more');
check(stay.length > 0 && stay.every((c) => c.calls.every(
          (x, i) => x.error || x.where === c.calls[0].where)),
      'sessions at others stay where they were');

callers.forEach((c) => { c.stop = true; });
await Promise.all(work);
await Promise.all(callers.map((c) => c.sdk.close()));
done();
