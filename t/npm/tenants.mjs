/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Many tenants, identities and sessions, in rounds: first sessions do things
 * at random (subscribe, set levels, go away and come back, end, begin anew,
 * ask for what is not theirs), then events are published to random audiences,
 * while workers are reloaded and killed. A model says who must get what.
 *
 * tenants.mjs PORT MASTER_PID SEED SESSIONS ROUNDS EVERY
 *
 * EVERY so many rounds there is a reload or a kill; 0: never.
 */

import { Session, HEADERS, check, done, random, request, until,
         workers } from './session.mjs';
import { LEVELS, Publisher, addressed, form, known, latest, names, outcome,
         visible } from './events.mjs';


const [port, master, seed, sessions, rounds, every] =
    process.argv.slice(2).map(Number);

const dice = random(seed);
const { chance, below, one, some } = dice;
const publisher = new Publisher(port, seed);

const ENDPOINTS = ['one', 'two'];
const END = 'notifications/end';

/* rounds of which half the zone keeps all that many tenants get */
const KEPT = 32;

const tenants = names('tenant', 24);
const users = names('user', 5);
const uris = [...names('file:///r', 6), ...names('topic/', 3).map(latest)];
const topics = names('topic/', 3);

const faults = [];
let round = 0;
let number = 0;


function fault(s, what) {
    faults.push(`round ${round}, session ${s.n} (${s.endpoint}, ${s.tenant}, `
                + `${s.user}): ${what}`);
}


class Client extends Session {
    constructor(n, like) {
        const endpoint = like?.endpoint ?? one(ENDPOINTS);
        const tenant = like?.tenant ?? one(tenants);
        const user = like?.user ?? one(users);

        super({ port, path: `/${endpoint}`, n, endpoint, tenant, user,
                headers: { 'X-Tenant': tenant, 'X-User': user },
                level: 'debug', uris: new Set(), seen: new Map(),
                due: new Map(), may: new Map(), waiting: [], log: [],
                marks: [], end: -1 });
    }

    message(m) {
        const [key, n] = known(m);

        if (m.method === END) {
            this.end = Math.max(this.end, n);
        }
        count(this.seen, key);
    }

    lagged(data) {
        fault(this, `lagged ${data}`);
    }

    /* an event was published for it, if it wants it */

    gets(e) {
        for (const out of outcome(e, this.endpoint)) {
            const now = asked(e, this) && visible(out, this);
            const entry = { e, out, now, round };

            this.log.push(entry);

            if (this.ended) {
                this.waiting.push(entry);
            } else if (now) {
                count(this.due, out[0]);
            }
        }
    }

    /*
     * Its stream opens. What it wanted then and wants now is due; what it
     * changed its mind about may come or not, and neither is what may have
     * been under way when it left due to one that does not say where it was.
     */

    back(fresh) {
        for (const { e, out, now } of this.waiting.splice(0)) {
            const still = asked(e, this) && visible(out, this);

            if (now && still && !(fresh && e.round === this.left)) {
                count(this.due, out[0]);
            } else if (now || still) {
                count(this.may, out[0]);
            }
        }
        if (fresh) {
            this.last = undefined;
        }
    }

    /* it asks again for all since the end of a round */

    rewind() {
        const mark = one(this.marks.filter((m) => m.round > round - KEPT));

        this.last = mark.last;

        for (const { e, out, now } of this.log) {
            if (e.round > mark.round) {
                const still = asked(e, this) && visible(out, this);

                if (now && still) {
                    count(this.due, out[0]);
                } else if (still) {
                    count(this.may, out[0]);
                }
            }
        }
    }

    settle() {
        for (const [key, n] of this.due) {
            const got = this.seen.get(key) ?? 0;

            if (got < n) {
                fault(this, `${key} was lost, ${got} of ${n}`);
            } else if (got > n + (this.may.get(key) ?? 0)) {
                fault(this, `${key} came ${got} times, not ${n}`);
            }
        }
        for (const key of this.seen.keys()) {
            if (!this.due.has(key) && !this.may.has(key)) {
                fault(this, `${key} is not for it`);
            }
        }
    }
}


