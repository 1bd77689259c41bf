// SPDX-License-Identifier: Apache-2.0
// The SDKs of E2B against the gateway, as their README files use them. Arguments: the address of the
// gateway, the package of `Sandbox`, the package of the code interpreter or "-". One line per step.
import assert from 'node:assert/strict';

const [url, e2bName, codeName] = process.argv.slice(2);
const options = { apiKey: process.env.E2B_API_KEY, apiUrl: url, sandboxUrl: url };
const e2b = await import(e2bName);
const { Sandbox } = e2b;

const STEPS = {
  async commands() {
    const box = await Sandbox.create({ ...options, timeoutMs: 60_000, metadata: { user: 'ada' }, envs: { A: '1' } });
    try {
      assert.equal((await box.commands.run('echo "Hello from E2B!"')).stdout, 'Hello from E2B!\n');
      assert.equal((await box.commands.run('echo $A $B; pwd', { envs: { B: 'é' } })).stdout, '1 é\n/home/user\n');
      await assert.rejects(box.commands.run('echo no >&2; exit 3'),
        (e) => e.constructor.name === 'CommandExitError' && e.exitCode === 3 && e.stderr === 'no\n');
      await assert.rejects(box.commands.run('sleep 9', { timeoutMs: 500 }), { name: 'TimeoutError' });
      const seen = [];
      await box.commands.run('echo 1; sleep 0.3; echo 2', { onStdout: (text) => seen.push(text) });
      assert.equal(seen.join(''), '1\n2\n');
      const cat = await box.commands.run('cat', { background: true, stdin: true });
      await box.commands.sendStdin(cat.pid, 'hi');
      assert.deepEqual((await box.commands.list()).map((p) => p.pid), [cat.pid]);
      const again = await box.commands.connect(cat.pid);
      await box.commands.closeStdin?.(cat.pid);
      if (!box.commands.closeStdin) assert.equal(await cat.kill(), true);
      else assert.equal((await cat.wait()).stdout, 'hi');
      await again.wait().catch(() => undefined);
      const sleeps = await box.commands.run('sleep 300', { background: true });
      assert.equal(await sleeps.kill(), true);
      assert.equal(await box.commands.kill(99), false);
    } finally {
      assert.equal(await box.kill(), true);
    }
    await assert.rejects(box.commands.run('true'));
    assert.equal(await Sandbox.kill(box.sandboxId, options), false);
  },

  async files() {
    const box = await Sandbox.create({ ...options, timeoutMs: 60_000 });
    try {
      await box.files.write('a.txt', 'abc é');
      assert.equal(await box.files.read('a.txt'), 'abc é');
      await box.files.write('/home/user/with space/empty', '');
      assert.equal(await box.files.read('with space/empty'), '');
      await box.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: 'two' }]);
      assert.deepEqual((await box.files.list('m')).map((e) => [e.name, e.type, e.path]),
        [['1', 'file', '/home/user/m/1'], ['2', 'file', '/home/user/m/2']]);
      const large = new Uint8Array(10 << 20).fill(65);
      await box.files.write('large', large.buffer);
      assert.equal((await box.files.read('large', { format: 'bytes' })).length, large.length);
      assert.equal((await box.commands.run('stat -c %s large')).stdout, `${large.length}\n`);
      assert.equal(await box.files.exists('nothing'), false);
      assert.equal(await box.files.exists('a.txt'), true);
      assert.equal(await box.files.makeDir('d/e'), true);
      assert.equal(await box.files.makeDir('d/e'), false);
      assert.equal((await box.files.rename('a.txt', 'd/b.txt')).path, '/home/user/d/b.txt');
      await box.files.remove('d');
      assert.equal(await box.files.exists('d/b.txt'), false);
      await assert.rejects(box.files.read('nothing'),
        (e) => ['NotFoundError', 'FileNotFoundError'].includes(e.constructor.name));
      const link = await box.downloadUrl('m/1');
      // A link names the sandbox by its host; behind one address, by its header.
      const got = await fetch(link, { headers: { 'E2b-Sandbox-Id': box.sandboxId } });
      assert.equal(await got.text(), 'one');
    } finally {
      await box.kill();
    }
  },

  async life() {
    const box = await Sandbox.create({ ...options, timeoutMs: 60_000, metadata: { only: 'life' } });
    const info = await box.getInfo();
    assert.equal(info.sandboxId, box.sandboxId);
    assert.deepEqual(info.metadata, { only: 'life' });
    const listed = await Sandbox.list({ ...options, query: { metadata: { only: 'life' } } });
    const found = Array.isArray(listed) ? listed : await listed.nextItems();
    assert.deepEqual(found.map((s) => s.sandboxId), [box.sandboxId]);
    await box.files.write('kept', 'yes');
    await (box.pause ?? box.betaPause).call(box);
    const back = await Sandbox.connect(box.sandboxId, options);
    assert.equal(await back.files.read('kept'), 'yes');
    assert.equal(await back.isRunning(), true);
    await back.setTimeout(30_000);
    await back.kill();
    assert.equal(await back.isRunning(), false);
    await assert.rejects(Sandbox.create({ ...options, apiKey: 'e2b_0000000000000000000000000000000000000000' }));
  },
};

if (codeName !== '-') {
  const code = await import(codeName);
  STEPS.code = async () => {
    const box = await code.Sandbox.create({ ...options, timeoutMs: 60_000 });
    try {
      await box.runCode('x = 1');
      assert.equal((await box.runCode('x += 1; x')).text, '2');
      const streamed = [];
      const run = await box.runCode('print("é")\nimport sys\nprint("e", file=sys.stderr)', {
        onStdout: (m) => streamed.push(m.line), onStderr: (m) => streamed.push(m.line),
      });
      assert.deepEqual([run.logs.stdout.join(''), run.logs.stderr.join('')], ['é\n', 'e\n']);
      assert.equal(streamed.length, 2);
      const failed = await box.runCode('1 / 0');
      assert.equal(failed.error.name, 'ZeroDivisionError');
      const figure = await box.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()');
      assert.ok(figure.results.some((r) => r.png?.startsWith('iVBOR')), JSON.stringify(figure.error));
      const context = await box.createCodeContext();
      assert.equal((await box.runCode('"x" in globals()', { context })).text, 'False');
      assert.equal((await box.runCode('import os; os.environ["E"]', { envs: { E: 'v' } })).text, 'v');
      await box.files.write('data.csv', 'a\n1\n2\n');
      assert.equal((await box.runCode('sum(map(int, open("data.csv").read().split()[1:]))')).text, '3');
    } finally {
      await box.kill();
    }
  };
}

let failed = false;
for (const [step, run] of Object.entries(STEPS)) {
  let error;
  try {
    await run();
  } catch (e) {
    failed = true;
    error = String(e?.stack ?? e).slice(0, 1500);
  }
  console.log(JSON.stringify({ step, error }));
}
process.exit(failed ? 1 : 0);
