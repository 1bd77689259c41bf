// SPDX-License-Identifier: Apache-2.0
// The second generation of the official SDK, which speaks both eras.
//   node v2.mjs legacy|auto|pin shipped|fixtures TRANSPORT PLACE [ARGS...]
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { runAll, watch } from './steps.mjs';
import { parse } from './target.mjs';

const MODERN = '2026-07-28';
const [mode, program, ...where] = process.argv.slice(2);

await runAll(program, async () => {
  const target = parse(where);
  const options = { capabilities: { elicitation: { form: {} } } };
  if (mode === 'auto') options.versionNegotiation = { mode: 'auto' };
  if (mode === 'pin') options.versionNegotiation = { mode: { pin: MODERN } };
  const sdk = new Client({ name: 'conformance-v2', version: '1' }, options);
  // It reports by the modern code in every revision.
  const client = { asked: [], noResource: -32602 };
  sdk.setRequestHandler('elicitation/create', async ({ params }) => {
    client.asked.push(params);
    return client.reply;
  });
  const transport = watch(target.http
    ? new StreamableHTTPClientTransport(target.http, { fetch: target.fetch })
    : new StdioClientTransport({ command: target.command, args: target.args }));
  await sdk.connect(transport);
  assert.equal(sdk.getProtocolEra(), mode === 'legacy' ? 'legacy' : 'modern');
  assert.equal(sdk.getServerVersion().name, 'mcp-pythond');
  return Object.assign(client, {
    call: (name, args, opts) => sdk.callTool({ name, arguments: args }, opts),
    tools: async () => (await sdk.listTools()).tools,
    read: (uri) => sdk.readResource({ uri }),
    prompt: (name, args) => sdk.getPrompt({ name, arguments: args }),
    subscribe: async (uri) => {
      if (mode !== 'legacy') {
        const listening = await sdk.listen({ resourceSubscriptions: [uri] });
        assert.deepEqual(listening.honoredFilter.resourceSubscriptions, [uri]);
        return () => listening.close();
      }
      await sdk.subscribeResource({ uri });
      return () => sdk.unsubscribeResource({ uri });
    },
    close: async () => {
      if (target.http && mode === 'legacy') await transport.terminateSession();
      await sdk.close();
      await target.close?.();
    },
  });
});
