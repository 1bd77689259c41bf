// A server made with the official TypeScript SDK, for bench/transports: one tool, run_script,
// that hands its script to a python3 of its own, without any jail.
//   node reference.mjs stdio | node reference.mjs http      (prints its port)
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function python(script) {
  return new Promise((resolve) => {
    const child = spawn('/usr/bin/python3', ['-I', '-'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (piece) => { text += piece; });
    child.on('close', () => resolve(text));
    child.stdin.end(script);
  });
}

function makeServer() {
  const server = new McpServer({ name: 'reference', version: '1' });
  server.registerTool('run_script', { description: 'Runs Python.', inputSchema: { script: z.string() } },
    async ({ script }) => ({ content: [{ type: 'text', text: await python(script) }] }));
  return server;
}

const transports = new Map();

async function serve(request, response) {
  let transport = transports.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (id) => { transports.set(id, transport); },
    });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(request, response);
}

if (process.argv[2] === 'stdio') {
  await makeServer().connect(new StdioServerTransport());
} else {
  const server = http.createServer(serve);
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}
