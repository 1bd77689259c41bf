// SPDX-License-Identifier: Apache-2.0
// Where a client goes: { http: URL, fetch? } or { command, args }.
//   target.mjs's parse(["tcp", URL] | ["unix", SOCKET] | ["bridge", COMMAND, ARGS...])
import { Agent, fetch as undiciFetch } from 'undici';

export function parse([kind, place, ...args]) {
  if (kind === 'bridge') return { command: place, args };
  if (kind === 'tcp') return { http: new URL(place) };
  if (kind !== 'unix') throw new Error(`no such transport: ${kind}`);
  const dispatcher = new Agent({ connect: { socketPath: place } });
  return {
    http: new URL('http://localhost/mcp'),
    fetch: (url, init) => undiciFetch(url, { ...init, dispatcher }),
    close: () => dispatcher.close(),
  };
}
