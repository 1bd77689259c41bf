// SPDX-License-Identifier: Apache-2.0
// Servers that are commands of the older era, made reachable as their programs are not: by HTTP, and in
// the newer era. The official SDK is the client of each, and the server in its place; tools, arguments
// and results go through unchanged.
//   node gateway.mjs stdio NAME     one of them in the newer era
//   node gateway.mjs SOCKET         all, at /legacy/NAME and /modern/NAME
// commands.json beside this file has {NAME: [PROGRAM, ARGUMENT ...]}.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Server as ModernServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const about = { name: 'gateway', version: '1' };
const options = { capabilities: { tools: {} } };

async function connect([command, ...args]) {
  const client = new Client(about);
  await client.connect(new StdioClientTransport({ command, args, env: process.env }));
  return client;
}

// What only exists as a task of the older era stays out.
async function list(client) {
  const { tools } = await client.listTools();
  return { tools: tools.filter((tool) => tool.execution?.taskSupport !== 'required') };
}

function legacy(client) {
  const server = new Server(about, options);
  server.setRequestHandler(ListToolsRequestSchema, () => list(client));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => client.callTool(params));
  return server;
}

function modern(client) {
  const server = new ModernServer(about, options);
  server.setRequestHandler('tools/list', () => list(client));
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }) =>
    client.callTool({ name, arguments: args }));
  return server;
}

function serveLegacy(client) {
  const transports = new Map();
  return async (request, response) => {
    let transport = transports.get(request.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => { transports.set(id, transport); },
      });
      await legacy(client).connect(transport);
    }
    await transport.handleRequest(request, response);
  };
}

// The handler has the web's Request and Response; node's are others.
function serveModern(client) {
  const handler = createMcpHandler(() => modern(client));
  return async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const answer = await handler.fetch(new Request(`http://localhost${request.url}`, {
      method: request.method, headers: request.headers, body: Buffer.concat(pieces),
    }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const piece of answer.body ?? []) response.write(piece);
    response.end();
  };
}

const [where, name] = process.argv.slice(2);
const commands = JSON.parse(readFileSync(`${import.meta.dirname}/commands.json`, 'utf8'));
if (where === 'stdio') {
  const client = await connect(commands[name]);
  serveStdio(() => modern(client));
} else {
  const serve = new Map();
  for (const [one, command] of Object.entries(commands)) {
    const client = await connect(command);
    serve.set(`/legacy/${one}`, serveLegacy(client));
    serve.set(`/modern/${one}`, serveModern(client));
  }
  const server = http.createServer((request, response) =>
    serve.get(request.url)?.(request, response) ?? response.writeHead(404).end());
  server.listen(where, () => console.error('listening'));
}
