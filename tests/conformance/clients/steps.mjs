// SPDX-License-Identifier: Apache-2.0
// What every client has to bring about, whichever it is. A client here is
//   { call(name, arguments, options), tools(), read(uri), prompt(name, arguments), close(),
//     subscribe(uri): to a resource, however that is done; returns what ends it,
//     asked: what it was asked so far, reply: what it says to that,
//     noResource: the code by which it reports a resource that is not there }
// with options { onprogress, signal } as both SDKs have them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';

const text = (result) => result.content.map((block) => block.text ?? '').join('');
const PNG = '89504e470d0a1a0a';

// Rejects with what the call rejects with; anything else is a failure.
async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new assert.AssertionError({ message: 'was not refused' });
}

async function answers(client) {
  const result = await client.call('run_script', { script: 'print(6 * 7)' });
  assert.equal(result.isError ?? false, false);
  assert.equal(result.structuredContent?.stdout ?? JSON.parse(text(result)).stdout, '42\n');
}

function increases(list) {
  list.forEach((p, i) => assert.ok(i === 0 || p.progress > list[i - 1].progress,
    `progress does not increase: ${JSON.stringify(list)}`));
}

// Starts what takes long, cancels it after its first sign of life.
async function cancels(client, name, args) {
  const stop = new AbortController();
  const seen = [];
  const error = await refusal(client.call(name, args, {
    signal: stop.signal,
    onprogress: (p) => { seen.push(p); stop.abort('the test has seen enough'); },
  }));
  assert.ok(seen.length > 0, `ended before its first progress: ${error}`);
  assert.match(String(error), /abort|enough/i);
}

const shipped = {
  async lists(client) {
    const tools = await client.tools();
    assert.ok(tools.some((tool) => tool.name === 'run_script'));
    assert.deepEqual(tools.filter((tool) => /^test_|slow_compute/.test(tool.name)), []);
    tools.forEach((tool) => assert.equal(tool.inputSchema.type, 'object'));
  },
  async runs(client) {
    await answers(client);
  },
  async fails(client) {
    const result = await client.call('run_script', { script: '1/0' });
    assert.equal(result.isError, true);
    assert.match(text(result), /ZeroDivisionError/);
  },
  async refuses_unknown_tool(client) {
    const error = await refusal(client.call('none_such', {}));
    assert.equal(error.code, -32602);
  },
  async streams_progress(client) {
    const seen = [];
    const script = `import time
for i in range(6):
    print("line", i, flush=True)
    time.sleep(0.5)`;
    const result = await client.call('run_script', { script }, { onprogress: (p) => seen.push(p) });
    assert.equal(result.isError ?? false, false);
    assert.ok(seen.length >= 2, `${seen.length} notifications`);
    assert.ok(seen.some((p) => /line \d/.test(p.message)), JSON.stringify(seen));
    increases(seen);
  },
  async reads_an_image_and_a_file(client) {
    const result = await client.call('run_script', { script: `import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Dot:
    def _repr_png_(self):
        return (b"\\x89PNG\\r\\n\\x1a\\n"
                + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(b"\\0\\xff\\0\\0")) + chunk(b"IEND", b""))
with open("note.txt", "w") as file:
    file.write("kept")
Dot()` });
    const image = result.content.find((block) => block.type === 'image');
    assert.ok(image, text(result));
    assert.equal(image.mimeType, 'image/png');
    assert.equal(Buffer.from(image.data, 'base64').subarray(0, 8).toString('hex'), PNG);
    const link = result.content.find((block) => block.type === 'resource_link');
    assert.ok(link, text(result));
    assert.equal(link.name, 'note.txt');
    assert.equal((await client.read(link.uri)).contents[0].text, 'kept');
  },
  async cancels(client) {
    // This service runs one script of a tenant at a time: the second one shows that the
    // first has gone.
    await cancels(client, 'run_script', {
      script: 'print("on", flush=True)\nwhile True: pass', timeout_seconds: 300, cpu_seconds: 300,
    });
    await answers(client);
  },
  async is_asked_by_a_script(client) {
    const before = client.asked.length;
    client.reply = { action: 'accept', content: { line: 'ada' } };
    const script = 'a = input("first? ")\nprint(a, input("second? "))';
    const result = await client.call('run_script', { script });
    assert.match(text(result), /ada ada/);
    const asked = client.asked.slice(before).map((question) => question.message);
    assert.equal(asked.length, 2);
    assert.match(asked[0], /Python script.*> first\? $/s);
    assert.match(asked[1], /> second\? $/);
  },
  async declines_what_a_script_asks(client) {
    client.reply = { action: 'decline' };
    const result = await client.call('run_script', { script: 'input()' });
    assert.equal(result.isError, true);
    assert.match(text(result), /EOFError/);
  },
  async shows_icons(client) {
    for (const tool of await client.tools()) {
      assert.match(tool.icons[0].src, /^data:image\/svg\+xml;base64,/);
    }
  },
  async runs_several_at_once(client) {
    const results = await Promise.all([...Array(8).keys()].map(
      (i) => client.call('run_script', { script: `print("<", ${i} ** 2, ">")` })));
    results.forEach((r, i) => assert.match(text(r), new RegExp(`< ${i ** 2} >`)));
  },
};

