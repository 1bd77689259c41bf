// SPDX-License-Identifier: Apache-2.0
// drive.mjs BROWSER OUT: shows the console in the browser, and uses it as people do. Orders are lines of JSON on
// standard input, each with a name, what to do, and with which browser; one line of JSON says how each went.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const [browserPath, out] = process.argv.slice(2);
const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const SERIOUS = ["serious", "critical"];
const SHAPES = { wide: { width: 1280, height: 900 }, narrow: { width: 360, height: 740 } };
const browsers = new Map();	// name -> { page, noise }
let chromium;

function must(condition, text) {
	if (!condition)
		throw new Error(text);
}

// The browser of a person: its own cookies, and what went wrong in it.
async function open({ who }) {
	const context = await chromium.createBrowserContext();
	const page = await context.newPage(), noise = [];

	page.setDefaultTimeout(Number(process.env.CONSOLE_MS) || 60000);
	// A status that a page was to have is no noise.
	page.on("console", (message) => ["error", "warn"].includes(message.type()) &&
		!message.text().startsWith("Failed to load resource: the server responded with a status of 40") &&
		noise.push(message.text()));
	page.on("pageerror", (error) => noise.push(String(error)));
	page.on("dialog", (dialog) => { noise.push("a dialog: " + dialog.message()); dialog.dismiss(); });
	page.on("request", (request) => {
		if (new URL(request.url()).hostname !== "127.0.0.1")
			noise.push("a request to " + request.url());
	});
	browsers.set(who, { page, noise });
	await page.setViewport(SHAPES.wide);
}

async function close({ who }) {
	await browsers.get(who).page.browserContext().close();
	browsers.delete(who);
}

async function go({ who, url, status }) {
	const { page, noise } = browsers.get(who);
	const answer = await page.goto(url, { waitUntil: "load" });

	must(answer.status() === (status || 200), `${url}: status ${answer.status()}`);
}

// origin: a page with the link, as a mail or a chat is; otherwise the address was typed.
async function logIn({ who, url, origin }) {
	const { page } = browsers.get(who);

	await go({ who, url: origin || url });
	if (origin)
		await Promise.all([page.waitForNavigation(), page.evaluate((href) =>
			document.body.appendChild(Object.assign(document.createElement("a"), { href })).click(), url)]);
	while (new URL(page.url()).pathname !== "/")
		await page.waitForNavigation();
}

async function has({ who, texts }) {
	const { page } = browsers.get(who);

	for (const text of texts)
		await page.waitForFunction((t) => document.body.innerText.includes(t), {}, text);
}

// Presses a button as somebody does who has only a keyboard.
async function press({ who, button, then }) {
	const { page } = browsers.get(who);
	const handle = await page.waitForSelector(`aria/${button}[role="button"]`);

	await handle.focus();
	await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
	must(!then || new URL(page.url()).pathname === then, `after ${button}: ${page.url()}`);
}

async function type({ who, field, text }) {
	const { page } = browsers.get(who);

	await (await page.waitForSelector(`aria/${field}[role="textbox"]`)).type(text);
}

// What axe finds, and what is wider than the window.
async function judge(page, name) {
	await page.evaluate(AXE);
	const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
	const bad = found.violations.filter((one) => SERIOUS.includes(one.impact)).map((one) =>
		`${one.id} (${one.impact}): ${one.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " +
			(n.any[0] || n.all[0] || n.none[0] || { message: "" }).message).join(" | ")}`);
	const wide = await page.evaluate(() => {
		const most = document.documentElement.clientWidth;
		return document.documentElement.scrollWidth <= most ? [] :
			[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1)
				.slice(0, 3).map((e) => "too wide: " + e.outerHTML.slice(0, 120));
	});

	must(!bad.length && !wide.length, `${name}: ${[...bad, ...wide].join("; ")}`);
}

// A page in both themes and both shapes.
async function look({ who, url, name, has: texts, hasNot }) {
	const { page, noise } = browsers.get(who), wrong = [];

	noise.length = 0;
	await go({ who, url });
	await has({ who, texts: texts || [] });
	const text = await page.evaluate(() => document.documentElement.outerHTML);
	for (const one of hasNot || [])
		must(!text.includes(one), `${url} has ${JSON.stringify(one)}`);
	for (const theme of ["light", "dark"])
		for (const [shape, size] of Object.entries(SHAPES)) {
			await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
			await page.setViewport(size);
			await page.screenshot({ path: join(out, `${name}-${theme}-${shape}.png`), fullPage: true });
			await judge(page, `${theme}, ${shape}`).catch((error) => wrong.push(error.message));
		}
	await page.setViewport(SHAPES.wide);
	must(!wrong.length, wrong.join("\n"));
	must(!await page.evaluate(() => window.hacked), "a script of a stranger has run");
	must(!noise.length, noise.join("; "));
}

// Without scripts nothing of the page can be asked by one.
async function shows({ who, url, text }) {
	const { page } = browsers.get(who);

	await go({ who, url });
	must((await page.content()).includes(text), `${url} has no ${JSON.stringify(text)}`);
}

async function scripts({ who, on }) {
	await browsers.get(who).page.setJavaScriptEnabled(on);
}

// A page of another site shows the console in a frame, sends one of its forms, and asks for it by a script.
async function attack({ who, origin, console: address }) {
	const { page, noise } = browsers.get(who);

	await go({ who, url: origin });
	const got = await page.evaluate(async (url) => {
		const frame = Object.assign(document.createElement("iframe"), { src: url + "/" });
		const shown = new Promise((done) => { frame.onload = done; });
		document.body.append(frame);
		await shown;
		let read = "";
		try {
			read = frame.contentDocument.body.innerText;
		} catch {
			// of another origin, as an error page is, too
		}
		const asked = await fetch(url + "/runs", { credentials: "include" }).then((r) => r.text(), () => "");
		const blind = await fetch(url + "/runs", { credentials: "include", mode: "no-cors" })
			.then((r) => r.type, () => "refused");
		return { read, asked, blind };
	}, address);
	must(!got.read && !got.asked, JSON.stringify(got));
	// What the browser shows instead of a page that refuses frames.
	await page.waitForFrame((one) => one !== page.mainFrame() && one.url().startsWith("chrome-error:"));
	await Promise.all([page.waitForNavigation(), page.evaluate((url) => {
		const form = Object.assign(document.createElement("form"), { method: "post", action: url + "/logout" });
		document.body.append(form);
		form.submit();
	}, address)]);
	must((await page.evaluate(() => document.body.innerText)).includes("refused"), "the form of another site was taken");
}

const orders = { open, close, go, logIn, has, press, type, look, shows, scripts, attack };

async function main() {
	chromium = await puppeteer.launch({ executablePath: browserPath, protocolTimeout: 600000,
		args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
			"--host-resolver-rules=MAP rebound.example 127.0.0.1"] });
	for await (const line of createInterface({ input: process.stdin })) {
		const order = JSON.parse(line);
		let error = "";

		try {
			await orders[order.do](order);
		} catch (e) {
			error = String(e && e.stack || e).slice(0, 3000);
			const page = browsers.get(order.who)?.page;
			await page?.screenshot({ path: join(out, "failed.png") }).catch(() => {});
			error += "\n" + (await page?.evaluate(() => document.body.innerText).catch(() => "") || "").slice(0, 1500);
		}
		console.log(JSON.stringify({ error }));
	}
	await chromium.close();
}

main().then(() => process.exit(0), (error) => {
	console.log(JSON.stringify({ error: String(error && error.stack || error) }));
	process.exit(1);
});
