// SPDX-License-Identifier: Apache-2.0
// JupyterLab's own client of kernels against the gateway. Arguments: the address, the token. One line per step.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { KernelManager, ServerConnection } = require('@jupyterlab/services');
const [url, token] = process.argv.slice(2);
const serverSettings = ServerConnection.makeSettings({
  baseUrl: url, wsUrl: url.replace('http', 'ws'), token, appendToken: true, WebSocket: require('ws'), fetch,
});
const manager = new KernelManager({ serverSettings });

// The messages that a cell brought about, and its reply.
async function run(kernel, code) {
  const future = kernel.requestExecute({ code });
  const messages = [];
  future.onIOPub = (message) => messages.push(message);
  const reply = await future.done;
  const of = (type) => messages.filter((m) => m.header.msg_type === type).map((m) => m.content);
  return { reply: reply.content, of, stdout: of('stream').map((c) => c.text).join('') };
}

const STEPS = {
  async cells(kernel) {
    assert.equal((await kernel.info).language_info.name, 'python');
    const first = await run(kernel, 'x = 20\nprint("é")\nx + 1');
    assert.equal(first.stdout, 'é\n');
    assert.equal(first.of('execute_result')[0].data['text/plain'], '21');
    const failed = await run(kernel, '1 / 0');
    assert.equal(failed.reply.ename, 'ZeroDivisionError');
    const shown = await run(kernel, 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()');
    assert.ok(shown.of('display_data')[0].data['image/png'].startsWith('iVBOR'));
  },
  async looks(kernel) {
    await run(kernel, 'number = 1');
    const found = await kernel.requestComplete({ code: 'numb', cursor_pos: 4 });
    assert.deepEqual(found.content.matches, ['number']);
    const seen = await kernel.requestInspect({ code: 'number', cursor_pos: 6, detail_level: 0 });
    assert.match(seen.content.data['text/plain'], /int/);
    assert.equal((await kernel.requestIsComplete({ code: 'for i in x:' })).content.status, 'incomplete');
  },
  async interrupts(kernel) {
    const future = kernel.requestExecute({ code: 'import time\nprint("on", flush=True)\ntime.sleep(300)' });
    await new Promise((resolve) => { future.onIOPub = (m) => m.header.msg_type === 'stream' && resolve(); });
    await kernel.interrupt();
    assert.equal((await future.done).content.ename, 'KeyboardInterrupt');
    assert.equal((await run(kernel, 'number')).of('execute_result')[0].data['text/plain'], '1');
  },
  async restarts(kernel) {
    await kernel.restart();
    assert.equal((await run(kernel, 'number')).reply.ename, 'NameError');
  },
  async shares(kernel) {
    // Two clients of one kernel see the same.
    const other = manager.connectTo({ model: kernel.model });
    await other.info;
    await run(other, 'shared = 7');
    assert.equal((await run(kernel, 'shared')).of('execute_result')[0].data['text/plain'], '7');
    other.dispose();
  },
};

let failed = false;
const kernel = await manager.startNew({ name: 'python3' });
for (const [step, test] of Object.entries(STEPS)) {
  let error;
  try {
    await test(kernel);
  } catch (e) {
    failed = true;
    error = String(e?.stack ?? e).slice(0, 1500);
  }
  console.log(JSON.stringify({ step, error }));
}
await kernel.shutdown();
process.exit(failed ? 1 : 0);
