/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * The tools, resources and prompts that the scenarios of the official
 * conformance suite call by name.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import {
    acceptedContent, CLIENT_CAPABILITIES_META_KEY, createRequestStateCodec,
    fromJsonSchema, inputRequired, McpServer, ProtocolError,
    ProtocolErrorCode, ResourceTemplate
} from '@modelcontextprotocol/server';


const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ'
    + 'DwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const state = createRequestStateCodec({ key: new Uint8Array(randomBytes(32)) });

const text = (t) => ({ type: 'text', text: t });
const says = (t) => ({ content: [text(t)] });
const object = (properties = {}, required) => ({
    type: 'object', properties, ...(required && { required })
});
const string = (description) => ({ type: 'string', description });


/* what the server asks the client for, in either era */

const form = (message, properties, required) =>
    inputRequired.elicit({
        message, requestedSchema: object(properties, required)
    });

const askName = () =>
    form('Your name?', { name: { type: 'string' } }, ['name']);

const askOk = () => form('Go on?', { ok: { type: 'boolean' } }, ['ok']);

const askModel = (prompt) =>
    inputRequired.createMessage({
        messages: [{ role: 'user', content: text(prompt) }], maxTokens: 64
    });

const mint = (value) => state.mint({ ...value, nonce: randomUUID() });


async function ask(ctx, method, params, describe) {
    try {
        return says(describe(await ctx.mcpReq.send({ method, params })));

    } catch (e) {
        return says(`refused: ${e.message}`);
    }
}


const elicit = (ctx, message, properties, required = []) =>
    ask(ctx, 'elicitation/create', {
        message, requestedSchema: object(properties, required)
    }, (r) => `${r.action}: ${JSON.stringify(r.content ?? {})}`);


const titled = (...names) =>
    names.map((name) => ({ const: name, title: `Title of ${name}` }));


/* name: [input schema, handler (args, ctx, env)] */