function count(map, key) {
    map.set(key, (map.get(key) ?? 0) + 1);
}


/* the part of an address that a session may change */

const asked = (e, s) => (!e.uri || s.uris.has(e.uri))
                        && (!e.topic || s.uris.has(latest(e.topic)));

const theirs = (e, s) => addressed({ ...e, uri: null, topic: null }, s);


/* what a session does between rounds */

const deeds = {
    async subscribe(s) {
        const uri = one(uris);

        await s.call('resources/subscribe', { uri });
        s.uris.add(uri);
    },

    async unsubscribe(s) {
        const uri = one([...s.uris, ...uris]);

        await s.call('resources/unsubscribe', { uri });
        s.uris.delete(uri);
    },

    async level(s) {
        const level = one(LEVELS);

        await s.call('logging/setLevel', { level });
        s.level = level;
    },

    async cut(s) {
        if (!s.ended) {
            s.cut();
        }
    },

    async leave(s) {
        if (!s.ended) {
            s.left = round;
            s.close();
        }
    },

    async come(s) {
        if (s.ended) {
            s.back(chance(0.5));
            await s.open();
        }
    },

    async rewind(s) {
        if (!s.ended && s.marks.at(-1)?.round === round - 1) {
            s.close();
            s.rewind();
            await s.open();
        }
    },

    async remove(s) {
        const r = await request(port, 'DELETE', s.path, s.all());

        if (r.status !== 200) {
            fault(s, `DELETE: ${r.status}`);
        }
        gone.push(s);
        await replace(s);
    },

    /* a client that lost its session id, or wants a new one */

    async anew(s) {
        if (chance(0.5)) {
            const r = await s.post({ id: 'again', method: 'initialize',
                                     params: {
                protocolVersion: '2025-11-25', capabilities: {},
                clientInfo: { name: 'run', version: '1' }
            } });

            if (r.status !== 400) {
                fault(s, `a second initialize: ${r.status}`);
            }
            return;
        }
        s.close();
        left.push(s);
        await replace(s);
    },

    /* another tenant, identity or endpoint has no such session */

    async intrude(s) {
        const other = new Client(-1);
        const at = { ...s.all(), ...other.headers };
        const path = other.path;

        if (other.tenant === s.tenant && other.user === s.user
            && path === s.path)
        {
            return;
        }

        const body = JSON.stringify({ jsonrpc: '2.0', id: 1,
                                      method: 'resources/subscribe',
                                      params: { uri: one(uris) } });

        for (const method of ['POST', 'GET', 'DELETE']) {
            const r = await request(port, method, path, at,
                                    method === 'POST' ? body : undefined);

            if (r.status !== 404) {
                fault(s, `${method} of ${path}, ${JSON.stringify(
                    other.headers)}: ${r.status}`);
            }
        }
    },

    async revive() {
        if (gone.length) {
            const s = one(gone);
            const r = await s.post({ id: 1, method: 'ping' });

            if (r.status !== 404) {
                fault(s, `is gone and answers ${r.status}`);
            }
        }
    }
};


/* sessions that ended, and those that nobody uses any more */

const gone = [];
const left = [];
let born = 0;


async function begin(like) {
    const s = new Client(born++, like);

    await s.begin();
    s.ended = true;
    s.left = round;
    if (chance(0.9)) {
        await s.open();
    }

    return s;
}


async function replace(s) {
    s.settle();
    s.close();
    all[all.indexOf(s)] = await begin(chance(0.5) ? s : undefined);
}


function make() {
    const e = { n: ++number, round, ...form(dice, uris) };
    const who = below(100);

    if (who < 45) {
        e.tenant = one(tenants);
    }
    if (who % 10 < 3) {
        e.endpoint = one(ENDPOINTS);
    }
    if (who % 10 > 6) {
        e.user = one(users);
    }
    if (who >= 70) {
        e.session = one(chance(0.9) ? all : [...gone, ...left, ...all]);

        if (chance(0.5)) {
            e.tenant = chance(0.8) ? e.session.tenant : one(tenants);
        }
        if (e.user && chance(0.8)) {
            e.user = e.session.user;
        }
    }
    if (chance(0.15)) {
        e.uri = one(uris);
    }
    if (chance(0.15)) {
        e.topic = one(topics);
    }

    return e;
}


