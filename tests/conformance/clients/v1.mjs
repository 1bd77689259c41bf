// SPDX-License-Identifier: Apache-2.0
// The first generation of the official SDK, which speaks legacy revisions alone.
//   node v1.mjs shipped|fixtures TRANSPORT PLACE [ARGS...]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { runAll, watch } from './steps.mjs';
import { parse } from './target.mjs';

const [program, ...where] = process.argv.slice(2);

await runAll(program, async () => {
  const target = parse(where);
  const options = { capabilities: { elicitation: { form: {} } } };
  const sdk = new Client({ name: 'conformance-v1', version: '1' }, options);
  const client = { asked: [], noResource: -32002 };
  sdk.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    client.asked.push(params);
    return client.reply;
  });
  const transport = watch(target.http
    ? new StreamableHTTPClientTransport(target.http, { fetch: target.fetch })
    : new StdioClientTransport({ command: target.command, args: target.args }));
  await sdk.connect(transport);
  return Object.assign(client, {
    call: (name, args, options) => sdk.callTool({ name, arguments: args }, undefined, options),
    tools: async () => (await sdk.listTools()).tools,
    read: (uri) => sdk.readResource({ uri }),
    prompt: (name, args) => sdk.getPrompt({ name, arguments: args }),
    subscribe: async (uri) => {
      await sdk.subscribeResource({ uri });
      return () => sdk.unsubscribeResource({ uri });
    },
    close: async () => {
      if (target.http) await transport.terminateSession();
      await sdk.close();
      await target.close?.();
    },
  });
});
