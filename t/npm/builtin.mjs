/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * The built-in tools as SDK clients of both generations see them, which check
 * each result against the tool's outputSchema: node builtin.mjs PORT
 */

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 }
    from '@modelcontextprotocol/client';
import { check, done, sections, until } from './checks.mjs';

const [, , port] = process.argv;
const url = path => new URL(`http://127.0.0.1:${port}${path}`);


async function publish(event) {
    await fetch(url('/publish'), { method: 'POST',
                                   body: JSON.stringify(event) });
}


/* a call has begun */

async function running() {
    const status = await (await fetch(url('/status'))).json();

    return status.calls.running > 0;
}


async function tools(name, Client, Transport, options) {
    const client = new Client({ name: 'builtin', version: '1' },
                              { capabilities: {}, ...options });

    await client.connect(new Transport(url('/mcp')));

    const { tools } = await client.listTools();
    const names = tools.map(tool => tool.name).join(' ');

    check(names === 'wait_for_event session_info', `${name}: listed`, names);

    const waiting = client.callTool({ name: 'wait_for_event', arguments: {
        topic: `sdk/${name}`, match: { done: true }, timeout_seconds: 20 } });

    await until(running);
    await publish({ topic: `sdk/${name}`, done: false });
    await publish({ topic: `sdk/${name}`, done: true, n: 7 });

    const got = (await waiting).structuredContent;

    check(got.event.n === 7, `${name}: an event`, got);

    const none = await client.callTool({ name: 'wait_for_event', arguments: {
        topic: `sdk/${name}`, after: got.position, timeout_seconds: 0.1 } });

    check(none.structuredContent.timeout, `${name}: no event`, none);

    const bad = await client.callTool({ name: 'wait_for_event',
                                        arguments: {} });

    check(bad.isError, `${name}: bad arguments`, bad);

    const info = (await client.callTool({ name: 'session_info',
                                          arguments: {} })).structuredContent;

    check(info.client.info.name === 'builtin', `${name}: session_info`, info);

    const { resources } = await client.listResources();

    check(resources.some(r => r.uri === `events://sdk/${name}/latest`),
          `${name}: the topic is listed`, resources);

    const read = await client.readResource({
        uri: `events://sdk/${name}/latest` });

    check(JSON.parse(read.contents[0].text).events.length === 2,
          `${name}: the topic is read`, read);

    await client.close();
}


await sections({
    v1: () => tools('v1', Client1, Transport1),
    v2: () => tools('v2', Client2, Transport2),
    modern: () => tools('modern', Client2, Transport2, {
        versionNegotiation: { mode: { pin: '2026-07-28' } }
    })
});

done();