const tools = {
    test_simple_text: [null, () => says('A simple text.')],

    test_image_content: [null, () => ({
        content: [{ type: 'image', data: PNG, mimeType: 'image/png' }]
    })],

    test_audio_content: [null, () => ({
        content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]
    })],

    test_embedded_resource: [null, () => ({
        content: [{
            type: 'resource',
            resource: { uri: 'test://embedded-resource', text: 'Embedded.',
                        mimeType: 'text/plain' }
        }]
    })],

    test_multiple_content_types: [null, () => ({
        content: [
            text('Several kinds:'),
            { type: 'image', data: PNG, mimeType: 'image/png' },
            { type: 'resource',
              resource: { uri: 'test://mixed-content-resource',
                          mimeType: 'application/json', text: '{"n":1}' } }
        ]
    })],

    test_tool_with_logging: [object(), async (args, ctx) => {
        for (const data of ['started', 'at work', 'done']) {
            await ctx.mcpReq.notify({
                method: 'notifications/message',
                params: { level: 'info', data }
            });
            await sleep(40);
        }

        return says('Logged three times.');
    }],

    test_tool_with_progress: [object(), async (args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;

        for (const progress of [0, 50, 100]) {
            if (progressToken !== undefined) {
                await ctx.mcpReq.notify({
                    method: 'notifications/progress',
                    params: { progressToken, progress, total: 100 }
                });
            }
            await sleep(40);
        }

        return says(`token: ${progressToken}`);
    }],

    test_error_handling: [null, () => ({
        ...says('This tool always fails.'), isError: true
    })],

    test_reconnection: [object(), async (args, ctx, env) => {
        env.transport?.closeSSEStream(ctx.mcpReq.id);
        await sleep(100);
        return says('Still here after the stream was closed.');
    }],

    test_sampling: [object({ prompt: string('for the model') }, ['prompt']),
        (args, ctx) => ask(ctx, 'sampling/createMessage', {
            messages: [{ role: 'user', content: text(args.prompt) }],
            maxTokens: 64
        }, (r) => `the model says: ${r.content?.text}`)],

    test_elicitation: [object({ message: string('for the user') },
                              ['message']),
        (args, ctx) => elicit(ctx, args.message,
                              { response: string('the answer') },
                              ['response'])],

    test_elicitation_sep1034_defaults: [object(), (args, ctx) =>
        elicit(ctx, 'All kinds of defaults', {
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', default: 'active',
                      enum: ['active', 'inactive', 'pending'] },
            verified: { type: 'boolean', default: true }
        })],

    test_elicitation_sep1330_enums: [object(), (args, ctx) =>
        elicit(ctx, 'All kinds of choices', {
            untitledSingle: { type: 'string',
                              enum: ['option1', 'option2', 'option3'] },
            titledSingle: { type: 'string',
                            oneOf: titled('value1', 'value2', 'value3') },
            legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
                          enumNames: ['One', 'Two', 'Three'] },
            untitledMulti: { type: 'array', minItems: 1, maxItems: 3,
                             items: { type: 'string', enum: ['option1',
                                      'option2', 'option3'] } },
            titledMulti: { type: 'array', minItems: 1, maxItems: 3,
                           items: { anyOf: titled('value1', 'value2',
                                                  'value3') } }
        })],

    json_schema_2020_12_tool: [{
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: {
            address: { $anchor: 'addressDef', type: 'object',
                       properties: { street: { type: 'string' },
                                     city: { type: 'string' } } }
        },
        properties: {
            name: { type: 'string' },
            address: { $ref: '#/$defs/address' },
            contactMethod: { type: 'string', enum: ['phone', 'email'] },
            phone: { type: 'string' },
            email: { type: 'string' }
        },
        allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
        if: { properties: { contactMethod: { const: 'phone' } },
              required: ['contactMethod'] },
        then: { required: ['phone'] },
        else: { required: ['email'] },
        additionalProperties: false
    }, (args) => says(JSON.stringify(args))],

    /* the modern wire */

    test_x_mcp_header: [object({
        region: { type: 'string', 'x-mcp-header': 'Region' },
        level: { type: 'integer' }
    }), (args) => says(`region: ${args.region}`)],

    test_missing_capability: [object(), (args, ctx) =>
        ctx.mcpReq.inputResponses?.answer
        ? says('answered')
        : inputRequired({ inputRequests: { answer: askModel('Say pong') } })],

    test_streaming_elicitation: [object(), () => says('No requests here.')],

    test_logging_tool: [object(), async (args, ctx) => {
        await ctx.mcpReq.log('info', 'only for those who asked for logs');
        return says('logged');
    }],

    test_trigger_tool_change: [object(), (args, ctx, env) => {
        env.modern.notify.toolsChanged();
        return says('tools changed');
    }],

    test_trigger_prompt_change: [object(), (args, ctx, env) => {
        env.modern.notify.promptsChanged();
        return says('prompts changed');
    }],

    test_input_required_result_elicitation: [object(), (args, ctx) => {
        const { name } = acceptedContent(ctx.mcpReq.inputResponses,
                                         'user_name') ?? {};

        return typeof name === 'string'
               ? says(`Hello, ${name}!`)
               : inputRequired({ inputRequests: { user_name: askName() } });
    }],

    test_input_required_result_sampling: [object(), (args, ctx) => {
        const r = ctx.mcpReq.inputResponses?.capital;

        return r ? says(`the model says: ${r.content?.text}`)
               : inputRequired({
                   inputRequests: { capital: askModel('Capital of France?') }
               });
    }],

    test_input_required_result_list_roots: [object(), (args, ctx) => {
        const roots = ctx.mcpReq.inputResponses?.client_roots?.roots;

        return Array.isArray(roots)
               ? says(`roots: ${roots.map((r) => r.uri).join(' ')}`)
               : inputRequired({
                   inputRequests: { client_roots: inputRequired.listRoots() }
               });
    }],

    test_input_required_result_request_state: [object(),
        async (args, ctx) => {
            if (!acceptedContent(ctx.mcpReq.inputResponses, 'confirm')) {
                return inputRequired({
                    inputRequests: { confirm: askOk() },
                    requestState: await mint({ of: 'request_state' })
                });
            }

            if (ctx.mcpReq.requestState() === undefined) {
                throw new ProtocolError(ProtocolErrorCode.InvalidParams,
                                        'requestState is missing');
            }

            return says('state-ok');
        }],

    test_input_required_result_multiple_inputs: [object(),
        async (args, ctx) => {
            const r = ctx.mcpReq.inputResponses;
            const name = acceptedContent(r, 'user_name')?.name;
            const greeting = r?.greeting?.content?.text;
            const roots = r?.client_roots?.roots;

            if (name && greeting && Array.isArray(roots)) {
                return says(`${greeting} ${name}, ${roots.length} roots`);
            }

            return inputRequired({
                inputRequests: {
                    user_name: askName(), greeting: askModel('A greeting'),
                    client_roots: inputRequired.listRoots()
                },
                requestState: await mint({ of: 'multiple_inputs' })
            });
        }],

    test_input_required_result_multi_round: [object(), async (args, ctx) => {
        const seen = ctx.mcpReq.requestState() ?? { round: 0 };
        const r = ctx.mcpReq.inputResponses;

        if (seen.round === 0) {
            return inputRequired({
                inputRequests: { step1: askName() },
                requestState: await mint({ round: 1 })
            });
        }

        if (seen.round === 1) {
            return inputRequired({
                inputRequests: {
                    step2: form('Your colour?', { color: { type: 'string' } },
                                ['color'])
                },
                requestState: await mint({
                    round: 2, name: acceptedContent(r, 'step1')?.name
                })
            });
        }

        return says(`${seen.name}: ${acceptedContent(r, 'step2')?.color}`);
    }],

    test_input_required_result_tampered_state: [object(),
        async (args, ctx) =>
            ctx.mcpReq.requestState() !== undefined
            && acceptedContent(ctx.mcpReq.inputResponses, 'confirm')
            ? says('the state is whole')
            : inputRequired({
                inputRequests: { confirm: askOk() },
                requestState: await mint({ of: 'tampered_state' })
            })],

    test_input_required_result_capabilities: [object(), (args, ctx) => {
        const caps = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
        const inputRequests = {
            ...(caps.elicitation && { user_name: askName() }),
            ...(caps.sampling && { greeting: askModel('A greeting') }),
            ...(caps.roots && { client_roots: inputRequired.listRoots() })
        };

        return ctx.mcpReq.inputResponses || !Object.keys(inputRequests).length
               ? says('nothing more to ask') : inputRequired({ inputRequests });
    }]
};


