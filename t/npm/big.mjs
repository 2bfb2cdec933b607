/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Events of every kind and audience, published by several writers to many
 * sessions of two endpoints and eight tenants, while workers are reloaded and
 * killed and clients are cut off. For each event it is known which sessions
 * must see it, and every id is checked: nothing lost, nothing twice, nothing
 * to anybody else, in the order of each writer.
 *
 * Some of the events come by feeds: at endpoint one one whose events have ids,
 * at endpoint two one for each tenant. With LINES it is one at endpoint one
 * without ids, and no worker is killed, for that would be a gap.
 *
 * big.mjs PORT MASTER_PID SEED SESSIONS EVENTS FEED_PORT [LINES]
 */

import http from 'node:http';
import { Session, check, done, random, until, workers } from './session.mjs';
import { Feeds, LEVELS, Publisher, addressed, form, known, latest, names,
         outcome, visible } from './events.mjs';


const [port, master, seed, sessions, events, feed_port, lines] =
    process.argv.slice(2).map(Number);

const dice = random(seed);
const { chance, below, one, some } = dice;
const publisher = new Publisher(port, seed);
const feeds = new Feeds(dice);

const WRITERS = 4;
const ENDPOINTS = ['one', 'two'];

const tenants = names('tenant', 8);
const users = names('user', 5);
const uris = names('file:///r', 12);
const topics = names('topic/', 6);


/* what a notification says, and how often it came */

class Reader extends Session {
    constructor(n) {
        const endpoint = ENDPOINTS[n % 2];
        const tenant = tenants[(n >> 1) % tenants.length];
        const user = users[(n >> 4) % users.length];

        super({ port, path: `/${endpoint}`, n, endpoint, tenant, user,
                headers: { 'X-Tenant': tenant, 'X-User': user },
                level: one(LEVELS), ends: new Set(), gaps: [],
                last_of: [], wrong: [],
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
        const [key, n] = known(m);

        if (n !== undefined) {
            this.ordered(n, m, m.params);
        }

        this.seen.set(key, (this.seen.get(key) ?? 0) + 1);
    }

    ordered(n, m, p) {
        const e = all_events[n];

        if (e === undefined) {
            this.wrong.push(`unknown ${JSON.stringify(m).slice(0, 200)}`);
            return;
        }
        if (e.seq < (this.last_of[e.writer] ?? 0) && !e.disordered
            && !(lines && e.endpoint === 'one'))
        {
            this.wrong.push(`${n} after ${this.last_of[e.writer]}`);
        }
        this.last_of[e.writer] = Math.max(e.seq,
                                          this.last_of[e.writer] ?? 0);
        if (p.pad !== undefined && p.pad.length !== e.pad) {
            this.wrong.push(`${n} has ${p.pad.length} of ${e.pad} bytes`);
        }
        if (n >= events) {
            this.ends.delete(n);
        }
        if (below(this.patience) === 0) {
            this.cut();
        }
    }

    lagged(data) {
        this.gaps.push(data);
    }
}


function make(n) {
    const e = { n, ...form(dice, uris) };
    const who = below(100);

    if (who < 2) {
        return e;
    }
    if (who < 17) {
        e.tenant = one(tenants);
    } else if (who < 32) {
        e.tenant = one(tenants);
        e.endpoint = one(ENDPOINTS);
    } else if (who < 57) {
        e.session = one(readers);
    } else if (who < 75) {
        e.user = one(users);
        e.tenant = one(tenants);
    } else if (who < 77) {
        e.user = one(users);
    } else if (who < 88) {
        e.tenant = one(tenants);
        e.uri = one(uris);
    } else if (who < 90) {
        e.uri = one(uris);
        e.endpoint = one(ENDPOINTS);
    } else {
        e.tenant = one(tenants);
        e.topic = one(topics);
    }

    return e;
}


const refused = [];

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

        if (chance(0.2)) {
            feed(batch);
        } else {
            const got = await publisher.publish(batch, chance(0.5),
                                                w % 2 ? keep : false);
            refused.push(...got.filter((g) => g.error).map((g) => g.error));
        }

        disturb();
    }

    keep.destroy();
}


/* each feed is a writer of its own */

const seqs = new Map();

