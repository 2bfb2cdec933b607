/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 *
 * What a real client does with server-everything, for either SDK. The adapter
 * has: make(capabilities, options), answer(client, method, handler),
 * hear(client, method, handler), call(client, name, args, options).
 */

import { check, failure, same, sections, until } from './checks.mjs';


const CAPABILITIES = {
    sampling: {}, elicitation: { form: {} }, roots: { listChanged: true }
};


const textOf = (r) => r.content?.map((c) => c.text ?? '').join('\n') ?? '';


export async function everything(sdk) {
    const { client, transport } = await sdk.make(CAPABILITIES);
    const heard = [];
    let roots = [{ uri: 'file:///one', name: 'one' }];
    let rootsAsked = 0;

    for (const method of ['message', 'resources/updated',
                          'resources/list_changed', 'tools/list_changed'])
    {
        sdk.hear(client, `notifications/${method}`, (n) => {
            heard.push({ method, params: n.params, at: Date.now() });
        });
    }

    const hears = (method, match = () => true, ms) =>
        until(() => heard.find((h) => h.method === method
                                      && match(h.params ?? {})), ms);

    /* all that was sent on the stream so far has come */

    const reached = async () => {
        const n = heard.length;

        await call('toggle-simulated-logging', {});
        check(await until(() => heard.slice(n).some(
            (h) => h.method === 'message' && /level/i.test(h.params.data))),
              'a log message');
        await call('toggle-simulated-logging', {});
    };

    sdk.answer(client, 'sampling/createMessage', (r) => ({
        model: 'a-model', role: 'assistant', stopReason: 'endTurn',
        content: { type: 'text',
                   text: `echo of ${r.params.messages[0].content.text}` }
    }));

    sdk.answer(client, 'elicitation/create', (r) => ({
        action: 'accept',
        content: { name: 'Grace', integer: 7, check: true,
                   homepage: r.params.message ? 'https://example.com' : '' }
    }));

    sdk.answer(client, 'roots/list', () => {
        rootsAsked++;
        return { roots };
    });

    await client.connect(transport);

    const call = (name, args, options) => sdk.call(client, name, args, options);

    await sections({
        async connected() {
            check(transport.sessionId, 'a session', transport.sessionId);
            sdk.connected?.(client);
            same(client.getServerVersion()?.name, 'mcp-servers/everything',
                 'name of the server behind');
            check(client.getServerCapabilities()?.tools, 'tools offered',
                  client.getServerCapabilities());
            check(client.getServerCapabilities()?.resources?.subscribe,
                  'subscriptions offered');
            check(client.getInstructions()?.length > 0, 'instructions');
            await client.ping();
            check(true, 'ping');
        },

        async tools() {
            /* those that depend on the client's capabilities come with the
               notifications/initialized */
            const names = await until(async () => {
                const list = (await client.listTools()).tools
                    .map((t) => t.name);
                return list.includes('get-roots-list') && list;
            });

            for (const name of ['echo', 'get-sum', 'get-roots-list',
                                'trigger-sampling-request',
                                'trigger-elicitation-request'])
            {
                check(names?.includes?.(name), `tool ${name} is listed`, names);
            }

            same(textOf(await call('echo', { message: 'h\u00e9llo' })),
                 'Echo: h\u00e9llo', 'echo');
            check(/\b12\b/.test(textOf(await call('get-sum', { a: 5, b: 7 }))),
                  'sum');

            const image = await call('get-tiny-image', {});
            check(image.content.some((c) => c.type === 'image'
                                            && c.data.length > 1000),
                  'an image');

            const structured = await call('get-structured-content',
                                          { location: 'Chicago' });
            check(structured.structuredContent?.temperature !== undefined,
                  'structured content', structured);

            const links = await call('get-resource-links', { count: 3 });
            same(links.content.filter((c) => c.type === 'resource_link').length,
                 3, 'resource links');

            const bad = await call('get-sum', { a: 'x' }).catch((e) => e);
            check(bad.isError || bad.code, 'bad arguments', bad);

            const long = 'x'.repeat(300_000);
            check(textOf(await call('echo', { message: long })).endsWith(long),
                  'a long message');

            const many = await Promise.all([...Array(20).keys()].map(
                (n) => call('echo', { message: `m${n}` })));
            same(many.map(textOf), [...Array(20).keys()].map(
                (n) => `Echo: m${n}`), '20 calls at once');
        },

        async progress() {
            const seen = [];
            const r = await call('trigger-long-running-operation',
                                 { duration: 2.4, steps: 4 }, {
                onprogress: (p) => seen.push([p.progress, Date.now()])
            });
            const end = Date.now();

            same(seen.map((s) => s[0]), [1, 2, 3, 4], 'progress');
            check(/completed/.test(textOf(r)), 'and the result');

            /* sent 600 ms apart; held back they would come all at once */
            const at = [...seen.slice(1).map((s) => s[1]), end];
            const apart = Math.max(...at.slice(1).map((t, i) => t - at[i]));

            check(end - seen[0]?.[1] > 300, 'the first came when it was sent',
                  end - seen[0]?.[1]);
            check(apart > 100, 'and the others too', apart);
        },

        async sampling() {
            const t = textOf(await call('trigger-sampling-request',
                                        { prompt: 'a prompt', maxTokens: 9 }));
            check(/echo of .*a prompt/.test(t), 'sampling', t);
        },

        async elicitation() {
            const t = textOf(await call('trigger-elicitation-request', {}));
            check(/Name: Grace/.test(t) && /Favorite Integer: 7/.test(t),
                  'elicitation', t);
        },

        async roots() {
            const t = textOf(await call('get-roots-list', {}));
            check(/file:\/\/\/one/.test(t), 'roots', t);

            const asked = rootsAsked;
            roots = [{ uri: 'file:///two', name: 'two' }];
            await client.sendRootsListChanged();
            check(await until(() => rootsAsked > asked),
                  'changed roots are asked for');
            check(await until(async () => /file:\/\/\/two/.test(
                textOf(await call('get-roots-list', {})))), 'and known');
        },

        async resources() {
            const { resources } = await client.listResources();
            check(resources.length > 0, 'resources', resources.length);

            const { resourceTemplates } = await client.listResourceTemplates();
            check(resourceTemplates.length >= 2, 'templates',
                  resourceTemplates);

            const uri = 'demo://resource/dynamic/text/1';
            const r = await client.readResource({ uri });
            check(r.contents[0].uri === uri && r.contents[0].text,
                  'a text resource', r);

            const blob = await client.readResource({
                uri: 'demo://resource/dynamic/blob/2'
            });
            check(blob.contents[0].blob, 'a binary resource', blob);

            check(await failure(client.readResource({ uri: 'demo://none' })),
                  'no such resource');
        },

        async list_changed() {
            const n = heard.length;

            await call('gzip-file-as-resource', {
                name: `${transport.sessionId}.gz`,
                data: 'data:text/plain,hello'
            });
            check(await until(() => heard.slice(n).some(
                (h) => h.method === 'resources/list_changed')),
                'resources/list_changed', heard.slice(n));

            const { resources } = await client.listResources();
            check(resources.some((x) => x.uri.includes(transport.sessionId)),
                  'the new resource is listed');
        },

        async logging() {
            await client.setLoggingLevel('debug');
            await call('toggle-simulated-logging', {});
            check(await hears('message', (p) => /level/i.test(p.data)),
                  'a log message');
            await call('toggle-simulated-logging', {});
        },

        async subscription() {
            const uri = 'demo://resource/dynamic/text/5';

            await client.subscribeResource({ uri });
            await call('toggle-subscriber-updates', {});
            check(await hears('resources/updated', (p) => p.uri === uri),
                  'an update of what was subscribed to');

            await client.unsubscribeResource({ uri });
            await reached();

            /* one that the server sent before may come late on a slow machine,
               even without the module between */

            let quiet = false;

            for (let i = 0; i < 3 && !quiet; i++) {
                const n = heard.length;

                await call('toggle-subscriber-updates', {});
                await call('toggle-subscriber-updates', {});
                await reached();
                quiet = !heard.slice(n).some(
                    (h) => h.method === 'resources/updated');
            }

            check(quiet, 'none after unsubscribing');
        },

        async prompts() {
            const { prompts } = await client.listPrompts();
            check(prompts.some((p) => p.name === 'args-prompt'), 'prompts');

            const r = await client.getPrompt({
                name: 'args-prompt', arguments: { city: 'Paris' }
            });
            check(/Paris/.test(JSON.stringify(r.messages)), 'a prompt', r);
        },

        async completion() {
            const r = await client.complete({
                ref: { type: 'ref/prompt', name: 'completable-prompt' },
                argument: { name: 'department', value: 'S' }
            });
            same(r.completion.values, ['Sales', 'Support'], 'completion');
        },

        async cancellation() {
            const stop = new AbortController();
            const began = Date.now();
            const seen = [];

            setTimeout(() => stop.abort('enough'), 500);

            const e = await failure(call('trigger-long-running-operation',
                                         { duration: 6, steps: 30 }, {
                signal: stop.signal,
                onprogress: (p) => seen.push(p.progress)
            }));

            check(e && Date.now() - began < 5000, 'a call is cancelled',
                  e?.message);

            same(textOf(await call('echo', { message: 'after' })),
                 'Echo: after', 'and the session goes on');
        },

        async timeout() {
            const e = await failure(call('trigger-long-running-operation',
                                         { duration: 5, steps: 1 },
                                         { timeout: 300 }));
            check(e, 'a call times out', e?.message);
        },

        async end() {
            const id = transport.sessionId;

            await transport.terminateSession();
            check(transport.sessionId === undefined, 'the session is ended');
            await client.close();

            const r = await fetch(sdk.url, {
                method: 'POST',
                headers: { 'Content-Type': 'application/json',
                           Accept: 'application/json, text/event-stream',
                           'Mcp-Session-Id': id },
                body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
            });
            check(r.status === 404 || sdk.straight, 'its id is not known',
                  r.status);
        }
    });
}