/* name: [properties of the arguments, handler (args, ctx)] */

const user = (...content) => ({
    messages: content.map((c) => ({ role: 'user', content: c }))
});

const prompts = {
    test_simple_prompt: [null, () => user(text('A simple prompt.'))],

    test_prompt_with_arguments: [
        { arg1: string('the first'), arg2: string('the second') },
        (args) => user(text(`arg1='${args.arg1}', arg2='${args.arg2}'`))
    ],

    test_prompt_with_embedded_resource: [
        { resourceUri: string('what to embed') },
        (args) => user({
            type: 'resource',
            resource: { uri: args.resourceUri, mimeType: 'text/plain',
                        text: 'Embedded.' }
        }, text('What does it say?'))
    ],

    test_prompt_with_image: [null, () =>
        user({ type: 'image', data: PNG, mimeType: 'image/png' },
             text('What does it show?'))],

    test_input_required_result_prompt: [null, (args, ctx) => {
        const { context } = acceptedContent(ctx.mcpReq.inputResponses,
                                            'user_context') ?? {};

        return typeof context === 'string'
               ? user(text(`Context: ${context}`))
               : inputRequired({
                   inputRequests: {
                       user_context: form('Which context?',
                           { context: { type: 'string' } }, ['context'])
                   }
               });
    }]
};


const resources = {
    'test://static-text': { mimeType: 'text/plain', text: 'Static text.' },
    'test://static-binary': { mimeType: 'image/png', blob: PNG },
    'test://watched-resource': { mimeType: 'text/plain', text: 'Watched.' }
};


/* env: { transport } of a legacy session, { modern } the modern handler */

export function createServer(env) {
    const server = new McpServer({
        name: 'conformance-fixture', version: '1.0.0'
    }, {
        capabilities: {
            tools: { listChanged: true },
            prompts: { listChanged: true },
            resources: { subscribe: true, listChanged: true },
            logging: {},
            completions: {}
        },
        requestState: { verify: state.verify }
    });

    for (const [name, [schema, handler]] of Object.entries(tools)) {
        const options = { description: `Conformance tool ${name}` };

        if (schema) {
            server.registerTool(name, {
                ...options, inputSchema: fromJsonSchema(schema)
            }, async (args, ctx) => handler(args, ctx, env));

        } else {
            server.registerTool(name, options,
                                async (ctx) => handler({}, ctx, env));
        }
    }

    for (const [name, [args, handler]] of Object.entries(prompts)) {
        const options = { description: `Conformance prompt ${name}` };

        if (args) {
            server.registerPrompt(name, {
                ...options,
                argsSchema: fromJsonSchema(object(args, Object.keys(args)))
            }, async (a, ctx) => handler(a, ctx));

        } else {
            server.registerPrompt(name, options,
                                  async (ctx) => handler({}, ctx));
        }
    }

    for (const [uri, content] of Object.entries(resources)) {
        server.registerResource(uri.replace('test://', ''), uri, {
            description: `Conformance resource ${uri}`,
            mimeType: content.mimeType
        }, async () => ({ contents: [{ uri, ...content }] }));
    }

    server.registerResource('template',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { description: 'A template', mimeType: 'application/json' },
        async (uri, { id }) => ({
            contents: [{ uri: uri.href, mimeType: 'application/json',
                         text: JSON.stringify({ id, data: `of ${id}` }) }]
        }));

    const low = server.server;

    low.setRequestHandler('resources/subscribe', async () => ({}));
    low.setRequestHandler('resources/unsubscribe', async () => ({}));
    low.setRequestHandler('logging/setLevel', async () => ({}));
    low.setRequestHandler('completion/complete', async () => ({
        completion: { values: ['one', 'two'], total: 2, hasMore: false }
    }));

    return server;
}
