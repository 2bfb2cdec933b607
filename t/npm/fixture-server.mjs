/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * An MCP server of the SDK 2.x:
 *
 *   node fixture-server.mjs PORT [dual|modern|legacy] [PARTS]
 *
 * listens on 127.0.0.1:PORT, path /mcp, and prints "ready" when it does;
 * modern: as a server of 2026-07-28 alone, legacy: of revisions with sessions
 * alone. What it has is in PARTS, else what the conformance suite asks for.
 */

import { randomUUID } from 'node:crypto';
import http from 'node:http';

import {
    NodeStreamableHTTPServerTransport, toNodeHandler
} from '@modelcontextprotocol/node';
import {
    classifyInboundRequest, createMcpHandler
} from '@modelcontextprotocol/server';


const [port, mode, parts] = process.argv.slice(2);
const { createServer } = await import(parts ?? './fixture-parts.mjs');
const only = mode === 'modern';
const sessions = new Map();

const modern = createMcpHandler(() => createServer({ modern }, modern), {
    legacy: only ? 'reject' : 'stateless',
    onerror: (e) => console.error('modern:', e.message)
});
const modernHandler = toNodeHandler(modern);


/* keeps what was sent on each stream, so that it can be resumed */

function eventStore() {
    const events = [];

    return {
        async storeEvent(stream, message) {
            events.push({ stream, message });
            return `${stream}/${events.length}`;
        },

        async replayEventsAfter(last, { send }) {
            const cut = last.lastIndexOf('/');
            const stream = last.slice(0, cut);

            for (let n = Number(last.slice(cut + 1)); n < events.length; n++) {
                const { stream: of, message } = events[n];

                if (of === stream && message.jsonrpc) {
                    await send(`${stream}/${n + 1}`, message);
                }
            }

            return stream;
        }
    };
}


function refuse(res, status, code, message) {
    res.writeHead(status, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message } }));
}


const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

function foreign({ host, origin }) {
    return !LOOPBACK.test(host ?? '')
           || (origin && !LOOPBACK.test(origin.replace(/^https?:\/\//, '')));
}


async function read(req) {
    const parts = [];

    for await (const part of req) {
        parts.push(part);
    }

    return Buffer.concat(parts).toString();
}


async function open() {
    const env = {};

    env.transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: eventStore(),
        retryInterval: 500,
        onsessioninitialized: (id) => sessions.set(id, env.transport),
        onsessionclosed: (id) => sessions.delete(id)
    });

    await createServer(env, modern).connect(env.transport);
    return env.transport;
}


async function handle(req, res) {
    if (foreign(req.headers)) {
        return refuse(res, 403, -32000, 'this Host or Origin is not served');
    }

    let body;

    if (req.method === 'POST') {
        try {
            body = JSON.parse(await read(req));
        } catch {
            return refuse(res, 400, -32700, 'not JSON');
        }

        const { kind } = classifyInboundRequest({
            httpMethod: req.method, body,
            protocolVersionHeader: req.headers['mcp-protocol-version'],
            mcpMethodHeader: req.headers['mcp-method']
        });

        if (only || (mode !== 'legacy' && kind !== 'legacy')) {
            return modernHandler(req, res, body);
        }
    }

    if (only) {
        return modernHandler(req, res);
    }

    const id = req.headers['mcp-session-id'];

    if (id && !sessions.has(id)) {
        return refuse(res, 404, -32001, 'no such session');
    }

    if (!id && body?.method !== 'initialize') {
        return refuse(res, 400, -32000, 'Mcp-Session-Id is missing');
    }

    const transport = id ? sessions.get(id) : await open();
    return transport.handleRequest(req, res, body);
}


const server = http.createServer((req, res) => {
    handle(req, res).catch((e) => {
        console.error(e);

        if (!res.headersSent) {
            refuse(res, 500, -32603, e.message);
        }
    });
});

server.keepAliveTimeout = 120_000;
server.listen(Number(port), '127.0.0.1', () => console.log('ready'));
