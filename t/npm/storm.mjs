/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Many sessions with open streams, numbered events to all of them, reloads and
 * killed workers in between: every session has to see every number exactly
 * once and in order, and to answer afterwards.
 *
 * storm.mjs PORT MASTER_PID SESSIONS EVENTS
 */

import fs from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';


const [port, master, sessions, events] = process.argv.slice(2).map(Number);

const HEADERS = {
    'Content-Type': 'application/json',
    'Accept': 'application/json, text/event-stream'
};

let failures = 0;

function check(ok, name, got) {
    console.log(JSON.stringify({ ok, name, got }));
    failures += ok ? 0 : 1;
}


function once(method, path, headers, body) {
    return new Promise((resolve, reject) => {
        const req = http.request({
            host: '127.0.0.1', port, method, path, headers, agent: false
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


/* a request whose worker died before it answered is safe to repeat here */

async function request(method, path, headers, body) {
    for (let i = 0; ; i++) {
        try {
            return await once(method, path, headers, body);
        } catch (e) {
            if (i === 20) {
                throw e;
            }
            await sleep(50);
        }
    }
}


class Session {
    constructor(n) {
        this.n = n;
        this.seen = [];
        this.opened = 0;
        this.lagged = 0;
    }

    async begin() {
        const r = await request('POST', '/mcp', HEADERS, JSON.stringify({
            jsonrpc: '2.0', id: 0, method: 'initialize', params: {
                protocolVersion: '2025-11-25', capabilities: {},
                clientInfo: { name: 'storm', version: '1' }
            }
        }));
        this.id = r.headers['mcp-session-id'];
        if (!this.id) {
            throw new Error(`initialize: ${r.status} ${r.text}`);
        }
        await request('POST', '/mcp', this.headers(), JSON.stringify({
            jsonrpc: '2.0', method: 'notifications/initialized'
        }));
        await new Promise((resolve) => {
            this.primed = resolve;
            this.listen();
        });
    }

    headers(more) {
        return { ...HEADERS, 'Mcp-Session-Id': this.id,
                 'MCP-Protocol-Version': '2025-11-25', ...more };
    }

    /* an EventSource: it reconnects after retry with what it saw last */

    listen() {
        if (this.ended) {
            return;
        }
        let over = false;
        const again = () => {
            if (!over) {
                over = true;
                setTimeout(() => this.listen(), this.retry || 20);
            }
        };
        const req = http.request({
            host: '127.0.0.1', port, method: 'GET', path: '/mcp', agent: false,
            headers: this.headers(this.last ? { 'Last-Event-ID': this.last }
                                            : {})
        }, (res) => {
            if (res.statusCode !== 200) {
                this.refused = res.statusCode;
            }
            this.opened++;
            let text = '';
            res.setEncoding('utf8');
            res.on('data', (d) => {
                text += d;
                for (let i; (i = text.indexOf('\n\n')) !== -1;) {
                    this.event(text.slice(0, i));
                    text = text.slice(i + 2);
                }
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
            const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
            if (field === 'data') {
                data += value;
            } else if (field === 'id') {
                id = value;
            } else if (field === 'event') {
                name = value;
            } else if (field === 'retry') {
                this.retry = Math.min(Number(value), 200);
            }
        }
        if (id !== undefined) {
            this.last = id;
            this.primed();
        }
        if (name === 'lagged') {
            this.lagged++;
        } else if (data) {
            const message = JSON.parse(data);
            if (message.params?.data?.n) {
                this.seen.push(message.params.data.n);
            }
        }
    }

    async end() {
        this.ended = true;
        const r = await request('POST', '/mcp', this.headers(), JSON.stringify(
            { jsonrpc: '2.0', id: 1, method: 'ping' }));
        this.req.destroy();
        return r.status === 200 && JSON.parse(r.text).result !== undefined;
    }
}


const workers = () =>
    fs.readFileSync(`/proc/${master}/task/${master}/children`, 'utf8')
        .trim().split(' ').map(Number);


const all = [];

for (let i = 0; i < sessions; i += 25) {
    const some = [];
    for (let n = i; n < Math.min(i + 25, sessions); n++) {
        some.push(new Session(n));
    }
    await Promise.all(some.map((s) => s.begin()));
    all.push(...some);
}

check(all.length === sessions, `${sessions} sessions with open streams`);

const step = Math.floor(events / 9);
let published = 0;

for (let n = 1; n <= events; n++) {
    const r = await request('POST', '/publish', HEADERS, JSON.stringify({
        jsonrpc: '2.0', method: 'notifications/message',
        params: { level: 'info', data: { n } }
    }));
    if (r.status === 202) {
        published++;
    }
    if (n % step === 0 && n / step <= 8) {
        if (n / step % 2) {
            process.kill(master, 'SIGHUP');
        } else {
            const pids = workers();
            process.kill(pids[Math.floor(Math.random() * pids.length)],
                         'SIGKILL');
        }
    }
}

check(published === events, `${events} events published`, `${published}`);

const complete = (s) => s.seen.length >= events;

for (let i = 0; i < 600 && !all.every(complete); i++) {
    await sleep(100);
}

const wrong = all.filter((s) => s.seen.length !== events
                                || s.seen.some((n, i) => n !== i + 1));

check(wrong.length === 0, 'every session saw every number once, in order',
      wrong.slice(0, 5).map((s) => {
          const i = s.seen.findIndex((n, j) => n !== j + 1);
          return `session ${s.n} ${s.id}: ${s.seen.length} seen, opened `
                 + `${s.opened}, refused ${s.refused}, wrong from ${i}: `
                 + s.seen.slice(Math.max(0, i - 3), i + 5);
      }).join('\n# '));

check(all.every((s) => s.lagged === 0), 'no gap was said');
check(all.some((s) => s.opened > 1), 'streams were opened again');

const answers = await Promise.all(all.map((s) => s.end()));

check(answers.every(Boolean), 'every session still answers');

check(true, 'done');
process.exit(failures ? 1 : 0);
