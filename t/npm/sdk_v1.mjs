/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * A client of @modelcontextprotocol/sdk 1.x against server-everything:
 *
 *   node sdk_v1.mjs URL [straight]
 */

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
    StreamableHTTPClientTransport
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { done } from './checks.mjs';
import { everything } from './everything.mjs';


const [url, straight] = process.argv.slice(2);

const requests = {
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'elicitation/create': types.ElicitRequestSchema,
    'roots/list': types.ListRootsRequestSchema
};

const notifications = {
    'notifications/message': types.LoggingMessageNotificationSchema,
    'notifications/resources/updated':
        types.ResourceUpdatedNotificationSchema,
    'notifications/resources/list_changed':
        types.ResourceListChangedNotificationSchema,
    'notifications/tools/list_changed':
        types.ToolListChangedNotificationSchema
};

await everything({
    url, straight,

    make: async (capabilities) => ({
        client: new Client({ name: 'sdk-v1', version: '1' },
                           { capabilities }),
        transport: new StreamableHTTPClientTransport(new URL(url))
    }),

    answer: (client, method, handler) =>
        client.setRequestHandler(requests[method], handler),

    hear: (client, method, handler) =>
        client.setNotificationHandler(notifications[method], handler),

    call: (client, name, args, options) =>
        client.callTool({ name, arguments: args }, undefined, options)
});

done();
