/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A client of @modelcontextprotocol/client 2.x that listens for changes:
 *
 *   node listen.mjs URL PUBLISH-URL PID-OF-NGINX
 */

import {
    Client, StreamableHTTPClientTransport
} from '@modelcontextprotocol/client';

import { check, done, same, until } from './checks.mjs';


const [url, publishUrl, pid] = process.argv.slice(2);
const got = [];

const client = new Client({ name: 'listens', version: '1' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } }
});

for (const method of ['tools/list_changed', 'prompts/list_changed',
                      'resources/updated', 'message'])
{
    client.setNotificationHandler(`notifications/${method}`, (n) => {
        got.push(n.params?.uri ?? method);
    });
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));

async function publish(method, params) {
    const r = await fetch(publishUrl, {
        method: 'POST', headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0',
                               method: `notifications/${method}`, params })
    });

    same(r.status, 202, `${method} is published`);
}

async function publishAll() {
    await publish('prompts/list_changed');
    await publish('message', { level: 'error', data: 'not for streams' });
    await publish('resources/updated', { uri: 'file:///other' });
    await publish('tools/list_changed');
    await publish('resources/updated', { uri: 'file:///a' });
}

const filter = { toolsListChanged: true, resourceSubscriptions: ['file:///a'] };
const wanted = ['tools/list_changed', 'file:///a'];

check(client.getServerCapabilities()?.tools?.listChanged,
      'changes are offered');

const first = await client.listen(filter);

same(first.honoredFilter, filter, 'acknowledged');

await publishAll();
await until(() => got.length >= wanted.length);
same(got, wanted, 'what it listens for arrives, and nothing else');

process.kill(Number(pid), 'SIGHUP');

same(await first.closed, 'graceful', 'a reload ends it gracefully');

const second = await client.listen(filter);

got.length = 0;
await publishAll();
await until(() => got.length >= wanted.length);
same(got, wanted, 'it listens again');

await second.close();
same(await second.closed, 'local', 'closed by the client');

await client.close();
done();