/* a session is named in vain where anything else of the address is wrong */

const vain = (e) => e.session !== undefined
                    && (gone.includes(e.session) || !theirs(e, e.session));


async function publish(batch) {
    const got = await publisher.publish(batch, chance(0.5));

    batch.forEach((e, i) => {
        const g = got[i];

        /* an invalidate event may come to nothing */

        if (vain(e) !== Boolean(g.error) && !(e.kind && vain(e))) {
            faults.push(`round ${round}: event ${e.n} for ${
                e.session?.n ?? 'many'} was answered ${JSON.stringify(g)}`);
        }
        if (!e.session && !e.kind && !g.error) {
            const live = [...all, ...left].filter((s) =>
                (!e.tenant || e.tenant === s.tenant)
                && (!e.endpoint || e.endpoint === s.endpoint)).length;

            if (g.sessions !== live) {
                faults.push(`round ${round}: event ${e.n} addressed `
                            + `${g.sessions}, not ${live}`);
            }
        }
    });
}


function disturb() {
    if (chance(0.5)) {
        process.kill(master, 'SIGHUP');
    } else {
        try {
            process.kill(one(workers(master)), 'SIGKILL');
        } catch {
            /* it has exited */
        }
    }
}


const all = [];

while (all.length < sessions) {
    all.push(...await Promise.all(names('', 20).map(() => begin())));
}

for (round = 1; round <= rounds && faults.length === 0; round++) {
    const late = all.filter((s) => s.ended && round - s.left > KEPT);
    const busy = some(all.filter((s) => !late.includes(s)),
                      Math.ceil(all.length / 4));

    await Promise.all([
        ...late.map((s) => deeds.come(s)),
        ...busy.map((s) => deeds[one(Object.keys(deeds))](s))
    ]);

    const batches = [];

    for (let i = 0; i < 12; i++) {
        const batch = names('', 1 + below(12)).map(make);
        const { endpoint } = batch[0];

        batches.push(batch.map((e) => ({ ...e, endpoint })));
    }

    for (const e of batches.flat().filter((b) => !vain(b))) {
        all.filter((s) => theirs(e, s)).forEach((s) => s.gets(e));
    }

    await Promise.all(batches.map(async (batch, i) => {
        await publish(batch);
        if (i === 5 && every && round % every === 0) {
            disturb();
        }
    }));

    const end = { n: ++number, round, method: END, pad: 0 };

    all.forEach((s) => s.gets(end));
    await publish([end]);

    if (!await until(() => all.every((s) => s.ended || s.end === end.n), 30)) {
        all.filter((s) => !s.ended && s.end !== end.n)
            .forEach((s) => fault(s, 'the end of the round did not come'));
    }

    for (const s of all.filter((c) => !c.ended)) {
        s.settle();
        s.marks.push({ round, last: s.last });
    }
}

/* and those that were away */

for (const s of all.filter((c) => c.ended)) {
    s.back();
    await s.open();
}

await until(() => all.every((s) => s.end === number), 30);
all.forEach((s) => s.settle());

const { counts } = publisher;

check(faults.length === 0, `${rounds} rounds, ${born} sessions`,
      [faults.length, ...faults.slice(0, 4), ...faults.slice(-4), counts]);

for (const s of all) {
    s.close();
}

/* nothing of them stays */

for (const s of [...all, ...left]) {
    await request(port, 'DELETE', s.path, s.all());
}

let status;

check(await until(async () => {
    status = JSON.parse((await request(port, 'GET', '/status',
                                       HEADERS)).text);
    return status.sessions.live === 0 && status.streams.open === 0;
}, 10), 'all sessions have ended', status);

console.log(`# ${number} events, ${JSON.stringify(counts)}, `
            + `${all.reduce((n, s) => n + s.opened, 0)} streams`);
done();
