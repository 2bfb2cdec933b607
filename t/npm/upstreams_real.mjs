/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * SDK clients of both generations at an endpoint with three real servers: all
 * is listed and called, and each server restarts while the clients work.
 *
 *   node upstreams_real.mjs URL EVERYTHING SDK RPC SERVER
 *
 * with the ports of server-everything (its program is SERVER), of a server of
 * the SDK 2.x and of a plain handler; they are started here.
 */

import { spawn } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 }
    from '@modelcontextprotocol/client';

import { check, done, failure, same, sections, until } from './checks.mjs';

const [url, everything, sdk, rpc, program] = process.argv.slice(2);


/* a plain handler, which knows nothing of MCP but three methods */

function plain() {
    const tools = [{ name: 'add', description: 'a sum', inputSchema: {
        type: 'object', properties: { a: { type: 'number' },
                                      b: { type: 'number' } } } }];

    const server = http.createServer(async (req, res) => {
        let text = '';

        for await (const part of req) {
            text += part;
        }

        const m = JSON.parse(text);
        const answer = { jsonrpc: '2.0', id: m.id };

        if (m.method === 'tools/list') {
            answer.result = { tools };

        } else if (m.method === 'tools/call') {
            const { a, b } = m.params.arguments;
            answer.result = { content: [{ type: 'text', text: `${a + b}` }] };

        } else {
            answer.error = { code: -32601, message: 'Method not found' };
        }

        res.setHeader('Content-Type', 'application/json');
        res.end(JSON.stringify(answer));
    });

    server.listen(Number(rpc), '127.0.0.1');
    return { kill: () => { server.close(); server.closeAllConnections(); } };
}


function node(args, port) {
    const child = spawn(process.execPath, args, {
        stdio: 'ignore', env: { ...process.env, PORT: port }
    });

    return { kill: () => child.kill('SIGKILL') };
}


const servers = {
    everything: { port: everything, start: () => node(
        ['--import', './loopback.mjs', program, 'streamableHttp'],
        everything) },
    sdk: { port: sdk, start: () => node(['fixture-server.mjs', sdk], sdk) },
    rpc: { port: rpc, start: plain }
};


const listening = port => new Promise(resolve => {
    const s = net.connect(Number(port), '127.0.0.1');
    s.on('connect', () => { s.destroy(); resolve(true); });
    s.on('error', () => resolve(false));
});


async function up(name) {
    servers[name].running = servers[name].start();

    if (!await until(() => listening(servers[name].port))) {
        throw new Error(`${name} did not start`);
    }
}


async function down(name) {
    servers[name].running.kill();
    await until(async () => !await listening(servers[name].port));
}


process.on('exit', () => {
    for (const { running } of Object.values(servers)) {
        running?.kill();
    }
});


/* one tool of each */

const calls = {
    everything: ['everything__echo', { message: 'hello' },
                 /^Echo: hello$/],
    sdk: ['test_simple_text', {}, /^A simple text/],
    rpc: ['rpc__add', { a: 2, b: 3 }, /^5$/]
};


async function call(client, name) {
    const [tool, args, wanted] = calls[name];
    const e = await failure(client.callTool({ name: tool, arguments: args })
        .then(r => {
            if (!wanted.test(r.content[0].text)) {
                throw new Error(r.content[0].text);
            }
        }));

    return e === null ? true : e.message;
}


const names = async client =>
    (await client.listTools()).tools.map(t => t.name).sort();


async function works(label, Client, Transport) {
    const client = new Client({ name: label, version: '1' },
                              { capabilities: {} });

    await client.connect(new Transport(new URL(url)));

    const caps = client.getServerCapabilities();

    check(caps.tools && caps.prompts && caps.resources && caps.logging
          && caps.completions, `${label}: capabilities of all`, caps);

    const tools = await names(client);

    for (const name of Object.keys(calls)) {
        check(tools.includes(calls[name][0]), `${label}: ${name} is listed`,
              tools);
        same(await call(client, name), true, `${label}: ${name} is called`);
    }

    const prompts = (await client.listPrompts()).prompts.map(p => p.name);

    check(prompts.includes('everything__simple-prompt')
          && prompts.includes('test_simple_prompt'),
          `${label}: prompts of both`, prompts);

    const prompt = await client.getPrompt({
        name: 'everything__simple-prompt' });

    check(prompt.messages.length > 0, `${label}: a prompt`, prompt);

    const resources = (await client.listResources()).resources
        .map(r => r.uri);
    const mine = resources.find(u => u.startsWith('test://'));
    const theirs = resources.find(u => !u.startsWith('test://'));

    for (const uri of [mine, theirs]) {
        const { contents } = await client.readResource({ uri });
        same(contents[0].uri, uri, `${label}: a resource of each`);
    }

    for (const name of Object.keys(servers)) {
        await down(name);

        const others = Object.keys(servers).filter(n => n !== name);

        for (const other of others) {
            same(await call(client, other), true,
                 `${label}: ${other} is called while ${name} is away`);
        }

        const said = await call(client, name);

        check(said !== true && /cannot be reached/.test(said),
              `${label}: ${name} is away, and the client is told`, said);

        const fresh = new Client({ name: `${label} fresh`, version: '1' },
                                 { capabilities: {} });

        await fresh.connect(new Transport(new URL(url)));

        same(Object.keys(fresh.getServerCapabilities()).sort(),
             Object.keys(caps).sort(),
             `${label}: a new client is offered all while ${name} is away`);

        await fresh.close();
        await up(name);

        same(await until(async () => await call(client, name) === true), true,
             `${label}: ${name} is called again after its restart`);
    }

    const again = await until(async () => {
        const now = await names(client);
        return JSON.stringify(now) === JSON.stringify(tools) && now;
    });

    same(again, tools, `${label}: all is listed again`);

    await client.close();
}


for (const name of Object.keys(servers)) {
    await up(name);
}

await sections({
    'SDK 1': () => works('SDK 1', Client1, Transport1),
    'SDK 2': () => works('SDK 2', Client2, Transport2)
});

done();
