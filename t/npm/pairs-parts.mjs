/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * What servers of either era have for pairs.mjs: a tool for each thing that a
 * server can do during a call, a list and resources that change on demand.
 */

import {
    acceptedContent, fromJsonSchema, inputRequired, McpServer,
    ResourceTemplate
} from '@modelcontextprotocol/server';


const says = (text) => ({ content: [{ type: 'text', text }] });
const string = { type: 'string' };

/* of all callers of this server */

const live = new Set();
const grown = [];
const touched = new Map();
const marks = new Set();
const waiting = new Map();


const questions = {
    sampling: () => inputRequired.createMessage({
        messages: [{ role: 'user',
                     content: { type: 'text', text: 'a prompt' } }],
        maxTokens: 64
    }),

    elicitation: () => inputRequired.elicit({
        message: 'Your name?',
        requestedSchema: { type: 'object', properties: { name: string },
                           required: ['name'] }
    }),

    roots: () => inputRequired.listRoots()
};

const answers = {
    sampling: (r) => r.answer?.content?.text,
    elicitation: (r) => acceptedContent(r, 'answer')?.name,
    roots: (r) => r.answer?.roots?.map((root) => root.uri).join(' ')
};


async function progress(ctx, n) {
    const progressToken = ctx.mcpReq._meta?.progressToken;

    if (progressToken !== undefined) {
        await ctx.mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress: n }
        });
    }
}


/* name: [arguments, handler (args, ctx, modern, env)] */

const tools = {
    echo: [{ text: string }, (args) => says(args.text)],

    /* which server this is, and how often its session was asked */

    where: [{}, (args, ctx, modern, env) => {
        env.asked = (env.asked ?? 0) + 1;
        return says(`${process.argv[2]} ${env.asked}`);
    }],

    steps: [{}, async (args, ctx) => {
        for (const n of [1, 2, 3]) {
            await progress(ctx, n);
        }

        return says('done');
    }],

    log: [{}, async (args, ctx) => {
        for (const level of ['debug', 'info', 'warning', 'error']) {
            await ctx.mcpReq.log(level, `a message of ${level}`);
        }

        return says('done');
    }],

    ask: [{ what: string }, (args, ctx) => {
        const got = ctx.mcpReq.inputResponses
                    && answers[args.what](ctx.mcpReq.inputResponses);

        return got ? says(got)
               : inputRequired({
                   inputRequests: { answer: questions[args.what]() }
               });
    }],

    /* runs until it is cancelled, or released */

    hold: [{ mark: string }, async (args, ctx) => {
        await progress(ctx, 1);

        const how = await new Promise((resolve) => {
            waiting.set(args.mark, resolve);
            ctx.mcpReq.signal.addEventListener('abort',
                                               () => resolve('cancelled'));
        });

        marks.add(`${args.mark} ${how}`);
        return says(how);
    }],

    release: [{ mark: string }, (args) => {
        waiting.get(args.mark)?.('released');
        return says('done');
    }],

    marks: [{}, () => says([...marks].join('\n'))],

    grow: [{ name: string }, (args, ctx, modern) => {
        grown.push(args.name);
        live.forEach(({ server }) => add(server, args.name));
        modern.notify.toolsChanged();
        return says('done');
    }],

    touch: [{ uri: string }, async ({ uri }, ctx, modern) => {
        touched.set(uri, (touched.get(uri) ?? 0) + 1);

        for (const { server, uris } of live) {
            if (uris.has(uri)) {
                await server.server.sendResourceUpdated({ uri });
            }
        }

        modern.notify.resourceUpdated(uri);
        return says('done');
    }]
};


function add(server, name) {
    server.registerTool(name, { description: 'grown' },
                        async () => says(name));
}


export function createServer(env, modern) {
    const server = new McpServer({ name: 'pairs', version: '1.0.0' }, {
        capabilities: {
            tools: { listChanged: true }, prompts: {},
            resources: { subscribe: true, listChanged: true },
            logging: {}, completions: {}
        }
    });

    const uris = new Set();
    const low = server.server;

    for (const [name, [properties, handler]] of Object.entries(tools)) {
        const required = Object.keys(properties);

        server.registerTool(name, {
            description: name,
            inputSchema: fromJsonSchema({ type: 'object', properties,
                                          required })
        }, async (args, ctx) => handler(args, ctx, modern, env));
    }

    grown.forEach((name) => add(server, name));

    server.registerResource('item',
        new ResourceTemplate('pairs://{name}', { list: undefined }), {},
        async (uri) => ({
            contents: [{ uri: uri.href,
                         text: `touched ${touched.get(uri.href) ?? 0}` }]
        }));

    server.registerPrompt('greet', {
        argsSchema: fromJsonSchema({ type: 'object',
                                     properties: { who: string } })
    }, async ({ who }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: who } }]
    }));

    low.setRequestHandler('completion/complete', async () => ({
        completion: { values: ['Grace'], total: 1, hasMore: false }
    }));

    if (env.transport) {
        const entry = { server, uris };

        live.add(entry);
        low.onclose = () => live.delete(entry);

        low.setRequestHandler('resources/subscribe', async (r) => {
            uris.add(r.params.uri);
            return {};
        });

        low.setRequestHandler('resources/unsubscribe', async (r) => {
            uris.delete(r.params.uri);
            return {};
        });
    }

    return server;
}
