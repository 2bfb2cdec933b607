// Copyright (C) 2026 The ngx_http_mcp_module authors

// A client of the TypeScript SDK that prints the notifications which it
// receives, and the worker of nginx that holds its stream.  When the list of
// tools changed, it asks for the list and prints that.  conf/events.sh runs it;
// by hand, beside a node_modules with @modelcontextprotocol/sdk:
//
//   node events.mjs http://127.0.0.1:8080/mcp

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    LoggingMessageNotificationSchema, ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'events', version: '1.0.0' });

client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => {
    const { level, data, _meta } = n.params;

    console.log(`event ${level} ${data}`,
                JSON.stringify(_meta?.['nginx-mcp/details']));
});

client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
    const { tools } = await client.listTools();

    console.log(`tools ${tools.map((tool) => tool.name).join(', ')}`);
});

const url = new URL(process.argv[2]);

await client.connect(new StreamableHTTPClientTransport(url, {
    fetch: async (to, init) => {
        const response = await fetch(to, init);

        if (init?.method === 'GET' && response.ok) {
            console.log(`worker ${response.headers.get('x-worker')}`);
        }
        return response;
    }
}));
