/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Numbered events for runs whose conf has the rules of Mcp::Run: how one is
 * published, what an endpoint makes of it, and how it is known again.
 *
 * An event is { n, method | kind, level, about, pad } and who it is for:
 * endpoint, tenant, session, user, uri, topic; what is not given does not
 * narrow.
 */

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { HEADERS, once } from './session.mjs';


export const LEVELS = ['debug', 'info', 'warning', 'error'];

export const names = (prefix, n) => Array.from({ length: n },
                                               (_, i) => prefix + i);
export const latest = (topic) => `events://${topic}/latest`;


const UPDATED = 'notifications/resources/updated';
const MESSAGE = 'notifications/message';


/* what it becomes for the sessions it is for: [key, level, uri it is about] */

export function outcome(e, endpoint) {
    const own = (name) => [`notifications/${name} ${e.n}`];
    const updated = (uri) => [uri, undefined, uri];
    const topic = !e.method && e.topic ? [updated(latest(e.topic))] : [];

    if (e.method) {
        return [[`${e.method} ${e.n}`, e.level, e.about]];
    }

    const message = [`${MESSAGE} ${e.n}`, e.level];

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


/* the key and number of a notification; what names a URI alone has none */

export function known(m) {
    const p = m.params;

    if (m.method === UPDATED && p.n === undefined) {
        return [p.uri];
    }

    const n = p?.n ?? p?.data?.n ?? Number(p?.data);

    return [`${m.method} ${n}`, n];
}


/* in the end to this session, by its level and subscriptions */

export function visible([, level, about], s) {
    return (level === undefined
            || LEVELS.indexOf(level) >= LEVELS.indexOf(s.level))
           && (about === undefined || s.uris.has(about));
}


export function addressed(e, s) {
    return (!e.endpoint || e.endpoint === s.endpoint)
           && (!e.tenant || e.tenant === s.tenant)
           && (!e.session || e.session === s)
           && (!e.user || e.user === s.user)
           && (!e.uri || s.uris.has(e.uri))
           && (!e.topic || s.uris.has(latest(e.topic)));
}


export function text(e) {
    const pad = 'x'.repeat(e.pad);
    const to = { tenant_id: e.tenant, session_id: e.session?.id,
                 identity: e.user, uri: e.uri, topic: e.topic };
    const params = { n: e.n, pad };

    switch (e.method) {
    case undefined:
        return JSON.stringify({ kind: e.kind, path: e.about, level: e.level,
                                ...params, ...to });
    case MESSAGE:
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, ...to,
                                params: { level: e.level, data: params } });
    case UPDATED:
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, ...to,
                                params: { uri: e.about, ...params } });
    default:
        return JSON.stringify({ jsonrpc: '2.0', method: e.method, ...to,
                                params });
    }
}


/* what is neither a notification's form nor its address */

export function form(random, uris) {
    const { below, chance, one } = random;

    /* mostly small, some of many blocks */
    const pad = chance(0.01) ? below(20000) : below(chance(0.1) ? 2500 : 120);
    const level = one(LEVELS);
    const about = one(uris);

    switch (below(10)) {
    case 0:
        return { pad, method: MESSAGE, level };
    case 1:
        return { pad, method: UPDATED, about };
    case 2:
    case 3:
    case 4:
        return { pad: Math.min(pad, 2000), level, about,
                 kind: one(['document', 'changed', 'quiet', 'health']) };
    default:
        return { pad, method: 'notifications/own' };
    }
}


/*
 * Events of one endpoint (or of all) in one POST, which is repeated as it was
 * until all of it was taken: its outcomes, event by event.
 */

export class Publisher {
    constructor(port, key) {
        Object.assign(this, { port, key, counts: {
            posts: 0, events: 0, repeated: 0, cut: 0, busy: 0
        } });
    }

    async publish(batch, lines, agent) {
        const { endpoint, n } = batch[0];
        const path = endpoint ? `/publish-${endpoint}` : '/publish';
        const key = `${this.key}:${n}`;
        const texts = batch.map(text);
        const body = lines ? texts.join('\n') : `[${texts.join(',')}]`;

        this.counts.posts++;
        this.counts.events += batch.length;

        for (let i = 0; i < 500; i++) {
            let r;

            try {
                r = await once(this.port, 'POST', path,
                               { ...HEADERS, 'Idempotency-Key': key }, body,
                               agent);
            } catch (e) {
                this.counts.cut++;
                await sleep(20);
                continue;
            }

            const events = JSON.parse(r.text).events;
            const busy = events.findIndex((e) => /being taken/.test(e.error));

            this.counts.repeated += events.filter((e) => e.repeated).length;

            if (busy === -1) {
                return events;
            }

            /* those behind it were taken before it */
            batch.slice(busy).forEach((e) => { e.disordered = true; });
            this.counts.busy++;
            await sleep(20);
        }

        throw new Error(`${key} was never taken`);
    }
}


/*
 * A server of feeds, one for each path. Of those below /lines/ each event is a
 * line without an id; the others are server-sent events, and resumable.
 */

export class Feeds {
    constructor(random) {
        Object.assign(this, { random, feeds: new Map(), opened: 0,
                              resumed: 0 });
        this.server = http.createServer((req, res) => this.open(req, res));
    }

    listen(port) {
        return new Promise((resolve) => {
            this.server.listen(port, '127.0.0.1', resolve);
        });
    }

    at(path) {
        if (!this.feeds.has(path)) {
            this.feeds.set(path, { path, texts: [], readers: new Set() });
        }

        return this.feeds.get(path);
    }

    open(req, res) {
        const feed = this.at(decodeURIComponent(req.url));
        const last = req.headers['last-event-id'];

        this.opened++;
        feed.readers.add(res);
        res.on('close', () => feed.readers.delete(res));

        if (feed.path.startsWith('/lines/')) {
            res.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
            res.flushHeaders();
            return;
        }

        this.resumed += last === undefined ? 0 : 1;
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        res.write('retry: 50\n\n');
        feed.texts.slice(last === undefined ? 0 : Number(last) + 1)
            .forEach((t) => this.send(res, t));
    }

    /* in pieces, as networks make them */

    send(res, block) {
        const at = this.random.below(block.length);

        res.write(block.slice(0, at));
        res.write(block.slice(at));
    }

    push(path, event) {
        const feed = this.at(path);
        const line = text(event);

        if (path.startsWith('/lines/')) {
            feed.texts.push(`${line}\n`);
        } else {
            feed.texts.push(`id: ${feed.texts.length}\ndata: ${line}\n\n`);
        }

        for (const res of feed.readers) {
            this.send(res, feed.texts.at(-1));
        }
    }

    /* what a deploy does: who reads may come back */

    cut(path) {
        const { readers } = this.at(path);

        readers.forEach((res) => res.end());
        readers.clear();
    }

    close() {
        this.server.closeAllConnections();
        this.server.close();
    }
}
