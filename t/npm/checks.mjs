/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * What the client scripts report with: one JSON line per check, which the
 * calling .t makes a test of its own; the last is named "done".
 */

import { setTimeout as sleep } from 'node:timers/promises';


export function check(ok, name, got) {
    console.log(JSON.stringify({ ok: Boolean(ok), name, got }));
}


export function same(got, wanted, name) {
    check(JSON.stringify(got) === JSON.stringify(wanted), name,
          { got, wanted });
}


/*
 * waits until fn returns something true, at most ms milliseconds, longer in a
 * slow run
 */

export async function until(fn, ms = 30_000) {
    const end = Date.now() + ms * Number(process.env.MCP_SLOW || 1);

    for ( ;; ) {
        const value = await fn();

        if (value || Date.now() > end) {
            return value;
        }

        await sleep(10);
    }
}


/* the error that a promise is rejected with, null if it is not */

export async function failure(promise) {
    try {
        await promise;
        return null;

    } catch (e) {
        return e;
    }
}


/* runs sections one after another; one that throws does not stop the rest */

export async function sections(all) {
    for (const [name, run] of Object.entries(all)) {
        try {
            await run();

        } catch (e) {
            check(false, `${name}: ${e.message}`, e.stack);
        }
    }
}


export function done() {
    check(true, 'done');
    process.exit(0);
}
