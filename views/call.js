/* ---- the host: JSON-RPC by messages to the window that holds this one ---- */

const host = { can: {}, context: {}, next: 1, open: new Map(), gone: false };

function post(message) {
	window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function notify(method, params) {
	post({ method, params });
}

/* A promise of the result. A host that does not know the method answers with an error. */
function request(method, params) {
	const id = host.next++;
	return new Promise((resolve, reject) => {
		host.open.set(id, { resolve, reject });
		post({ id, method, params });
	});
}

function canCall() {
	return Boolean(host.can.serverTools) && !host.gone;
}

/* Calls a tool of the service. An answer that says isError is an answer. */
function callTool(name, args) {
	return request("tools/call", { name, arguments: args });
}

const notices = {};	/* by method: what is done with a notification's params */

const requests = {
	"ui/resource-teardown": () => {
		host.gone = true;
		return {};
	},
	"ping": () => ({}),
};

function answer(message) {
	const handler = requests[message.method];
	if (handler)
		post({ id: message.id, result: handler(message.params) });
	else
		post({ id: message.id, error: { code: -32601, message: "Method not found" } });
}

function settle(message) {
	const waiting = host.open.get(message.id);
	host.open.delete(message.id);
	if (!waiting)
		return;
	if (message.error)
		waiting.reject(new Error(String(message.error.message || "the host refused")));
	else
		waiting.resolve(message.result || {});
}

window.addEventListener("message", (event) => {
	const message = event.data;
	if (event.source !== window.parent || !message || message.jsonrpc !== "2.0")
		return;
	if (message.method === undefined)
		settle(message);
	else if (message.id !== undefined)
		answer(message);
	else if (Object.hasOwn(notices, message.method))
		notices[message.method](message.params || {});
});

/* ---- the page ---- */

/* Control characters, and those that are invisible or turn the direction of text. */
const STRANGE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
/* Colors of a terminal. */
const COLORS = /\u001b\[[0-9;]*m/g;

/* A text of a stranger as nodes: what cannot be seen is shown as an escape. */
function shown(text) {
	const plain = String(text).replace(/\r\n/g, "\n").replace(COLORS, "");
	const nodes = [];
	let from = 0;
	for (const found of plain.matchAll(STRANGE)) {
		nodes.push(plain.slice(from, found.index));
		nodes.push(make("span", { class: "escape" },
			"\\u" + found[0].charCodeAt(0).toString(16).padStart(4, "0")));
		from = found.index + 1;
	}
	nodes.push(plain.slice(from));
	return nodes;
}

function make(name, attributes, ...children) {
	const element = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {}))
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (value !== null && value !== undefined && value !== false)
			element.setAttribute(key, value === true ? "" : value);
	element.append(...children.flat().filter((child) => child !== null && child !== undefined));
	return element;
}

function button(text, action, attributes) {
	return make("button", { type: "button", onclick: action, ...attributes }, text);
}

/* A text that may need scrolling, so that the keyboard reaches it. */
function block(label, text) {
	return make("pre", { tabindex: 0, role: "region", "aria-label": label }, shown(text));
}

function number(value) {
	return Number(value).toLocaleString("en-US");
}

function counted(value, what) {
	return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}

function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let size = Number(value), unit = 0;
	while (size >= 1024 && unit < 4) {
		size /= 1024;
		unit++;
	}
	return (unit && size < 100 ? size.toFixed(1) : Math.round(size)) + " " + units[unit];
}

function seconds(ms) {
	return ms < 1000 ? Math.round(ms) + " ms" : (ms / 1000).toFixed(ms < 100000 ? 1 : 0) + " s";
}

/* ---- saving ---- */

function canSave() {
	return Boolean(host.can.downloadFile);
}

/* Asks the host to save one resource: {uri, mimeType, blob or text}. The text of the failure, or "". */
async function save(resource) {
	try {
		const result = await request("ui/download-file", { contents: [{ type: "resource", resource }] });
		return result.isError ? "The host did not save it." : "";
	} catch (error) {
		return "The host cannot save it: " + error.message;
	}
}
