/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * Preloaded into servers that would listen on all interfaces.
 */

import net from 'node:net';


const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
    if (typeof args[0] === 'object' && args[0] !== null) {
        args[0] = { ...args[0], host: '127.0.0.1' };

    } else {
        const rest = args.slice(1).filter((a) => typeof a === 'function');
        args = [args[0], '127.0.0.1', ...rest];
    }

    return listen.apply(this, args);
};
