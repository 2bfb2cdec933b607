/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * SDK clients of both generations over a restart of nginx: they go on with the
 * session that they have. node restart.mjs PORT PID FILE NGINX ARGS...
 */

import fs from 'node:fs';
import { spawnSync } from 'node:child_process';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema, LoggingMessageNotificationSchema }
    from '@modelcontextprotocol/sdk/types.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 }
    from '@modelcontextprotocol/client';
import { check, done, until } from './checks.mjs';

const [, , port, pid, file, ...nginx] = process.argv;
const url = path => new URL(`http://127.0.0.1:${port}${path}`);


async function publish(data) {
    await fetch(url('/publish'), {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0',
                               method: 'notifications/message',
                               params: { level: 'error', data } })
    });
}


async function open(name, Client, Transport, v1) {
    const client = new Client({ name, version: '1' }, { capabilities: {} });

    /* by default they give up after two attempts, before nginx may start */

    const transport = new Transport(url('/sdk'), { reconnectionOptions: {
        maxRetries: 60, initialReconnectionDelay: 1000,
        maxReconnectionDelay: 2000, reconnectionDelayGrowFactor: 1
    } });
    const heard = [];

    client.setNotificationHandler(
        v1 ? LoggingMessageNotificationSchema : 'notifications/message',
        n => { heard.push(n.params.data); });
    client.setNotificationHandler(
        v1 ? ResourceUpdatedNotificationSchema
           : 'notifications/resources/updated',
        n => { heard.push(n.params.uri); });

    await client.connect(transport);
    await client.setLoggingLevel('warning');
    await client.subscribeResource({ uri: 'file:///a' });

    return { name, client, transport, heard, id: transport.sessionId };
}


const alive = () => {
    try {
        process.kill(Number(pid), 0);
        return true;
    } catch {
        return false;
    }
};

const clients = [await open('v1', Client1, Transport1, true),
                 await open('v2', Client2, Transport2, false)];

await publish('before');

for (const c of clients) {
    check(await until(() => c.heard.includes('before')),
          `${c.name}: an event`, c.heard);
}

process.kill(Number(pid), 'SIGQUIT');

check(await until(() => !alive()), 'nginx ends');
check(fs.existsSync(file), 'and leaves a file');

/* a turn of the event loop: fetch sees that its connections were closed */
await new Promise(resolve => setImmediate(resolve));

const started = spawnSync(nginx[0], nginx.slice(1));
check(started.status === 0, 'nginx starts', String(started.stderr));

for (const c of clients) {
    await c.client.ping();

    check(c.transport.sessionId === c.id, `${c.name}: the session goes on`);
    check(await until(() => c.heard.includes('file:///a')),
          `${c.name}: what it subscribed to is to be looked at`, c.heard);
}

await publish('after');

for (const c of clients) {
    check(await until(() => c.heard.includes('after')),
          `${c.name}: an event after the restart`, c.heard);

    await c.client.unsubscribeResource({ uri: 'file:///a' });
    await c.transport.terminateSession();
    await c.client.close();
}

done();
