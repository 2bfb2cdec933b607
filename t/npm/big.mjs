/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Events of every kind and audience, published by several writers to many
 * sessions of two endpoints and eight tenants, while workers are reloaded and
 * killed and clients are cut off. For each event it is known which sessions
 * must see it, and every id is checked: nothing lost, nothing twice, nothing
 * to anybody else, in the order of each writer.
 *
 * big.mjs PORT MASTER_PID SESSIONS EVENTS SEED
 */

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { HEADERS, Session, check, done, once, random, until,
         workers } from './session.mjs';


const [port, master, sessions, events, seed] =
    process.argv.slice(2).map(Number);

const { chance, below, one, some } = random(seed);

const WRITERS = 4;
const ENDPOINTS = ['one', 'two'];
const LEVELS = ['debug', 'info', 'warning', 'error'];

const names = (prefix, n) => Array.from({ length: n }, (_, i) => prefix + i);

const tenants = names('tenant', 8);
const users = names('user', 5);
const uris = names('file:///r', 12);
const topics = names('topic/', 6);
const latest = (topic) => `events://${topic}/latest`;


/* what a notification says, and how often it came */

class Reader extends Session {
    constructor(n) {
        const endpoint = ENDPOINTS[n % 2];
        const tenant = tenants[(n >> 1) % tenants.length];
        const user = users[(n >> 4) % users.length];

        super({ port, path: `/${endpoint}`, n, endpoint, tenant, user,
                headers: { 'X-Tenant': tenant, 'X-User': user },
                level: one(LEVELS), gaps: [], last_of: [], wrong: [],
                seen: new Map() });
        this.uris = new Set([...some(uris, 3),
                             ...some(topics, 2).map(latest)]);
    }

    async prepare() {
        await this.begin();
        await this.call('logging/setLevel', { level: this.level });
        for (const uri of this.uris) {
            await this.call('resources/subscribe', { uri });
        }
    }

    message(m) {
        const p = m.params;
        let n = p?.n;
        let key;

        if (m.method === 'notifications/resources/updated'
            && n === undefined)
        {
            key = p.uri;

        } else {
            if (m.method === 'notifications/message') {
                n ??= p.data.n ?? Number(p.data);
            }
            key = `${m.method} ${n}`;
            this.ordered(n, m, p);
        }

        this.seen.set(key, (this.seen.get(key) ?? 0) + 1);
    }

    ordered(n, m, p) {
        const e = all_events[n];

        if (e === undefined) {
            this.wrong.push(`unknown ${JSON.stringify(m).slice(0, 200)}`);
            return;
        }
        if (e.seq < (this.last_of[e.writer] ?? 0) && !e.disordered) {
            this.wrong.push(`${n} after ${this.last_of[e.writer]}`);
        }
        this.last_of[e.writer] = Math.max(e.seq,
                                          this.last_of[e.writer] ?? 0);
        if (p.pad !== undefined && p.pad.length !== e.pad) {
            this.wrong.push(`${n} has ${p.pad.length} of ${e.pad} bytes`);
        }
        if (n === events) {
            this.finished = true;
        }
        if (below(this.patience) === 0) {
            this.cut();
        }
    }

    lagged(data) {
        this.gaps.push(data);
    }
}


/*
 * Event n: who it is for (what is undefined does not narrow) and what it turns
 * into at each endpoint, as [key, level, uri it is about].
 */

function make(n) {
    const e = { n };
    const dice = below(100);

    if (dice < 2) {
        /* all */
    } else if (dice < 17) {
        e.tenant = one(tenants);
    } else if (dice < 32) {
        e.tenant = one(tenants);
        e.endpoint = one(ENDPOINTS);
    } else if (dice < 57) {
        e.session = one(readers);
    } else if (dice < 75) {
        e.user = one(users);
        e.tenant = one(tenants);
    } else if (dice < 77) {
        e.user = one(users);
    } else if (dice < 88) {
        e.tenant = one(tenants);
        e.uri = one(uris);
    } else if (dice < 90) {
        e.uri = one(uris);
        e.endpoint = one(ENDPOINTS);
    } else {
        e.tenant = one(tenants);
        e.topic = one(topics);
    }

    /* mostly small, some of many blocks */
    e.pad = chance(0.01) ? below(20000) : below(chance(0.1) ? 2500 : 120);

    const form = below(10);

    if (form < 5) {
        e.method = 'notifications/own';
    } else if (form < 6) {
        e.method = 'notifications/message';
        e.level = one(LEVELS);
    } else if (form < 7) {
        e.method = 'notifications/resources/updated';
        e.about = one(uris);
    } else {
        e.kind = one(['document', 'changed', 'quiet', 'health']);
        e.level = one(LEVELS);
        e.about = one(uris);
        e.pad = Math.min(e.pad, 2000);
    }

    return e;
}


