/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Many listeners of 2026-07-28, and some sessions, of two tenants; events of
 * several kinds for one of them or both, one after another, while nginx
 * reloads and workers die.
 *
 * On a stream of a listener a part of the events has to arrive, without a gap,
 * from the first one that was published after its acknowledgement to the last
 * one before its end; none comes on two streams. Sessions get all in order.
 *
 * listen_storm.mjs PORT MASTER_PID LISTENERS EVENTS
 */

import http from 'node:http';

import { HEADERS, Session, check, done, request, until,
         workers } from './session.mjs';


const [port, master, listeners, events] = process.argv.slice(2).map(Number);

const PREFIX = 'io.modelcontextprotocol/';
const TENANTS = ['acme', 'globex'];
const URI = 'file:///r';
const topic = (n) => `topic${n % 5}`;
const latest = (name) => `events://${name}/latest`;
const URIS = [URI, ...[0, 1, 2, 3, 4].map((n) => latest(topic(n)))];


/* of each tenant, and the number of the last event of a topic */

const expectations = { acme: [], globex: [] };
const last = { acme: 0, globex: 0 };


/* the n-th event, and how it is known */

function make(n) {
    switch (n % 3) {
    case 0:
        return [{ topic: topic(n), n }, latest(topic(n))];
    case 1:
        return [{ jsonrpc: '2.0', method: 'notifications/resources/updated',
                  params: { uri: URI, n } }, `${URI} ${n}`];
    default:
        return [{ jsonrpc: '2.0', method: 'notifications/tools/list_changed',
                  params: { n } }, `tools ${n}`];
    }
}


function known(m) {
    const p = m.params;

    return m.method === 'notifications/tools/list_changed' ? `tools ${p.n}`
           : p.uri === URI ? `${URI} ${p.n}` : p.uri;
}


/* the place of seen among what is expected, or -1 */

function place(expected, seen, from) {
    for (let i = from; i + seen.length <= expected.length; i++) {
        if (seen.every((key, j) => key === expected[i + j])) {
            return i;
        }
    }

    return -1;
}


function modern(tenant, method, params) {
    return {
        headers: { ...HEADERS, 'X-Tenant': tenant, 'Mcp-Method': method,
                   'MCP-Protocol-Version': '2026-07-28',
                   ...params.uri && { 'Mcp-Name': params.uri } },
        body: (id) => JSON.stringify({
            jsonrpc: '2.0', id, method, params: { ...params, _meta: {
                [`${PREFIX}protocolVersion`]: '2026-07-28',
                [`${PREFIX}clientCapabilities`]: {}
            } }
        })
    };
}


/* streams: { first, seen, end }: events before its acknowledgement, and how */

class Listener {
    constructor(n) {
        Object.assign(this, { n, streams: [], wrong: [],
                              tenant: TENANTS[n % 2] });
        this.expected = expectations[this.tenant];
    }

    listen() {
        const { headers, body } = modern(this.tenant,
                                         'subscriptions/listen', {
            notifications: { toolsListChanged: true,
                             resourceSubscriptions: URIS }
        });
        const s = { id: `${this.n}/${this.streams.length}`, seen: [] };
        let over = false;

        const end = (how) => {
            if (over) {
                return;
            }
            over = true;
            s.end ??= how;
            if (!this.ended) {
                setTimeout(() => this.listen(), 20);
            }
        };

        const req = http.request({ host: '127.0.0.1', port, method: 'POST',
                                   path: '/mcp', headers, agent: false },
                                 (res) => {
            let text = '';

            if (res.statusCode !== 200) {
                this.wrong.push(`status ${res.statusCode}`);
            }

            res.setEncoding('utf8');
            res.on('data', (d) => {
                text += d;
                for (let i; (i = text.indexOf('\n\n')) !== -1;) {
                    const data = /^data: ?(.+)$/m.exec(text.slice(0, i));
                    text = text.slice(i + 2);
                    if (data) {
                        this.message(s, JSON.parse(data[1]));
                    }
                }
            });
            res.on('end', () => end('cut'));
            res.on('error', () => end('cut'));
        });

        req.on('error', () => end('refused'));
        req.end(body(s.id));
        this.req = req;
        this.streams.push(s);
    }

    message(s, m) {
        const id = m.result ? m.id
                   : m.params?._meta?.[`${PREFIX}subscriptionId`];

        if (id !== s.id) {
            this.wrong.push(`the id ${id} on the stream ${s.id}`);
        }

        if (m.result) {
            s.end = 'graceful';

        } else if (m.method.endsWith('/acknowledged')) {
            s.first = this.expected.length;
            this.caughtUp();

        } else if (s.first === undefined) {
            this.wrong.push(`${m.method} before the acknowledgement`);

        } else {
            s.seen.push(known(m));
        }
    }

    /* what came meanwhile is in the topics */

    async caughtUp() {
        if (this.n % 15 || this.streams.length === 1) {
            return;
        }

        const uri = latest(topic(0));
        const published = last[this.tenant];
        const { headers, body } = modern(this.tenant, 'resources/read',
                                         { uri });
        const r = JSON.parse((await request(port, 'POST', '/mcp', headers,
                                            body('read'))).text);

        if (published) {
            const read = JSON.parse(r.result.contents[0].text).events.at(-1);

            if (!(read.event.n >= published)) {
                this.wrong.push(`read ${read.event.n}, not ${published}`);
            }
        }

        this.read = true;
    }

