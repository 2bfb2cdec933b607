/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A lean MCP client for runs with hundreds of sessions: a GET stream that
 * comes back with Last-Event-ID as an EventSource does, and requests that
 * outlive the worker that took them. Beside it what such programs need: seeded
 * numbers, nginx's processes, checks in JSON lines.
 */

import fs from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';


export const HEADERS = {
    'Content-Type': 'application/json',
    'Accept': 'application/json, text/event-stream'
};

let failures = 0;

export function check(ok, name, got) {
    console.log(JSON.stringify({ ok: Boolean(ok), name, got }));
    failures += ok ? 0 : 1;
}


export function done() {
    console.log(JSON.stringify({ ok: true, name: 'done' }));
    process.exit(failures ? 1 : 0);
}


/* mulberry32: the same numbers for the same seed */

export function random(seed) {
    let a = seed >>> 0;

    const next = () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };

    return {
        chance: (p) => next() < p,
        below: (n) => Math.floor(next() * n),
        one: (list) => list[Math.floor(next() * list.length)],
        some: (list, n) => {
            const rest = [...list];
            const got = [];
            while (got.length < n && rest.length) {
                got.push(...rest.splice(Math.floor(next() * rest.length), 1));
            }
            return got;
        }
    };
}


/* true as soon as the function is; false after limit seconds */

export async function until(ready, limit) {
    const slow = Number(process.env.MCP_SLOW || 1);

    for (const end = Date.now() + limit * slow * 1000; !await ready();) {
        if (Date.now() > end) {
            return false;
        }
        await sleep(10);
    }

    return true;
}


export function once(port, method, path, headers, body, agent = false) {
    return new Promise((resolve, reject) => {
        const req = http.request({
            host: '127.0.0.1', port, method, path, headers, agent
        }, (res) => {
            let text = '';
            res.setEncoding('utf8');
            res.on('data', (d) => { text += d; });
            res.on('end', () => resolve({ status: res.statusCode,
                                          headers: res.headers, text }));
            res.on('error', reject);
        });
        req.on('error', reject);
        req.end(body);
    });
}


/* of what is safe to repeat: the worker may die before it answered */

export async function request(port, method, path, headers, body, agent) {
    for (let i = 0; ; i++) {
        try {
            return await once(port, method, path, headers, body, agent);
        } catch (e) {
            if (i === 50) {
                throw e;
            }
            await sleep(20);
        }
    }
}


/* all of one server, those that are leaving included */

export function workers(master) {
    return fs.readFileSync(`/proc/${master}/task/${master}/children`, 'utf8')
        .trim().split(' ').filter(Boolean).map(Number);
}


/*
 * An object with port, path and headers; what its stream brings goes to
 * message(m), where m is the JSON-RPC message, and lagged(n).
 */

export class Session {
    constructor(options) {
        Object.assign(this, { headers: {}, opened: 0, said: 0 }, options);
    }

    async begin() {
        const r = await request(this.port, 'POST', this.path,
                                { ...HEADERS, ...this.headers },
                                JSON.stringify({
            jsonrpc: '2.0', id: 0, method: 'initialize', params: {
                protocolVersion: '2025-11-25', capabilities: {},
                clientInfo: { name: 'run', version: '1' }
            }
        }));
        this.id = r.headers['mcp-session-id'];
        if (!this.id) {
            throw new Error(`initialize: ${r.status} ${r.text}`);
        }
        await this.post({ method: 'notifications/initialized' });
    }

    all(more) {
        return { ...HEADERS, 'Mcp-Session-Id': this.id,
                 'MCP-Protocol-Version': '2025-11-25', ...this.headers,
                 ...more };
    }

    post(message) {
        return request(this.port, 'POST', this.path, this.all(),
                       JSON.stringify({ jsonrpc: '2.0', ...message }));
    }

    async call(method, params) {
        const r = await this.post({ id: ++this.said, method, params });

        if (r.status !== 200) {
            throw new Error(`${method}: ${r.status} ${r.text}`);
        }

        const m = JSON.parse(r.text);

        if (m.error) {
            throw new Error(`${method}: ${r.text}`);
        }

        return m.result;
    }

    /* once it was opened, the stream comes back until it is ended */

    async open() {
        this.ended = false;
        await new Promise((resolve) => {
            this.primed = resolve;
            this.listen();
        });
    }

    listen() {
        clearTimeout(this.timer);
        if (this.ended) {
            return;
        }
        let over = false;
        const again = () => {
            if (!over && this.req === req) {
                over = true;
                this.timer = setTimeout(() => this.listen(),
                                        this.retry ?? 20);
            }
        };
        const req = http.request({
            host: '127.0.0.1', port: this.port, method: 'GET',
            path: this.path, agent: false,
            headers: this.all(this.last === undefined
                              ? {} : { 'Last-Event-ID': this.last })
        }, (res) => {
            if (res.statusCode !== 200) {
                this.refused = res.statusCode;
            }
            this.opened++;
            let text = '';
            res.setEncoding('utf8');
            res.on('data', (d) => {
                if (this.req !== req) {
                    return;
                }
                text += d;
                let from = 0;
                for (let i; (i = text.indexOf('\n\n', from)) !== -1;) {
                    this.event(text.slice(from, i));
                    from = i + 2;
                }
                text = text.slice(from);
            });
            res.on('end', again);
            res.on('error', again);
            res.on('aborted', again);
        });
        req.on('error', again);
        req.end();
        this.req = req;
    }

    event(block) {
        let data = '';
        let name = 'message';
        let id;
        for (const line of block.split('\n')) {
            const colon = line.indexOf(':');
            const field = line.slice(0, colon);
            const value = line.slice(line[colon + 1] === ' ' ? colon + 2
                                                             : colon + 1);
            if (field === 'data') {
                data += value;
            } else if (field === 'id') {
                id = value;
            } else if (field === 'event') {
                name = value;
            } else if (field === 'retry') {
                this.retry = Number(value);
            }
        }
        if (id !== undefined) {
            this.last = id;
            this.primed();
        }
        if (name === 'lagged') {
            this.lagged(data);
        } else if (data) {
            const m = JSON.parse(data);

            /* topics come and go on their own */
            if (m.method !== 'notifications/resources/list_changed') {
                this.message(m);
            }
        }
    }

    /* as a network does it: what was under way is lost, and it comes back */

    cut() {
        this.req.destroy();
    }

    close() {
        this.ended = true;
        this.req?.destroy();
    }

    async answers() {
        const r = await this.post({ id: 'alive', method: 'ping' });

        return r.status === 200 && JSON.parse(r.text).result !== undefined;
    }
}