function feed(batch) {
    for (const e of batch) {
        let path = lines ? '/lines/one' : '/sse/one';

        e.endpoint = 'one';

        if (!lines && e.tenant && chance(0.5)) {
            e.endpoint = 'two';
            path = `/of/${e.tenant}`;
        }
        if (e.session && e.session.endpoint !== e.endpoint) {
            e.session = one(readers.filter((s) => s.endpoint === e.endpoint));
        }

        e.writer = path;
        e.seq = (seqs.get(path) ?? 0) + 1;
        seqs.set(path, e.seq);
        feeds.push(path, e);
    }
}


/* reloads and kills, as the events go by */

function disturb() {
    while (disturbances.length && next >= disturbances[0].at) {
        const { what } = disturbances.shift();

        if (what === 'reload' || lines) {
            process.kill(master, 'SIGHUP');
        } else {
            kill(workers(master));
            feeds.cut(one([...feeds.feeds.keys()]));
        }
    }
}


/* none if they have all gone, or the one has a moment ago */

function kill(pids) {
    try {
        process.kill(one(pids), 'SIGKILL');
    } catch {
    }
}


await feeds.listen(feed_port);

const readers = Array.from({ length: sessions }, (_, n) => new Reader(n));

for (let i = 0; i < sessions; i += 20) {
    await Promise.all(readers.slice(i, i + 20).map((s) => s.prepare()));
}

const all_events = Array.from({ length: events }, (_, n) => make(n));
const times = Number(process.env.MCP_BIG_TIMES || 1);
const troubles = ['reload', 'kill'].flatMap((what) =>
    Array.from({ length: 3 * times }, () => what));
const disturbances = some(troubles, troubles.length).map((what, i) =>
    ({ what, at: Math.floor(events * (i + 1) / (troubles.length + 1)) }));

/* some open their stream when events are on their way already */

let next = 0;

const late = readers.filter(() => chance(0.1));

await Promise.all(readers.filter((s) => !late.includes(s))
                  .map((s) => { s.patience = 2000; return s.open(); }));

check(await until(() => [...feeds.feeds.values()].filter(
    (f) => f.readers.size).length === (lines ? 1 : 1 + tenants.length), 60),
      `${sessions} sessions, feeds are read`, [...feeds.feeds.keys()]);

const published = Promise.all(Array.from({ length: WRITERS },
                                         (_, w) => writer(w)));

await until(() => next > events / 3, 60);
await Promise.all(late.map((s) => { s.patience = 2000; return s.open(); }));
await published;

check(refused.length === 0, `${events} events were taken`,
      refused.slice(0, 5));

/* behind these, nothing is on its way */

const end = (writer, more) => {
    const n = all_events.length;
    const e = { n, writer, seq: Infinity, pad: 0, ...more,
                method: 'notifications/end' };

    all_events.push(e);
    readers.filter((s) => addressed(e, s)).forEach((s) => s.ends.add(n));

    return e;
};

await publisher.publish([end(0, {})]);

for (const path of feeds.feeds.keys()) {
    feeds.push(path, end(path, path.startsWith('/of/')
                               ? { endpoint: 'two', tenant: path.slice(4) }
                               : { endpoint: 'one' }));
}

check(await until(() => readers.every((s) => s.ends.size === 0), 60),
      'the last events came to all',
      readers.filter((s) => s.ends.size).slice(0, 5).map((s) =>
          `session ${s.n} ${s.id}: opened ${s.opened}, refused ${s.refused}, `
          + [...s.ends].map((n) => all_events[n].writer)));


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
        for (const out of outcome(e, s.endpoint)) {
            if (visible(out, s)) {
                due.set(out[0], (due.get(out[0]) ?? 0) + 1);
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

const { counts } = publisher;
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
check(readers.some((s) => s.opened > 1) && !readers.some((s) => s.refused),
      'streams were opened again, and never refused',
      readers.map((s) => s.refused).filter(Boolean).slice(0, 5));

for (const s of readers) {
    s.close();
}

check((await Promise.all(readers.map((s) => s.answers()))).every(Boolean),
      'every session still answers');

feeds.close();

console.log(`# ${JSON.stringify(counts)}, ${deliveries} deliveries, feeds `
            + `opened ${feeds.opened} times, ${feeds.resumed} resumed, `
            + `${readers.reduce((n, s) => n + s.opened, 0)} streams`);
done();
