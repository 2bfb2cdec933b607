/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Many sessions with open streams, numbered events to all of them, reloads and
 * killed workers in between: every session has to see every number exactly
 * once and in order, and to answer afterwards.
 *
 * storm.mjs PORT MASTER_PID SESSIONS EVENTS
 */

import { HEADERS, Session, check, done, request, until,
         workers } from './session.mjs';


const [port, master, sessions, events] = process.argv.slice(2).map(Number);


class Reader extends Session {
    constructor(n) {
        super({ port, path: '/mcp', n, seen: [], gaps: 0 });
    }

    message(m) {
        if (m.params?.data?.n) {
            this.seen.push(m.params.data.n);
        }
    }

    lagged() {
        this.gaps++;
    }
}


const all = [];

for (let i = 0; i < sessions; i += 25) {
    const some = [];
    for (let n = i; n < Math.min(i + 25, sessions); n++) {
        some.push(new Reader(n));
    }
    await Promise.all(some.map(async (s) => {
        await s.begin();
        await s.open();
    }));
    all.push(...some);
}

check(all.length === sessions, `${sessions} sessions with open streams`);

const step = Math.floor(events / 9);
let published = 0;

for (let n = 1; n <= events; n++) {
    const r = await request(port, 'POST', '/publish', HEADERS, JSON.stringify({
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
            const pids = workers(master);

            try {
                process.kill(pids[Math.floor(Math.random() * pids.length)],
                             'SIGKILL');
            } catch {
                /* it has exited */
            }
        }
    }
}

check(published === events, `${events} events published`, `${published}`);

await until(() => all.every((s) => s.seen.length >= events), 60);

const wrong = all.filter((s) => s.seen.length !== events
                                || s.seen.some((n, i) => n !== i + 1));

check(wrong.length === 0, 'every session saw every number once, in order',
      wrong.slice(0, 5).map((s) => {
          const i = s.seen.findIndex((n, j) => n !== j + 1);
          return `session ${s.n} ${s.id}: ${s.seen.length} seen, opened `
                 + `${s.opened}, refused ${s.refused}, wrong from ${i}: `
                 + s.seen.slice(Math.max(0, i - 3), i + 5);
      }).join('\n# '));

check(all.every((s) => s.gaps === 0), 'no gap was said');
check(all.some((s) => s.opened > 1), 'streams were opened again');

const answers = await Promise.all(all.map((s) => s.answers()));

check(answers.every(Boolean), 'every session still answers');

done();
