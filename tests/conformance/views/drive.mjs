// SPDX-License-Identifier: Apache-2.0
// drive.mjs URL BROWSER OUT: shows answers of the service at URL in a host in the browser, in light and in dark,
// looks at what stands there, and writes a picture of each into OUT. One line of JSON for each check.
import { createServer } from "node:http";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { build } from "esbuild";
import puppeteer from "puppeteer-core";
import { cases } from "./cases.mjs";

const [url, browserPath, out] = process.argv.slice(2);
const WIDTH = 760;
const EXTENSION = "io.modelcontextprotocol/ui";
const TYPE = "text/html;profile=mcp-app";
// The policy that the specification has for a page that asks for nothing.
const POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'self'; base-uri 'none'; form-action 'none'";
const SANDBOX = `<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
let inner = null;
addEventListener("message", ({ data, source }) => {
	if (source === parent && data.method === "ui/notifications/sandbox-resource-ready") {
		inner = document.createElement("iframe");
		inner.setAttribute("sandbox", data.params.sandbox);
		inner.style.cssText = "width: 100%; height: 100vh; border: 0; display: block";
		inner.srcdoc = data.params.html;
		document.body.append(inner);
	} else if (inner && source === parent)
		inner.contentWindow.postMessage(data, "*");
	else if (inner && source === inner.contentWindow)
		parent.postMessage(data, "*");
});
parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} }, "*");
</script>`;

function say(name, error) {
	console.log(JSON.stringify({ name, error: error || "" }));
}

function serve(text, headers) {
	return new Promise((resolve) => {
		const server = createServer((request, response) => {
			response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers });
			response.end(text);
		});
		server.listen(0, "127.0.0.1", () => resolve(server));
	});
}

async function bundle() {
	const made = await build({ entryPoints: [new URL("host.js", import.meta.url).pathname], bundle: true, write: false,
		format: "iife", logLevel: "silent" });
	return made.outputFiles[0].text.replaceAll("</script", "<\\/script");
}

// A view in the page of the host: the frame in the frame of the sandbox.
class View {
	constructor(page, client) {
		this.page = page;
		this.client = client;
	}

	frame() {
		return this.page.frames().findLast((one) => one.url() === "about:srcdoc");
	}

	text() {
		return this.frame().evaluate(() => document.body.innerText);
	}

	// Waits until the view has this text.
	async has(...texts) {
		for (const text of texts)
			await this.frame().waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);
	}

	async hasNot(text) {
		if ((await this.text()).includes(text))
			throw new Error("the view has " + JSON.stringify(text));
	}

	// Presses the button that a reader of the screen hears by this name.
	async press(name) {
		const button = await this.frame().waitForSelector(`aria/${name}[role="button"]`);
		await button.focus();
		await this.page.keyboard.press("Enter");
	}

	async count(selector, wanted) {
		await this.frame().waitForFunction((s, n) => document.querySelectorAll(s).length === n, {}, selector, wanted);
	}

	evaluate(...rest) {
		return this.frame().evaluate(...rest);
	}

	// The window has the height of the view, and has drawn it twice.
	async picture(name) {
		const height = await this.evaluate(() => document.getElementById("view").getBoundingClientRect().height);
		await this.page.setViewport({ width: WIDTH, height: Math.max(200, Math.ceil(height) + 10) });
		await this.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
		await this.page.screenshot({ path: join(out, name + ".png") });
	}

	told() {
		return this.page.evaluate(() => window.told);
	}
}

async function show(view, what, one, result, theme) {
	await view.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
	await view.page.evaluate(() => Object.assign(window.told, { size: [], calls: [], saved: [], links: [] }));
	await view.page.evaluate((all) => window.showCall(all), { ...what, tool: what.tools[one.tool],
		arguments: one.arguments, result: one.change ? one.change(result) : result, theme, can: one.can || null });
	await view.has(...one.has);
	for (const text of one.hasNot || [])
		await view.hasNot(text);
}

// What holds for every view: nothing was refused by the policy, nothing failed, no code of a script has run.
async function sound(view, noise) {
	const [height, inner, hacked, unnamed] = await view.evaluate(() => [
		document.getElementById("view").getBoundingClientRect().height,
		document.documentElement.scrollWidth - document.documentElement.clientWidth, window.hacked,
		[...document.querySelectorAll("button, input, [role=region], [role=meter], img")]
			.filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("alt") || e.textContent.trim())).length]);
	const { size } = await view.told();
	if (noise.length)
		throw new Error(noise.join("; "));
	if (hacked || unnamed)
		throw new Error(`a script has run (${hacked}), or ${unnamed} elements have no name`);
	if (!size.length || height > 4000 || inner > 0)
		throw new Error(`height ${height}, reported ${size}, ${inner} pixels too wide`);
}

async function judge(view, what, one, noise) {
	const result = one.tool ? await view.client.callTool({ name: one.tool, arguments: one.arguments }) : null;
	for (const theme of ["light", "dark"]) {
		const name = `${one.name}-${theme}`;
		try {
			noise.length = 0;
			await show(view, what, one, result, theme);
			await view.picture(name);
			await sound(view, noise);
			if (one.then && theme === (one.thenIn || "light")) {
				await one.then(view, result);
				await view.picture(name + "-then");
				await sound(view, noise);
			}
			say(name);
		} catch (error) {
			say(name, String(error && error.stack || error).slice(0, 600) + "\n" +
				(await view.text().catch(() => "")).slice(0, 1500));
			await view.picture(name + "-failed").catch(() => {});
		}
	}
}

async function main() {
	const client = new Client({ name: "test-host", version: "1" },
		{ capabilities: { extensions: { [EXTENSION]: { mimeTypes: [TYPE] } } } });
	await client.connect(new StreamableHTTPClientTransport(new URL(url)));
	const tools = Object.fromEntries((await client.listTools()).tools.map((tool) => [tool.name, tool]));
	const { contents } = await client.readResource({ uri: tools.run_script._meta.ui.resourceUri });
	const host = await serve(`<!doctype html><meta charset="utf-8"><body style="margin:0"><script>${await bundle()}</script>`);
	const sandbox = await serve(SANDBOX, { "content-security-policy": POLICY });
	const browser = await puppeteer.launch({ executablePath: browserPath, protocolTimeout: 600000,
		args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
	const page = await browser.newPage(), noise = [];

	page.setDefaultTimeout(Number(process.env.VIEW_MS) || 60000);
	await page.setViewport({ width: WIDTH, height: 900 });
	page.on("console", (message) => message.type() === "error" && noise.push(message.text()));
	page.on("pageerror", (error) => noise.push(String(error)));
	page.on("dialog", (dialog) => { noise.push("dialog"); dialog.dismiss(); });
	await page.exposeFunction("callTool", (params) => client.callTool(params));
	await page.exposeFunction("readResource", (params) => client.readResource(params));
	await page.goto(`http://127.0.0.1:${host.address().port}/`);
	const what = { html: contents[0].text, tools, sandbox: `http://localhost:${sandbox.address().port}/` };
	const view = new View(page, client);
	for (const one of cases(process.argv[5] || ""))
		await judge(view, what, one, noise);
	await browser.close();
	host.close();
	sandbox.close();
	await client.close();
}

main().then(() => process.exit(0), (error) => {
	say("all of it", String(error && error.stack || error));
	process.exit(1);
});
