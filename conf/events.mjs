// A client of the TypeScript SDK that prints the events which reach it, and
// which worker of nginx holds its stream.  conf/events.sh runs it; by hand,
// beside a node_modules with @modelcontextprotocol/sdk:
//
//   node events.mjs http://127.0.0.1:8080/mcp

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema }
    from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'events', version: '1.0.0' });

client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => {
    const { level, data, _meta } = n.params;

    console.log(`event ${level} ${data}`,
                JSON.stringify(_meta?.['nginx-mcp/details']));
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