const fixtures = {
  async lists(client) {
    const names = (await client.tools()).map((tool) => tool.name);
    assert.equal(names[0], 'test_simple_text');
    for (const name of ['run_script', 'test_image_content', 'slow_compute']) {
      assert.ok(names.includes(name), `${name} is not listed`);
    }
  },
  async is_asked(client) {
    client.reply = { action: 'accept', content: { username: 'ada', email: 'ada@example.org' } };
    const result = await client.call('test_elicitation', { message: 'Who is it?' });
    assert.equal(client.asked.at(-1).message, 'Who is it?');
    assert.match(text(result), /action=accept.*ada@example\.org/);
  },
  async declines(client) {
    client.reply = { action: 'decline' };
    const result = await client.call('test_elicitation', { message: 'Who is it?' });
    assert.match(text(result), /action=decline/);
  },
  async is_asked_twice(client) {
    const before = client.asked.length;
    client.reply = { action: 'accept', content: { name: 'ada', color: 'blue' } };
    const result = await client.call('test_input_required_result_multi_round', {});
    assert.equal(text(result), 'The color is blue.');
    assert.equal(client.asked.length, before + 2);
  },
  async reads_an_image(client) {
    const [block] = (await client.call('test_image_content', {})).content;
    assert.equal(block.type, 'image');
    assert.equal(block.mimeType, 'image/png');
    assert.equal(Buffer.from(block.data, 'base64').subarray(0, 8).toString('hex'), PNG);
  },
  async reads_a_file(client) {
    const [link] = (await client.call('test_resource_link', {})).content;
    assert.equal(link.type, 'resource_link');
    const [file] = (await client.read(link.uri)).contents;
    assert.equal(file.mimeType, 'image/png');
    assert.equal(Buffer.from(file.blob, 'base64').length, link.size);
    const [plain] = (await client.read('test://static-text')).contents;
    assert.equal(plain.text, 'This is the content of the static text resource.');
  },
  async reads_no_stranger_file(client) {
    const error = await refusal(client.read('test://none-such'));
    assert.equal(error.code, client.noResource);
  },
  async subscribes(client) {
    const end = await client.subscribe('test://watched-resource');
    assert.equal(text(await client.call('greet', { name: 'you' })), 'Hello, you!');
    await end();
    assert.equal(text(await client.call('greet', { name: 'me' })), 'Hello, me!');
  },
  async gets_a_prompt(client) {
    const args = { arg1: 'one', arg2: 'two' };
    const { messages } = await client.prompt('test_prompt_with_arguments', args);
    assert.match(messages[0].content.text, /one.*two/);
  },
  async streams_progress(client) {
    const seen = [];
    await client.call('test_tool_with_progress', {}, { onprogress: (p) => seen.push(p) });
    assert.deepEqual(seen.map((p) => [p.progress, p.total]), [[0, 100], [50, 100], [100, 100]]);
  },
  async cancels(client) {
    await cancels(client, 'test_long', {});
    await answers(client);
  },
};

// Over HTTP only, and once, because it takes its time: a legacy client's stream is closed
// before the answer is there.
const slow = {
  async outlasts_its_stream(client) {
    assert.match(text(await client.call('test_reconnection', {})), /completed successfully/);
  },
};

// Everything that passes a transport, written to the file that $WIRE names.
export function watch(transport) {
  const note = (from, message) =>
    process.env.WIRE && appendFileSync(process.env.WIRE, JSON.stringify({ from, message }) + '\n');
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    note('client', message);
    return send(message, ...rest);
  };
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => handler,
    set: (f) => {
      handler = f && ((message, ...rest) => {
        note('server', message);
        return f(message, ...rest);
      });
    },
  });
  return transport;
}

// Runs all steps of a program; one line of JSON each. Exit status 0: all went well.
export async function runAll(program, connect) {
  const say = (step, error) => console.log(JSON.stringify({ step, error }));
  let client, failed = false;
  try {
    client = await connect();
    say('connects');
  } catch (error) {
    say('connects', error.stack);
    process.exit(1);
  }
  const steps = program === 'shipped' ? shipped
    : process.argv.includes('tcp') ? { ...fixtures, ...slow } : fixtures;
  for (const [name, step] of Object.entries(steps)) {
    const clock = new AbortController();
    const late = once(AbortSignal.any([clock.signal, AbortSignal.timeout(30000)]), 'abort')
      .then(() => { throw new Error('took more than 30 seconds'); });
    late.catch(() => {});
    try {
      await Promise.race([step(client), late]);
      say(name);
    } catch (error) {
      failed = true;
      say(name, error.stack);
    }
    clock.abort();
  }
  try {
    await client.close();
    say('closes');
  } catch (error) {
    failed = true;
    say('closes', error.stack);
  }
  // Nothing may keep the process alive once it has closed.
  process.exitCode = failed ? 1 : 0;
}
