// SPDX-License-Identifier: Apache-2.0
// As client_tools.mjs, for revision 2026-07-28: the calls come as input requests of the result, and the
// client makes the same call again with their results.
//   npm install @modelcontextprotocol/client
//   node client_tools_modern.mjs mcp-python connect
import { Client, isInputRequiredResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const KEY = 'io.github.mcp-pythond/client-tools';
const tools = [{
  name: 'stock',
  description: 'How many pieces of an article are in the store.',
  inputSchema: { type: 'object', properties: { article: { type: 'integer' } }, required: ['article'] },
  outputSchema: { type: 'object', properties: { pieces: { type: 'integer' } }, required: ['pieces'] },
}];

const client = new Client({ name: 'shop', version: '2' }, {
  capabilities: { extensions: { [KEY]: { tools } } },
  versionNegotiation: { mode: { pin: '2026-07-28' } },
});

let calls = 0;
function callTool({ method, params }) {
  // A script may be hostile: check the name and the arguments, as for a model's call.
  const { article } = params.arguments;
  if (method !== `${KEY}/call` || params.name !== 'stock' || !Number.isInteger(article))
    return { isError: true, content: [{ type: 'text', text: 'no such tool, or no such article' }] };
  calls++;
  return { content: [], structuredContent: { pieces: 100 * article + 120 } };
}

async function runScript(script) {
  const params = { name: 'run_script', arguments: { script } };
  let result = await client.callTool(params, { allowInputRequired: true });
  while (isInputRequiredResult(result)) {
    const inputResponses = Object.fromEntries(Object.entries(result.inputRequests).map(
      ([key, request]) => [key, callTool(request)]));
    result = await client.callTool({ ...params, inputResponses, requestState: result.requestState },
      { allowInputRequired: true });
  }
  return result;
}

const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args }));
const { structuredContent } = await runScript(`
import asyncio, tools
async def main():
    return await asyncio.gather(*(tools.client.stock.aio(article=n) for n in range(10)))
print(sum(one["pieces"] for one in asyncio.run(main())))
`);
console.log(`the tool was called ${calls} times`);
process.stdout.write(structuredContent.stdout);
await client.close();
