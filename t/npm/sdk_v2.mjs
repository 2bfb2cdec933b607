/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A client of @modelcontextprotocol/client 2.x against server-everything:
 *
 *   node sdk_v2.mjs URL MODE [straight]
 *
 * MODE is legacy or auto; the latter probes for a modern server and must find
 * its way to the legacy revisions.
 */

import {
    Client, StreamableHTTPClientTransport
} from '@modelcontextprotocol/client';

import { check, done } from './checks.mjs';
import { everything } from './everything.mjs';


const [url, mode, straight] = process.argv.slice(2);


await everything({
    url, straight,

    make: async (capabilities) => {
        const client = new Client({ name: 'sdk-v2', version: '1' }, {
            capabilities, versionNegotiation: { mode }
        });

        return {
            client,
            transport: new StreamableHTTPClientTransport(new URL(url))
        };
    },

    connected: (client) =>
        check(client.getProtocolEra() === 'legacy',
              'a legacy revision was agreed on',
              client.getNegotiatedProtocolVersion()),

    answer: (client, method, handler) =>
        client.setRequestHandler(method, async (r) => handler(r)),

    hear: (client, method, handler) =>
        client.setNotificationHandler(method, handler),

    call: (client, name, args, options) =>
        client.callTool({ name, arguments: args }, options)
});

done();