/* see mcp_invalidate in t/big.t */

function outcome(e, endpoint) {
    const own = (name) => [`notifications/${name} ${e.n}`];
    const updated = (uri) => [uri, undefined, uri];
    const topic = e.kind && e.topic ? [updated(latest(e.topic))] : [];

    if (e.method) {
        return [[`${e.method} ${e.n}`, e.level, e.about]];
    }

    const message = [`notifications/message ${e.n}`, e.level];

    switch (`${endpoint} ${e.kind}`) {
    case 'one document':
        return [...topic, message, own('document')];
    case 'one changed':
        return [...topic, updated(e.about), own('changed')];
    case 'two document':
        return [...topic, own('other')];
    case 'one health':
    case 'two health':
        return [...topic, message];
    default:
        return topic;
    }
}


function addressed(e, s) {
    return (!e.endpoint || e.endpoint === s.endpoint)
           && (!e.tenant || e.tenant === s.tenant)
           && (!e.session || e.session === s)
           && (!e.user || e.user === s.user)
           && (!e.uri || s.uris.has(e.uri))
           && (!e.topic || s.uris.has(latest(e.topic)));
}


function text(e) {
    const pad = 'x'.repeat(e.pad);
    const to = { tenant_id: e.tenant, session_id: e.session?.id,
                 identity: e.user, uri: e.uri, topic: e.topic };

    switch (e.method) {
    case undefined:
        return JSON.stringify({ kind: e.kind, n: e.n, pad, path: e.about,
                                level: e.level, ...to });
    case 'notifications/message':
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, params: {
            level: e.level, data: { n: e.n, pad } }, ...to });
    case 'notifications/resources/updated':
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, params: {
            uri: e.about, n: e.n, pad }, ...to });
    default:
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, params: {
            n: e.n, pad }, ...to });
    }
}


/* a POST is repeated as it was until all of it was taken */

const counts = { posts: 0, repeated: 0, cut: 0, busy: 0, events: 0 };
const refused = [];

async function publish(batch, agent) {
    const key = `${seed}:${batch[0].n}`;
    const path = batch[0].endpoint ? `/publish-${batch[0].endpoint}`
                                   : '/publish';
    const lines = batch.map(text);
    const body = chance(0.5) ? lines.join('\n') : `[${lines.join(',')}]`;

    counts.posts++;

    for (let i = 0; i < 400; i++) {
        let r;

        try {
            r = await once(port, 'POST', path,
                           { ...HEADERS, 'Idempotency-Key': key }, body,
                           agent);
        } catch (e) {
            counts.cut++;
            await sleep(20);
            continue;
        }

        if (r.status !== 202 && r.status !== 400) {
            refused.push(`${r.status} ${r.text}`);
            return;
        }

        const got = JSON.parse(r.text).events;
        const busy = got.findIndex((g) => /being taken/.test(g.error));

        counts.repeated += got.filter((g) => g.repeated).length;

        if (busy === -1) {
            const bad = got.find((g) => g.error);
            if (bad) {
                refused.push(`${path} ${bad.error}`);
            }
            counts.events += got.length;
            return;
        }

        /* those behind it were taken before it */
        batch.slice(busy).forEach((e) => { e.disordered = true; });
        counts.busy++;
        await sleep(20);
    }

    refused.push(`never taken: ${key}`);
}


/* what belongs to one path goes in one POST, in order */

async function writer(w) {
    const keep = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let seq = 0;

    while (next < events) {
        const batch = [];

        for (let size = 1 + below(40); size && next < events; size--) {
            const e = all_events[next];
            if (batch.length && batch[0].endpoint !== e.endpoint) {
                break;
            }
            e.writer = w;
            e.seq = ++seq;
            batch.push(e);
            next++;
        }

        await publish(batch, w % 2 ? keep : false);
        disturb();
    }

    keep.destroy();
}


