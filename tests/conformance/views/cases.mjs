// SPDX-License-Identifier: Apache-2.0
// The answers that drive.mjs shows. run_script waits for an approval here; everything else runs in sessions.
const HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script>";

const repl = (name, code, has, more) => ({ name, tool: "run_repl", arguments: { code }, has, ...more });

const FIVE = `import matplotlib.pyplot as plt
for i in range(5):
    plt.figure(figsize=(4, 2)); plt.plot([j ** i for j in range(9)]); plt.title("figure %d" % i)
plt.show()`;

const ALL = [
	repl("table", `import pandas as pd
df = pd.DataFrame({"n": range(1000000), "word": ["w%d" % (i * 7919 % 1000003) for i in range(1000000)]})
df`, ["Table, 1,000,000 rows", "rows 1 to 25 of 1,000,000", "w7919"], {
		async then(view) {
			await view.press("Last");
			await view.has("rows 999,976 to 1,000,000", "999999");
			await view.press("n");
			await view.has("rows 1 to 25 of 1,000,000");
			await view.press("n \u2191");
			await view.has("999998");
			const { calls } = await view.told();
			if (calls.some((one) => one.name !== "run_repl") || calls.length < 4)
				throw new Error("calls: " + JSON.stringify(calls).slice(0, 300));
			await (await view.frame().waitForSelector("input")).type("w79191");
			await view.page.keyboard.press("Enter");
			await view.has("filtered from 1,000,000");
			await view.press("Variables");
			await view.has("pandas.core.frame.DataFrame 1000000 x 2");
		},
	}),
	repl("small-table", `import pandas as pd
pd.DataFrame({"city": ["Bern", "Oslo", None], "people": [134000, 709000, 5]})`, ["Table, 3 rows", "709000", "missing"], {
		async then(view) {
			await view.press("people");
			const first = () => view.evaluate(() => document.querySelector("tbody tr td:nth-child(3)").textContent);
			await view.frame().waitForSelector("th[aria-sort=ascending]");
			if (await first() !== "5")
				throw new Error("not sorted: " + await first());
			await (await view.frame().waitForSelector("input")).type("osl");
			await view.page.keyboard.press("Enter");
			await view.has("rows 1 to 1 of 1, filtered from 3");
			if ((await view.told()).calls.length)
				throw new Error("the rows that are here need no call");
		},
	}),
	repl("wide-table", `import pandas as pd
pd.DataFrame({"column %d" % i: range(i, i + 12) for i in range(60)})`, ["Table, 12 rows, 60 columns", "column 59"]),
	repl("figures", FIVE, ["Figure 5", "Larger"], {
		async then(view) {
			await view.count("figure img", 5);
			await view.frame().waitForFunction(() => [...document.images].every((one) => one.naturalWidth > 100));
			await view.press("Larger");
			await view.has("150 %");
			await view.press("Save");
			await view.has("Saved.");
			const { saved } = await view.told();
			if (saved.length !== 1 || saved[0].contents[0].resource.mimeType !== "image/png")
				throw new Error(JSON.stringify(saved).slice(0, 200));
		},
	}),
	repl("error", "def half(x):\n    return 1 / x\n\nprint('before')\nhalf(0)\n", ["Error", "ZeroDivisionError: division by zero",
		"before", "Traceback"], {
		async then(view) {
			await view.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
			await view.has("\u2190 the error");
		},
	}),
	{ name: "job", tool: "run_repl", arguments: { code: "import time\nfor i in range(10000):\n    print(i, flush=True)\n    time.sleep(1)",
		background: true }, has: ["Running", "Stop"], thenIn: "dark",
		async then(view, result) {
			await view.press("Stop the job " + result.structuredContent.job);
			await view.frame().waitForFunction(() => document.getElementById("status").className !== "care busy");
			const id = result.structuredContent.job;
			const state = () => view.client.callTool({ name: "job", arguments: { id, action: "wait", wait_seconds: 60 } });
			const { structuredContent } = await state();
			if (structuredContent.state === "running")
				throw new Error("the job still runs");
		} },
	{ name: "approval", tool: "run_script", arguments: { script: "import os, socket\n# looks harmless \u202e ]\nprint(open('/etc/passwd').read())\n" +
		"exec(input())\nsocket.create_connection(('example.org', 80))\nx = 1\n" }, has: ["Waits for an approval", "\u2190 import",
		"\\u202e", "runs text", "network"] },
	repl("empty", "pass", ["Done", "There was no output."]),
	repl("hostile", `import pandas as pd, sys
text = ${JSON.stringify(HOSTILE)}
print(text); print(text, file=sys.stderr); print("\\x1b[31mred\\x1b[0m \\u202eright to left \\x00 nul \\u200b")
open("/workspace/a<b>.txt", "w").write(text)
pd.DataFrame({text: [text, text], "b": ["\\u202e", 1]})`, ["<img src=x onerror", "\\u202e", "red", "a<b>.txt"], { hasNot: ["\u202e", "[31m"] }),
	repl("markup", `from IPython.display import HTML, SVG, display
display(HTML("<b onclick='alert(1)'>bold</b><script>window.hacked = 3</script>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' width='200' height='80'><script>window.hacked = 4</script><circle cx='40' cy='40' r='30' fill='teal'/></svg>"))`,
	["Markup, as text", "Figure 1"]),
	repl("cut", "for i in range(300000):\n    print('line', i)\nlist(range(100000))", ["bytes of stdout were left out"]),
	repl("files", `import os
os.makedirs("/workspace/out", exist_ok=True)
open("/workspace/out/data.csv", "w").write("a,b\\n" * 5000); open("/workspace/note.txt", "w").write("hello")
block = bytearray(300 << 20); block[::4096] = b"x" * len(block[::4096]); 6 * 7`, ["note.txt", "Memory", "42"], {
		async then(view) {
			await view.press("Save note.txt");
			await view.has("Saved.");
			const [{ contents }] = (await view.told()).saved;
			if (contents[0].resource.text !== "hello")
				throw new Error(JSON.stringify(contents));
		},
	}),
	repl("plain", "print('out')\nopen('/workspace/f.txt', 'w').write('x')\n1/0", ["Error", "ZeroDivisionError", "f.txt"],
		{ change: ({ content, isError }) => ({ content, isError }) }),
	repl("poor-host", "import pandas as pd\ndf = pd.DataFrame({'a': range(500)})\ndf", ["These are the first"],
		{ can: {}, hasNot: ["Variables", "Save"] }),
	{ name: "jobs", tool: "job", arguments: {}, has: ["job"] },
];

export function cases(pattern) {
	return ALL.filter((one) => new RegExp(pattern).test(one.name));
}
