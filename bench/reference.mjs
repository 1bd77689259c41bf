// SPDX-License-Identifier: Apache-2.0
// Servers made with the official TypeScript SDK, for bench/transports: one tool, run_script,
// that hands its script to a python3 of its own, without any jail.
//   node reference.mjs stdio | http | stdio-modern | http-modern      (http: prints its port)
// The older SDK serves the legacy era in sessions, the newer one the modern era.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { McpServer as ModernServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
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

function withTool(server, inputSchema) {
  server.registerTool('run_script', { description: 'Runs Python.', inputSchema },
    async ({ script }) => ({ content: [{ type: 'text', text: await python(script) }] }));
  return server;
}

const about = { name: 'reference', version: '1' };
const makeServer = () => withTool(new McpServer(about), { script: z.string() });
const makeModern = () => withTool(new ModernServer(about), z.object({ script: z.string() }));

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

// The handler has the web's Request and Response; node's are others.
const handler = createMcpHandler(makeModern);

async function serveModern(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const answer = await handler.fetch(new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method, headers: request.headers, body: Buffer.concat(pieces),
  }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function listen(on) {
  const server = http.createServer(on);
  server.keepAliveTimeout = 0;		// others take their turns meanwhile
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}

const ways = {
  'stdio': () => makeServer().connect(new StdioServerTransport()),
  'http': () => listen(serve),
  'stdio-modern': () => serveStdio(makeModern),
  'http-modern': () => listen(serveModern),
};
await ways[process.argv[2]]();