/* reloads and kills, as the events go by */

function disturb() {
    while (disturbances.length && next >= disturbances[0].at) {
        const { what } = disturbances.shift();

        if (what === 'reload') {
            process.kill(master, 'SIGHUP');
        } else {
            process.kill(one(workers(master)), 'SIGKILL');
        }
    }
}


const readers = Array.from({ length: sessions }, (_, n) => new Reader(n));

for (let i = 0; i < sessions; i += 20) {
    await Promise.all(readers.slice(i, i + 20).map((s) => s.prepare()));
}

const all_events = Array.from({ length: events }, (_, n) => make(n));
const disturbances = some(['reload', 'reload', 'reload', 'kill', 'kill',
                           'kill'], 6)
    .map((what, i) => ({ what, at: Math.floor(events * (i + 1) / 7) }));

/* some open their stream when events are on their way already */

let next = 0;

const late = readers.filter(() => chance(0.1));

await Promise.all(readers.filter((s) => !late.includes(s))
                  .map((s) => { s.patience = 2000; return s.open(); }));

check(true, `${sessions} sessions`);

const published = Promise.all(Array.from({ length: WRITERS },
                                         (_, w) => writer(w)));

await until(() => next > events / 3, 60);
await Promise.all(late.map((s) => { s.patience = 2000; return s.open(); }));
await published;

check(refused.length === 0, `${events} events were taken`,
      [counts, refused.slice(0, 5)]);

/* behind this one, nothing is on its way */

all_events[events] = { n: events, writer: 0, seq: Infinity, pad: 0,
                       method: 'notifications/end' };
await publish([all_events[events]], false);

check(await until(() => readers.every((s) => s.finished), 60),
      'the last event came to all',
      readers.filter((s) => !s.finished).slice(0, 5).map((s) =>
          `session ${s.n} ${s.id}: opened ${s.opened}, refused ${s.refused}`));


/* the account of every session */

const lost = [];
const twice = [];
const strange = [];
let deliveries = 0;

for (const s of readers) {
    const due = new Map();

    for (const e of all_events) {
        if (!addressed(e, s)) {
            continue;
        }
        for (const [key, level, uri] of outcome(e, s.endpoint)) {
            if ((level === undefined
                 || LEVELS.indexOf(level) >= LEVELS.indexOf(s.level))
                && (uri === undefined || s.uris.has(uri)))
            {
                due.set(key, (due.get(key) ?? 0) + 1);
            }
        }
    }

    for (const [key, n] of due) {
        const got = s.seen.get(key) ?? 0;
        deliveries += got;
        if (got < n) {
            lost.push(`session ${s.n}: ${key}, ${got} of ${n}`);
        } else if (got > n) {
            twice.push(`session ${s.n}: ${key}, ${got} of ${n}`);
        }
    }

    for (const key of s.seen.keys()) {
        if (!due.has(key)) {
            strange.push(`session ${s.n}: ${key}`);
        }
    }
}

const few = (list) => [list.length, ...list.slice(0, 10), counts];
const flat = (f) => readers.flatMap((s) => f(s).map((x) => `${s.n}: ${x}`));

check(deliveries > events * 2, `${deliveries} deliveries`, few([]));
check(lost.length === 0, 'nothing was lost', few(lost));
check(twice.length === 0, 'nothing came twice', few(twice));
check(strange.length === 0, 'nothing came to anybody else', few(strange));

check(flat((s) => s.wrong).length === 0, 'all in order and whole',
      few(flat((s) => s.wrong)));
check(flat((s) => s.gaps).length === 0, 'no gap was said',
      few(flat((s) => s.gaps)));
check(readers.every((s) => s.opened > 1 && !s.refused),
      'streams were opened again, and never refused',
      readers.filter((s) => s.refused).map((s) => s.refused).slice(0, 5));

for (const s of readers) {
    s.close();
}

check((await Promise.all(readers.map((s) => s.answers()))).every(Boolean),
      'every session still answers');

console.log(`# ${JSON.stringify(counts)}, ${deliveries} deliveries, `
            + `${readers.reduce((n, s) => n + s.opened, 0)} streams`);
done();
