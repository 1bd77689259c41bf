/* ---- one call, and what is known of it ---- */

const call = { arguments: {}, result: null, job: null, timer: null, wait: 2000 };

const STATES = {
	ok: ["Done", "ok"], running: ["Running", "care"], approval_pending: ["Waits for an approval", "care"],
	done: ["Done", "ok"], failed: ["Failed", "bad"], cancelled: ["Stopped", "bad"], timeout: ["Out of time", "bad"],
	error: ["Error", "bad"], denied: ["Not allowed", "bad"],
};

function sayStatus(state, text) {
	const known = STATES[state] || [String(state).replaceAll("_", " "), "bad"];
	const status = document.getElementById("status");
	status.className = known[1] + (state === "running" ? " busy" : "");
	status.textContent = known[0] + (text ? ", " + text : "");
}

/* The status of an answer that has no form for programs: its last line, "[ok, 12 ms]". */
function statusOf(result) {
	const line = textOf(result).trimEnd().split("\n").pop();
	const found = /^\[(?:job \S+: )?([a-z_]+)/.exec(line);
	return found ? found[1] : result.isError ? "error" : "ok";
}

function sessionOf(own, result) {
	const found = /^session: (\S+)$/m.exec(textOf(result));
	return own && own.session || call.arguments.session || (found ? found[1] : null);
}

/* ---- the script ---- */

/* What a reader looks at first. A line is only compared with patterns: it may do more. */
const MARKS = [
	["import", /^\s*(?:import|from)\s/],
	["network", /\b(?:socket|urllib|requests|http|httpx|aiohttp|smtplib|ftplib|paramiko)\b/],
	["program", /\b(?:subprocess|os\s*\.\s*(?:system|popen|exec\w*|spawn\w*|fork)|ctypes|multiprocessing)\b/],
	["file", /\b(?:open\s*\(|shutil|pathlib|os\s*\.\s*(?:remove|unlink|rename|rmdir|makedirs)|write_(?:text|bytes))/],
	["runs text", /\b(?:eval|exec|compile|__import__|getattr|pickle|marshal)\b/],
];

function codeLine(text, number, wrong) {
	const why = MARKS.filter(([, pattern]) => pattern.test(text)).map(([name]) => name);
	if (wrong)
		why.unshift("the error");
	return make("div", { class: "line" + (wrong ? " wrong" : why.length ? " marked" : "") },
		make("span", { class: "number", "aria-hidden": "true" }, number),
		make("span", {}, shown(text)),
		why.length ? make("span", { class: "why" }, "\u2190 " + why.join(", ")) : null);
}

function script(code, wrong, open) {
	const lines = String(code).split(/\r\n|[\n\r]/), most = 2000;
	const pre = make("pre", { class: "code", tabindex: 0, role: "region", "aria-label": "Source" },
		lines.slice(0, most).map((line, i) => codeLine(line, i + 1, i + 1 === wrong)),
		lines.length > most ? `... and ${counted(lines.length - most, "line")} more` : null);
	return make("details", { open }, make("summary", {}, "Source, " + counted(lines.length, "line")), pre,
		make("p", { class: "quiet" }, "Marks come from patterns in a line. A line without one can do the same."));
}

function codeOf(args) {
	return args.script || args.code || null;
}

/* ---- errors, output, values ---- */

function errorPart(own, lines) {
	const error = own.error;
	if (!error)
		return null;
	const line = error.line && lines[error.line - 1];
	return make("section", { class: "error", "aria-label": "Error" },
		make("p", {}, make("strong", {}, shown(error.type)), ": ", shown(error.message),
			error.line ? ` (line ${error.line})` : ""),
		line !== undefined && line !== null && line !== 0 ? make("pre", {}, `${error.line}: `, shown(line)) : null,
		error.advice ? make("p", {}, "Advice: ", shown(error.advice)) : null,
		error.traceback && !(own.stderr || "").includes(error.traceback) ? make("details", {}, make("summary", {}, "Traceback"), block("Traceback", error.traceback))
			: null);
}

function titled(title, node) {
	return make("section", { "aria-label": title }, make("h2", {}, title), node);
}

function outputParts(own) {
	const cut = own.truncated || {};
	return ["stdout", "stderr"].flatMap((stream) => {
		const parts = own[stream] ? [titled(stream, block(stream, own[stream]))] : [];
		if (cut[stream + "_dropped"])
			parts.push(make("p", { class: "quiet" },
				`${number(cut[stream + "_dropped"])} bytes of ${stream} were left out.`));
		return parts;
	});
}

/* ---- tables ---- */

/* The name under which the session has the table that the cell shows; null: it is not plain. */
function nameShown(code) {
	const last = String(code || "").trimEnd().split("\n").pop().trim();
	const found = /^(?:display\()?([A-Za-z_]\w*)(?:\.(?:head|tail)\(\d*\))?\)?$/.exec(last);
	return found ? found[1] : null;
}

function isTable(display) {
	const json = display.json;
	return Boolean(json) && Array.isArray(json.columns) && Array.isArray(json.rows);
}

function tablePart(json, session, name) {
	const columns = json.columns.map(String), total = Number(json.row_count) || json.rows.length;
	const rows = json.rows.map((row, i) => [i, ...json.columns.map((column) => row[column] ?? null)]);
	const label = `Table, ${counted(total, "row")}, ${counted(columns.length, "column")}`;
	if (total <= rows.length)
		return table(label, tableHere(columns, rows));
	if (session && name && canCall())
		return table(label, tableInSession(session, name), `Pages are read from ${name} as it is in the session now.`);
	return table(label, tableHere(columns, rows), `These are the first ${number(rows.length)} rows. A table that has ` +
		"a name in a session can be shown whole.");
}

function tableParts(own, session) {
	const tables = (own.displays || []).filter(isTable);
	const name = tables.length === 1 ? nameShown(codeOf(call.arguments)) : null;
	return tables.map((display) => tablePart(display.json, session, name));
}

/* ---- figures and files ---- */

function figurePart(source, type, base64, label) {
	const image = make("img", { src: source, alt: label });
	const said = make("span", { class: "quiet", role: "status" });
	const figure = make("figure", {}, make("div", { class: "frame", tabindex: 0, role: "region", "aria-label": label }, image));
	let zoom = 1, usual = 0;
	const set = (to) => {
		usual = zoom === 1 ? image.clientWidth : usual;
		zoom = Math.min(8, Math.max(1, to));
		figure.classList.toggle("zoomed", zoom > 1);
		image.style.width = zoom > 1 ? zoom * usual + "px" : "";
		said.textContent = zoom > 1 ? Math.round(100 * zoom) + " %" : "";
	};
	const end = type.includes("svg") ? "svg" : type.includes("jpeg") ? "jpg" : "png";
	figure.append(make("figcaption", { class: "row" }, make("span", {}, label),
		button("Larger", () => set(zoom * 1.5)), button("Smaller", () => set(zoom / 1.5)),
		canSave() ? button("Save", async () => {
			const name = label.toLowerCase().replaceAll(" ", "-") + "." + end;
			said.textContent = await save({ uri: "file:///" + name, mimeType: type, blob: base64 }) || "Saved.";
		}) : null, said));
	return figure;
}

function toBase64(text) {
	return btoa(Array.from(new TextEncoder().encode(text), (one) => String.fromCharCode(one)).join(""));
}

function figureParts(result) {
	const parts = [];
	for (const one of result.content || []) {
		const inside = one.type === "resource" ? one.resource || {} : {};
		const label = `Figure ${parts.filter((part) => part.tagName === "FIGURE").length + 1}`;
		if (one.type === "image" && /^image\/(png|jpeg)$/.test(one.mimeType))
			parts.push(figurePart(`data:${one.mimeType};base64,${one.data}`, one.mimeType, one.data, label));
		else if (inside.mimeType === "image/svg+xml" && inside.text) {
			const data = toBase64(inside.text);
			parts.push(figurePart("data:image/svg+xml;base64," + data, inside.mimeType, data, label));
		} else if (typeof inside.text === "string")
			parts.push(make("details", {}, make("summary", {}, "Markup, as text"), block("Markup", inside.text)));
	}
	return parts;
}

/* Files by the form for programs, or else by the links among the content. */
function filesOf(own, result) {
	if (own && Array.isArray(own.files))
		return own.files;
	return (result.content || []).filter((one) => one.type === "resource_link")
		.map((one) => ({ path: one.name, size: one.size, uri: one.uri, mime_type: one.mimeType }));
}

async function saveFile(file) {
	try {
		const read = await request("resources/read", { uri: file.uri });
		const part = (read.contents || [])[0];
		return part ? await save(part) || "Saved." : "There was nothing to save.";
	} catch (error) {
		return "It cannot be read: " + error.message;
	}
}

function fileItem(file) {
	const said = make("span", { class: "quiet", role: "status" });
	const saves = file.uri && host.can.serverResources && canSave();
	return make("li", {}, make("div", { class: "row" }, make("code", {}, shown(file.path)),
		make("span", { class: "quiet" }, file.size === undefined ? "" : bytes(file.size)),
		saves ? button("Save", async () => { said.textContent = await saveFile(file); },
			{ "aria-label": "Save " + file.path }) : null,
		file.http_url && host.can.openLinks ? button("Open", () => request("ui/open-link", { url: file.http_url })
			.catch((error) => { said.textContent = error.message; }), { "aria-label": "Open " + file.path }) : null,
		file.reason ? make("span", { class: "quiet" }, shown(file.reason)) : null, said));
}

function filesPart(files) {
	return files.length ? titled("Files", make("ul", {}, files.slice(0, 200).map(fileItem),
		files.length > 200 ? make("li", {}, `${number(files.length - 200)} more`) : null)) : null;
}

/* ---- limits ---- */

/* The limit of the call: what it asked for, or else what the tool says is usual. */
function limitOf(name) {
	const tool = host.context.toolInfo && host.context.toolInfo.tool;
	const properties = tool && tool.inputSchema && tool.inputSchema.properties || {};
	const value = call.arguments[name] ?? (properties[name] || {}).default;
	return typeof value === "number" && value > 0 ? value : null;
}

function bar(label, value, most, say) {
	const share = most ? Math.min(1, value / most) : 0;
	const text = most ? `${say(value)} of ${say(most)}` : say(value);
	return make("div", { class: "bar" }, make("span", {}, label),
		most ? make("div", { class: "track", role: "meter", "aria-label": label, "aria-valuemin": 0,
			"aria-valuemax": most, "aria-valuenow": value, "aria-valuetext": text },
			make("div", { class: "fill" + (share > .9 ? " high" : ""), style: `width:${100 * share}%` }))
			: make("span", {}),
		make("span", { class: "quiet" }, text));
}

function limitsPart(own) {
	if (!own.duration_ms && !own.peak_memory_bytes)
		return null;
	const time = limitOf("timeout_seconds"), memory = limitOf("memory_mb");
	return titled("Limits", make("div", {}, bar("Time", own.duration_ms, time && time * 1000, seconds),
		own.cpu_ms ? bar("CPU", own.cpu_ms, null, seconds) : null,
		own.peak_memory_bytes ? bar("Memory", own.peak_memory_bytes, memory && memory * 1048576, bytes) : null));
}

/* ---- sessions ---- */

function variableItem(one, session, at) {
	const size = one.shape ? one.shape.join(" x ") : one.length !== undefined ? number(one.length) + " long" : "";
	const shows = isName(one.name) && /pandas.*\.(DataFrame|Series)$/.test(one.type);
	return make("li", {}, make("div", { class: "row" }, make("code", {}, shown(one.name)),
		make("span", { class: "quiet" }, shown(`${one.type} ${size}`)),
		shows ? button("Show", () => at.replaceChildren(table(one.name, tableInSession(session, one.name))),
			{ "aria-label": "Show the table " + one.name }) : make("span", {}, shown(String(one.repr ?? "").slice(0, CELL)))));
}

async function showVariables(session, list, at) {
	list.textContent = "reading ...";
	try {
		const result = await callTool("run_repl", { session, inspect: true });
		const value = ((result.structuredContent || {}).result || {}).json;
		if (Array.isArray(value))
			list.replaceChildren(make("ul", {}, value.map((one) => variableItem(one, session, at))));
		else
			list.replaceChildren(block("Variables", textOf(result)));
	} catch (error) {
		list.textContent = "The session cannot be read: " + error.message;
	}
}

function sessionPart(own, session) {
	if (!session)
		return null;
	const list = make("div", { "aria-live": "polite" }), at = make("div", {});
	const facts = [own.state && own.state !== "kept" ? `${own.state}: ${own.state_text || ""}` : own.state_text,
		(own.checkpoints || []).length ? "checkpoints: " + own.checkpoints.join(", ") : null,
		(own.not_carried || []).length ? "not carried: " + own.not_carried.join("; ") : null];
	return titled("Session", make("div", {}, make("div", { class: "row" }, make("code", {}, shown(session)),
		canCall() ? button("Variables", () => showVariables(session, list, at)) : null),
		facts.filter(Boolean).map((one) => make("p", { class: "quiet" }, shown(one))), list, at));
}

/* ---- jobs ---- */

async function stopJob(id, stop) {
	stop.disabled = true;
	try {
		showResult(await callTool("job", { id, action: "cancel" }));
	} catch (error) {
		stop.disabled = false;
		stop.textContent = "Stop (" + error.message + ")";
	}
}

/* Looks again, each time later. Only the status is asked for: output that the view took would be
 * missing in the answer for the model. */
async function look() {
	if (!call.job || host.gone || document.hidden) {
		call.timer = host.gone ? null : setTimeout(look, call.wait);
		return;
	}
	call.wait = Math.min(30000, call.wait * 1.5);
	try {
		showResult(await callTool("job", { id: call.job, action: "status" }));
	} catch (error) {
		call.job = null;
	}
}

function followJob(id, runs) {
	clearTimeout(call.timer);
	call.job = runs && canCall() ? id : null;
	if (call.job)
		call.timer = setTimeout(look, call.wait);
}

function jobPart(id, runs, facts) {
	const stop = button("Stop", () => stopJob(id, stop), { class: "stop", "aria-label": "Stop the job " + id });
	return titled("Job", make("div", {}, make("div", { class: "row" }, make("code", {}, shown(id)),
		runs && canCall() ? stop : null), facts.filter(Boolean).map((one) => make("p", { class: "quiet" }, shown(one)))));
}

/* An answer of the tool job: the job's state, its output, and once it has ended its answer. */
function jobParts(own, result) {
	const runs = own.state === "running", output = own.output;
	const parts = [jobPart(own.job, runs, [own.waits && "It " + own.waits + ".",
		`${own.tool}, ${seconds(own.elapsed_ms || 0)}, ${number(own.output_bytes || 0)} bytes of output`])];
	followJob(own.job, runs);
	sayStatus(own.state);
	if (output && output.missed)
		parts.push(make("p", { class: "quiet" }, `${number(output.missed)} bytes before this are not kept any more.`));
	if (output && output.text)
		parts.push(titled("Output", block("Output", output.text)));
	if (own.answer)
		return [...parts, ...callParts(own.answer, result)];
	if (codeOf(call.arguments))
		parts.push(script(codeOf(call.arguments), 0, Boolean(own.waits)));
	return parts;
}

function jobList(jobs) {
	sayStatus("ok", counted(jobs.length, "job"));
	return jobs.slice(0, 200).map((one) => jobPart(one.job, one.state === "running",
		[`${one.tool}: ${one.state}, ${seconds(one.elapsed_ms || 0)}`, one.waits]));
}

/* ---- one answer ---- */

function valuePart(own, tables) {
	if (!own.result || tables.length)
		return null;
	const cut = own.truncated && own.truncated.result;
	return titled("Result", make("div", {}, block("Result", own.result.repr),
		cut ? make("p", { class: "quiet" }, "The result was shortened.") : null));
}

function isEmpty(own) {
	return !own.stdout && !own.stderr && !own.result && !own.error && !(own.displays || []).length &&
		!(own.files || []).length && !own.job;
}

function callParts(own, result) {
	const code = codeOf(call.arguments), session = sessionOf(own, result), tables = tableParts(own, session);
	const waits = own.status === "approval_pending";
	sayStatus(own.status, own.duration_ms ? seconds(own.duration_ms) : "");
	if (own.job)
		followJob(own.job, true);
	return [
		errorPart(own, code ? String(code).split(/\r\n|[\n\r]/) : []),
		own.job ? jobPart(own.job, true, [own.waits && "It " + own.waits + "."]) : null,
		waits && code ? script(code, 0, true) : null,
		...outputParts(own), ...tables, valuePart(own, tables), ...figureParts(result),
		isEmpty(own) ? make("p", { class: "quiet" }, "There was no output.") : null,
		filesPart(filesOf(own, result)),
		own.omitted ? make("p", { class: "quiet" }, "More was shown or left than is listed here.") : null,
		limitsPart(own), sessionPart(own, session),
		code && !waits ? script(code, own.error ? own.error.line : 0, false) : null,
	];
}

/* An answer that has only the content for models. */
function plainParts(result) {
	const session = sessionOf(null, result), text = textOf(result), code = codeOf(call.arguments);
	sayStatus(statusOf(result));
	return [
		text ? titled("Answer", block("Answer", text)) : make("p", { class: "quiet" }, "There was no output."),
		...figureParts(result), filesPart(filesOf(null, result)), sessionPart({}, session),
		code ? script(code, 0, statusOf(result) === "approval_pending") : null,
	];
}

function partsOf(result) {
	const own = result.structuredContent;
	if (!own || typeof own !== "object")
		return plainParts(result);
	if (Array.isArray(own.jobs))
		return jobList(own.jobs);
	return own.state && own.tool ? jobParts(own, result) : callParts(own, result);
}

function showParts(parts) {
	document.getElementById("parts").replaceChildren(...parts.filter(Boolean));
}

function showResult(result) {
	call.result = result;
	try {
		showParts(partsOf(result));
	} catch (error) {
		sayStatus("error", "this answer cannot be shown (" + error.message + ")");
		showParts([block("Answer", textOf(result))]);
	}
}

/* ---- what the host says ---- */

function takeContext(context) {
	Object.assign(host.context, context);
	const root = document.documentElement;
	if (context.theme === "light" || context.theme === "dark")
		root.style.colorScheme = context.theme;
	for (const [name, value] of Object.entries(context.styles && context.styles.variables || {}))
		if (name.startsWith("--"))
			root.style.setProperty(name, value);
	const fonts = context.styles && context.styles.css && context.styles.css.fonts;
	if (fonts)
		document.head.append(make("style", {}, fonts));
}

notices["ui/notifications/tool-input"] = (params) => {
	call.arguments = params.arguments || {};
	if (call.result)
		return;
	sayStatus("running");
	if (codeOf(call.arguments))
		showParts([script(codeOf(call.arguments), 0, true)]);
};
notices["ui/notifications/tool-result"] = showResult;
notices["ui/notifications/tool-cancelled"] = (params) => {
	clearTimeout(call.timer);
	call.job = null;
	sayStatus("cancelled", params.reason ? String(params.reason).slice(0, CELL) : "");
};
notices["ui/notifications/host-context-changed"] = takeContext;

function sayHeight() {
	const height = Math.ceil(document.getElementById("view").getBoundingClientRect().height);
	notify("ui/notifications/size-changed", { height: Math.min(height, 4000) });
}

async function begin() {
	const answered = await request("ui/initialize", { appInfo: { name: "mcp-pythond", version: "1" },
		appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] }, protocolVersion: "2026-01-26" });
	host.can = answered.hostCapabilities || {};
	takeContext(answered.hostContext || {});
	notify("ui/notifications/initialized", {});
	new ResizeObserver(sayHeight).observe(document.getElementById("view"));
}

begin().catch((error) => sayStatus("error", "the host refused the view (" + error.message + ")"));
