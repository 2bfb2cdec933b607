/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A client of @modelcontextprotocol/client 2.x, as one of 2026-07-28, against
 * server-everything, which has sessions:
 *
 *   node modern_client.mjs URL MODE
 *
 * MODE is pinned or auto; the latter has to find out that the server speaks
 * that revision.
 */

import {
    Client, StreamableHTTPClientTransport
} from '@modelcontextprotocol/client';

import { check, done, same, until } from './checks.mjs';


const [url, mode] = process.argv.slice(2);
const VERSION = '2026-07-28';

const client = new Client({ name: 'modern', version: '1' }, {
    versionNegotiation: { mode: mode === 'auto' ? 'auto' : { pin: VERSION } }
});

const transport = new StreamableHTTPClientTransport(new URL(url));
const textOf = (r) => r.content?.map((c) => c.text ?? '').join('\n') ?? '';
const logs = [];

client.setNotificationHandler('notifications/message', (n) => {
    logs.push(n.params);
});

await client.connect(transport);

same(client.getNegotiatedProtocolVersion(), VERSION, 'the revision');
same(client.getProtocolEra(), 'modern', 'its era');
check(!transport.sessionId, 'no session');
same(client.getServerVersion()?.name, 'mcp-servers/everything',
     'name of the server behind');
check(client.getServerCapabilities()?.tools, 'tools offered');
check(client.getInstructions()?.length > 0, 'instructions');

const tools = (await client.listTools()).tools.map((t) => t.name);

check(tools.includes('echo'), 'tools', tools);
check((await client.listPrompts()).prompts.length > 0, 'prompts');
check((await client.listResources()).resources.length > 0, 'resources');
check((await client.listResourceTemplates()).resourceTemplates.length > 0,
      'templates');

const call = (name, args, options) =>
    client.callTool({ name, arguments: args }, options);

same(textOf(await call('echo', { message: 'h\u00e9llo' })),
     'Echo: h\u00e9llo', 'echo');
check(/\b12\b/.test(textOf(await call('get-sum', { a: 5, b: 7 }))), 'sum');

const image = await call('get-tiny-image', {});

check(image.content.some((c) => c.type === 'image' && c.data.length > 1000),
      'an image');
check((await call('get-structured-content', { location: 'Chicago' }))
          .structuredContent?.temperature !== undefined, 'structured content');

const sums = await Promise.all([...Array(20).keys()].map(
    (n) => call('get-sum', { a: n, b: n })));

check(sums.every((r, n) => new RegExp(`\\b${2 * n}\\b`).test(textOf(r))),
      'many at a time');

const progress = [];

await call('trigger-long-running-operation', { duration: 1, steps: 4 },
           { onprogress: (p) => progress.push(p.progress) });
same(progress, [1, 2, 3, 4], 'progress');

const abort = new AbortController();
const cut = call('trigger-long-running-operation', { duration: 30, steps: 30 },
                 { signal: abort.signal, onprogress: () => abort.abort() })
    .then(() => 'done', () => 'cut');

same(await cut, 'cut', 'a call that is cancelled');

const [resource] = (await client.listResources()).resources;

check((await client.readResource({ uri: resource.uri })).contents.length > 0,
      'a resource');

const none = await client.readResource({ uri: 'none://x' })
    .then(() => 0, (e) => e.code);

same(none, -32602, 'no resource');

check((await client.getPrompt({ name: 'simple-prompt' })).messages.length > 0,
      'a prompt');

await client.close();

/* one that can be asked, by a server that asks in the middle of a call */

const asked = new Client({ name: 'asked', version: '1' }, {
    versionNegotiation: { mode: mode === 'auto' ? 'auto' : { pin: VERSION } },
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} }
});
const wanted = [];

asked.setRequestHandler('sampling/createMessage', () => {
    wanted.push('sampling');
    return { role: 'assistant', model: 'm',
             content: { type: 'text', text: 'an answer' } };
});

asked.setRequestHandler('elicitation/create', () => {
    wanted.push('elicitation');
    return { action: 'accept', content: { name: 'Grace', check: true } };
});

asked.setRequestHandler('roots/list', () => {
    wanted.push('roots');
    return { roots: [{ uri: 'file:///one', name: 'one' }] };
});

await asked.connect(new StreamableHTTPClientTransport(new URL(url)));

const more = (await asked.listTools()).tools.map((t) => t.name);

check(more.includes('trigger-elicitation-request')
      && more.includes('trigger-sampling-request'),
      'tools for clients that can be asked', more);

const ask = async (name, args) =>
    textOf(await asked.callTool({ name, arguments: args }));

for (const n of [1, 2]) {
    check(/Grace/.test(await ask('trigger-elicitation-request', {})),
          `elicitation ${n}`);
    check(/an answer/.test(await ask('trigger-sampling-request',
                                     { prompt: 'a prompt', maxTokens: 9 })),
          `sampling ${n}`);
}

same(wanted.filter((what) => what !== 'roots'),
     ['elicitation', 'sampling', 'elicitation', 'sampling'],
     'each was asked for once');

await asked.close();

done();
