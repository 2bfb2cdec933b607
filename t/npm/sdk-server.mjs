/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Servers of the TypeScript SDK as its documentation shows them:
 *
 *   node sdk-server.mjs guarded PORT   a transport for each session, with the
 *                                      SDK's guards against DNS rebinding
 *   node sdk-server.mjs single PORT    one transport, and so one session
 *
 * on 127.0.0.1:PORT, path /mcp.
 */

import { randomUUID } from 'node:crypto';

import { createMcpExpressApp }
    from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport }
    from '@modelcontextprotocol/sdk/server/streamableHttp.js';


const [mode, port] = process.argv.slice(2);
const sessions = new Map();


async function connected(options) {
    const server = new McpServer({ name: mode, version: '1.0.0' });

    server.registerTool('forecast', { description: 'of the weather' },
                        async () => ({ content: [{ type: 'text',
                                                   text: 'sunny' }] }));

    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID, ...options
    });

    await server.connect(transport);
    return transport;
}


async function guarded() {
    const transport = await connected({
        enableDnsRebindingProtection: true,
        allowedHosts: [`localhost:${port}`, `127.0.0.1:${port}`],
        onsessioninitialized: (id) => sessions.set(id, transport)
    });

    return transport;
}


const single = mode === 'single' ? await connected({}) : null;
const app = createMcpExpressApp();

app.all('/mcp', async (req, res) => {
    const transport = single ?? sessions.get(req.headers['mcp-session-id'])
                      ?? await guarded();

    await transport.handleRequest(req, res, req.body);
});

app.listen(port, '127.0.0.1');
