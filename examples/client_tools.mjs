// SPDX-License-Identifier: Apache-2.0
// A client of the official TypeScript SDK with a tool of its own, which a script calls in a loop: the
// model's context gets one line instead of ten results.
//   npm install @modelcontextprotocol/sdk zod
//   node client_tools.mjs mcp-python connect
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { z } from 'zod';

const KEY = 'io.github.mcp-pythond/client-tools';
const tools = [{
  name: 'stock',
  description: 'How many pieces of an article are in the store.',
  inputSchema: { type: 'object', properties: { article: { type: 'integer' } }, required: ['article'] },
  outputSchema: { type: 'object', properties: { pieces: { type: 'integer' } }, required: ['pieces'] },
}];

const client = new Client({ name: 'shop', version: '1' },
  { capabilities: { experimental: { [KEY]: { tools } } } });

// The server's request has the same params as tools/call, and its answer is a result of tools/call.
const ToolCall = z.object({
  method: z.literal(`${KEY}/call`),
  params: z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
});
let calls = 0;
client.setRequestHandler(ToolCall, async ({ params }) => {
  // A script may be hostile: check the name and the arguments, as for a model's call.
  const { article } = params.arguments;
  if (params.name !== 'stock' || !Number.isInteger(article))
    return { isError: true, content: [{ type: 'text', text: 'no such tool, or no such article' }] };
  calls++;
  return { content: [], structuredContent: { pieces: 100 * article + 120 } };
});

const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args }));
const { structuredContent } = await client.callTool({ name: 'run_script', arguments: { script: `
import tools
print(sum(tools.client.stock(article=n)["pieces"] for n in range(10)))
` } });
console.log(`the tool was called ${calls} times`);
process.stdout.write(structuredContent.stdout);
await client.close();