    get current() {
        return this.streams.at(-1);
    }

    /* each stream by itself, and all together */

    settle() {
        let from = 0;

        for (const s of this.streams.filter((x) => x.first !== undefined)) {
            const at = s.seen.length ? place(this.expected, s.seen, from)
                                     : from;

            if (at === -1) {
                this.wrong.push(`${s.id}: a gap, or twice: from ${s.first}, `
                                + `${s.end}, ${s.seen.slice(0, 9)} …`);
                return;
            }

            if (s.seen.length && at > s.first) {
                this.wrong.push(`${s.id}: begins at ${at}, not ${s.first}`);
            }

            from = at + s.seen.length;
        }

        if (!this.current.end && from !== this.expected.length) {
            this.wrong.push(`ends with ${from} of ${this.expected.length}`);
        }
    }
}


class Reader extends Session {
    constructor(n) {
        super({ port, path: '/mcp', n, seen: [], gaps: 0,
                headers: { 'X-Tenant': TENANTS[n % 2] },
                expected: expectations[TENANTS[n % 2]] });
    }

    message(m) {
        this.seen.push(known(m));
    }

    lagged() {
        this.gaps++;
    }
}


const all = Array.from({ length: listeners }, (_, n) => new Listener(n));
const sessions = Array.from({ length: 30 }, (_, n) => new Reader(n));

for (let i = 0; i < all.length; i += 50) {
    all.slice(i, i + 50).forEach((l) => l.listen());
    await until(() => all.slice(i, i + 50)
        .every((l) => l.current.first !== undefined), 30);
}

await Promise.all(sessions.map(async (s) => {
    await s.begin();
    for (const uri of URIS) {
        await s.call('resources/subscribe', { uri });
    }
    await s.open();
}));

check(all.every((l) => l.current.first === 0), `${listeners} listen`);

const step = Math.floor(events / 9);
let published = 0;

for (let n = 1; n <= events; n++) {
    const [event, key] = make(n);

    const to = n % 7 < 2 ? TENANTS : [TENANTS[n % 7 % 2]];

    /* it may arrive before its publisher is answered */
    to.forEach((name) => expectations[name].push(key));

    const r = await request(port, 'POST', '/publish', {
        ...HEADERS, 'Idempotency-Key': `event ${n}`
    }, JSON.stringify({ ...event,
                        ...to.length === 1 && { tenant_id: to[0] } }));

    published += r.status === 202 ? 1 : 0;

    if (key === latest(topic(0))) {
        to.forEach((name) => { last[name] = n; });
    }

    if (n % step === 0 && n / step <= 8) {
        if (n / step % 2) {
            process.kill(master, 'SIGHUP');
        } else {
            const pids = workers(master);
            process.kill(pids[Math.floor(Math.random() * pids.length)],
                         'SIGKILL');
        }

        /* most are back when the next one comes */
        await until(() => all.every((l) => l.current.first !== undefined
                                           && !l.current.end), 0.5);
    }
}

check(published === events, `${events} events published`, published);

await until(() => all.every((l) => !l.current.end
                                   && l.current.first !== undefined), 30);

/* the last of all: whoever listens gets it */

Object.values(expectations).forEach((e) => e.push('tools last'));
await request(port, 'POST', '/publish', { ...HEADERS,
                                          'Idempotency-Key': 'last' },
              JSON.stringify({
    jsonrpc: '2.0', method: 'notifications/tools/list_changed',
    params: { n: 'last' }
}));

await until(() => all.every((l) => l.current.seen.at(-1) === 'tools last'),
            30);
await until(() => sessions.every((s) => s.seen.length >= s.expected.length),
            30);

all.forEach((l) => l.settle());

const wrong = all.filter((l) => l.wrong.length);
const ends = {};

all.flatMap((l) => l.streams).forEach((s) => {
    ends[s.end] = (ends[s.end] ?? 0) + 1;
});

check(wrong.length === 0, 'no gap on any stream, and nothing twice',
      [wrong.length, ...wrong.slice(0, 4).map((l) => [
          l.n, l.streams.length, ...l.wrong.slice(0, 3)])]);
check(all.every((l) => l.current.seen.at(-1) === 'tools last'),
      'all hear the last one');
check(ends.graceful > 0 && ends.cut > 0, 'streams ended in both ways', ends);
check(all.some((l) => l.read), 'what came meanwhile was read');

const lost = sessions.filter((s) => s.gaps || s.seen.join()
                                                !== s.expected.join());

check(lost.length === 0, 'the sessions got all, once and in order',
      lost.slice(0, 3).map((s) => {
          const i = s.seen.findIndex((key, j) => key !== s.expected[j]);

          return [s.n, s.gaps, s.seen.length, i,
                  ...s.seen.slice(Math.max(0, i - 2), i + 3)];
      }));

all.forEach((l) => { l.ended = true; l.req.destroy(); });
sessions.forEach((s) => s.close());

console.log(`# ${JSON.stringify(ends)}`);
done();
