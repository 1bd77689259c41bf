// SPDX-License-Identifier: Apache-2.0
// LibreChat's own client of its Code API against the gateway. Arguments: the address, the token. One line per step.
import assert from 'node:assert/strict';

const [url, token] = process.argv.slice(2);
process.env.LIBRECHAT_CODE_BASEURL = `${url}/v1`;	// read when it is imported
const { createCodeExecutionTool, createBashExecutionTool, createProgrammaticToolCallingTool } =
  await import('@librechat/agents');

const authHeaders = { Authorization: `Bearer ${token}` };
const python = createCodeExecutionTool({ authHeaders });
let count = 0;

// What the model reads, and what LibreChat keeps.
async function call(tool, name, args, more = {}) {
  const said = await tool.invoke({ type: 'tool_call', id: `call_${count++}`, name, args, ...more });
  return { text: said.content, kept: said.artifact };
}
const run = (code, more = {}) => call(python, 'execute_code', { lang: 'py', code }, more);

function tools(functions) {
  const toolMap = new Map(Object.entries(functions).map(([name, invoke]) => [name, { name, invoke }]));
  const toolDefs = Object.keys(functions).map((name) => ({
    name, description: 'A test', parameters: { type: 'object', properties: {} }, allowed_callers: ['code_execution'],
  }));
  return { toolMap, toolDefs };
}
const programmatic = createProgrammaticToolCallingTool({ authHeaders });
const runWithTools = (code, functions) => call(programmatic, 'run_tools_with_code', { code }, tools(functions));

const STEPS = {
  async code() {
    assert.match((await run('print(6 * 7, "é")')).text, /42 é/);
    assert.match((await run('1 / 0')).text, /ZeroDivisionError/);
    assert.match((await run('x = "x" * (1 << 40)')).text, /Out of memory/);
    const args = await call(python, 'execute_code', { lang: 'py', code: 'import sys; print(sys.argv[1:])', args: ['a b'] });
    assert.match(args.text, /\['a b'\]/);
    await assert.rejects(call(python, 'execute_code', { lang: 'rs', code: 'fn main() {}' }));
  },

  async bash() {
    const bash = createBashExecutionTool({ authHeaders });
    assert.match((await call(bash, 'bash_tool', { command: 'echo $((6 * 7)); pwd' })).text, /42\n\/(mnt\/data|workspace)/);
    assert.match((await call(bash, 'bash_tool', { command: 'echo no >&2; exit 3' })).text, /no/);
  },

  async files() {
    const made = await run('open("/mnt/data/a.csv", "w").write("a,b\\n1,2\\n")');
    const [file] = made.kept.files;
    assert.equal(file.name, 'a.csv');
    assert.match(file.id, /^[\w-]{21}$/);
    assert.match(made.kept.session_id, /^[\w-]{21}$/);
    // As LibreChat gives them to the next call.
    const _injected_files = made.kept.files.map((f) => ({ ...f, kind: 'user', resource_id: 'u1' }));
    const read = await run('print(open("/mnt/data/a.csv").read())', { session_id: made.kept.session_id, _injected_files });
    assert.match(read.text, /a,b\n1,2/);
    const session = file.storage_session_id ?? made.kept.session_id;
    const got = await fetch(`${url}/v1/download/${session}/${file.id}`, { headers: authHeaders });
    assert.equal(await got.text(), 'a,b\n1,2\n');
    const figure = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2])');
    assert.deepEqual(figure.kept.files.map((f) => f.name), ['figure-1.png']);
  },

  async tools() {
    const asked = [];
    const add = async ({ a, b }) => { asked.push([a, b]); return a + b; };
    const text = (await runWithTools('r = await add(a=1, b=2)\nprint(r, await add(a=r, b=4))', { add })).text;
    assert.match(text, /3 7/);
    assert.deepEqual(asked, [[1, 2], [3, 4]]);
    const rounds = await runWithTools('n = 0\nfor i in range(20):\n    n = await add(a=n, b=1)\nprint("n is", n)', { add });
    assert.match(rounds.text, /n is 20/);
    const together = await runWithTools(
      'import asyncio\nprint(await asyncio.gather(*(add(a=i, b=i) for i in range(4))), await add(a=0, b=0))', { add });
    assert.match(together.text, /\[0, 2, 4, 6\]/);
    const fail = async () => { throw new Error('the shop is closed'); };
    const failed = await runWithTools('try:\n    await fail(x=1)\nexcept Exception as e:\n    print("caught", e)', { fail });
    assert.match(failed.text, /caught.*the shop is closed/);
    assert.match((await runWithTools('print("no tool is called")', { add })).text, /no tool is called/);
  },

  async strangers() {
    for (const headers of [{ Authorization: 'Bearer wrong' }, {}]) {
      await assert.rejects(call(createCodeExecutionTool({ authHeaders: headers }), 'execute_code',
        { lang: 'py', code: 'print(1)' }));
    }
  },
};

let failed = false;
for (const [step, work] of Object.entries(STEPS)) {
  let error;
  try {
    await work();
  } catch (e) {
    failed = true;
    error = String(e?.stack ?? e).slice(0, 1500);
  }
  console.log(JSON.stringify({ step, error }));
}
process.exit(failed ? 1 : 0);
