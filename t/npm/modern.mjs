/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A client of @modelcontextprotocol/sdk 1.x, which has sessions, and behind the
 * module a server of 2026-07-28 alone:
 *
 *   node modern.mjs URL [cached]
 *
 * cached: lists are, and what did not change is not told of.
 */

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
    StreamableHTTPClientTransport
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { check, done, failure, same, sections, until } from './checks.mjs';


const url = new URL(process.argv[2]);
const cached = process.argv[3] === 'cached';

const client = new Client({ name: 'sdk-v1', version: '1' }, {
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} }
});

const heard = [];
const textOf = (r) => r.content?.map((c) => c.text ?? '').join(' ') ?? '';
const call = (name, args = {}, options = {}) =>
    client.callTool({ name, arguments: args }, undefined, options);

for (const [method, schema] of Object.entries({
    message: types.LoggingMessageNotificationSchema,
    tools: types.ToolListChangedNotificationSchema
})) {
    client.setNotificationHandler(schema, () => { heard.push(method); });
}

client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
    model: 'm', role: 'assistant', stopReason: 'endTurn',
    content: { type: 'text', text: 'Paris' }
}));

client.setRequestHandler(types.ElicitRequestSchema, (r) => ({
    action: 'accept',
    content: r.params.requestedSchema.properties.name ? { name: 'Grace' }
             : r.params.requestedSchema.properties.color ? { color: 'red' }
             : { context: 'here', ok: true }
}));

client.setRequestHandler(types.ListRootsRequestSchema, () => ({
    roots: [{ uri: 'file:///one' }]
}));

await client.connect(new StreamableHTTPClientTransport(url));

await sections({
    async basics() {
        same(client.getServerVersion().name, 'conformance-fixture', 'server');
        check((await client.listTools()).tools.length > 20, 'tools');
        check((await client.listResources()).resources.length, 'resources');
        same(textOf(await call('test_simple_text')), 'A simple text.',
             'a call');
        check((await call('test_error_handling')).isError, 'an error');
        check((await client.getPrompt({ name: 'test_simple_prompt' }))
                  .messages.length, 'a prompt');
        same((await client.readResource({ uri: 'test://static-text' }))
                 .contents[0].text, 'Static text.', 'a resource');
        check(await failure(call('no such tool'))
              || (await call('no such tool')).isError, 'no such tool');
        same(textOf(await call('test_x_mcp_header', { region: 'eu' })),
             'region: eu', 'an argument in a header');
    },

    async streams() {
        const progress = [];

        await client.setLoggingLevel('info');
        await call('test_tool_with_logging');
        check(await until(() => heard.includes('message')), 'logs');

        await call('test_tool_with_progress', {}, {
            onprogress: (p) => progress.push(p.progress)
        });
        same(progress, [0, 50, 100], 'progress');
    },

    async input() {
        const say = async (name, wanted) =>
            same(textOf(await call(`test_input_required_result_${name}`)),
                 wanted, name);

        await say('elicitation', 'Hello, Grace!');
        await say('sampling', 'the model says: Paris');
        await say('list_roots', 'roots: file:///one');
        await say('request_state', 'state-ok');
        await say('multiple_inputs', 'Paris Grace, 1 roots');
        await say('multi_round', 'Grace: red');

        same((await client.getPrompt({
            name: 'test_input_required_result_prompt'
        })).messages[0].content.text, 'Context: here', 'a prompt that asks');
    },

    async changes() {
        await client.subscribeResource({ uri: 'test://watched-resource' });
        await call('test_trigger_tool_change');
        check(cached || await until(() => heard.includes('tools')),
              'a changed list');
        await client.unsubscribeResource({ uri: 'test://watched-resource' });
    }
});

await client.close();

done();
