/* ---- tables ---- */

const PAGE = 25;		/* rows */
const COLUMNS = 40;		/* of a table in a session */
const CELL = 200;		/* characters */

function isName(text) {
	return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}

/* The program that reads one page of a table in the session. It only reads, and leaves no name
 * behind. The wish is data: a JSON text in a string of Python. */
function pageProgram(name, wish) {
	return `def __view(table, wish):
    import json
    def cell(value):
        value = value.item() if hasattr(value, "item") else value
        if value is None or value != value:
            return None
        if isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 2 ** 53):
            return value if abs(value) != float("inf") else str(value)
        return str(value)[:${CELL}]
    def shown(value):
        try:
            return cell(value)
        except Exception:
            return str(value)[:${CELL}]
    if not hasattr(table, "columns"):
        table = table.to_frame()
    columns, total = [str(name)[:${CELL}] for name in table.columns], len(table)
    if wish["filter"]:
        hit = None
        for i in range(len(columns)):
            one = table.iloc[:, i].astype(str).str.contains(wish["filter"], case=False, regex=False).to_numpy()
            hit = one if hit is None else hit | one
        table = table if hit is None else table[hit]
    if wish["sort"] is not None:
        key = table.iloc[:, wish["sort"]].reset_index(drop=True)
        how = {"ascending": wish["up"], "kind": "stable"}
        try:
            order = key.sort_values(**how)
        except TypeError:
            order = key.astype(str).sort_values(**how)
        table = table.iloc[order.index]
    part = table.iloc[wish["from"]:wish["from"] + wish["rows"], :${COLUMNS}]
    rows = [[shown(value) for value in row] for row in part.itertuples(name=None)]
    print("view:" + json.dumps({"columns": columns[:${COLUMNS}], "more": max(0, len(columns) - ${COLUMNS}),
                                "total": total, "found": len(table), "rows": rows}))
try:
    __view(${name}, __import__("json").loads(${JSON.stringify(JSON.stringify(wish))}))
finally:
    del __view
`;
}

function textOf(result) {
	const part = (result.content || []).find((one) => one.type === "text");
	return part ? String(part.text) : "";
}

/* What a cell printed: of the form for programs, or else the text for models. */
function printedBy(result) {
	const own = result.structuredContent;
	return own && typeof own.stdout === "string" ? own.stdout : textOf(result);
}

/* Pages of a table that a session has under this name. */
function tableInSession(session, name) {
	return async (wish) => {
		const result = await callTool("run_repl",
			{ session, code: pageProgram(name, wish), text_tokens: 200000 });
		const line = printedBy(result).split("\n").find((one) => one.startsWith("view:"));
		if (!line)
			throw new Error(textOf(result).split("\n")[0] || "the session gave no answer");
		return JSON.parse(line.slice(5));
	};
}

function compare(a, b) {
	if (typeof a === "number" && typeof b === "number")
		return a - b;
	return String(a).localeCompare(String(b), "en", { numeric: true });
}

/* Pages of rows that are here; missing values come last. Each row begins with its index. */
function tableHere(columns, rows) {
	return async (wish) => {
		const text = wish.filter.toLowerCase();
		const found = rows.filter((row) => !text || row.slice(1).some((value) =>
			value !== null && String(value).toLowerCase().includes(text)));
		if (wish.sort !== null)
			found.sort((one, other) => {
				const a = one[wish.sort + 1], b = other[wish.sort + 1];
				if (a === null || b === null)
					return (a === null) - (b === null);
				return wish.up ? compare(a, b) : compare(b, a);
			});
		return { columns, more: 0, total: rows.length, found: found.length,
			rows: found.slice(wish.from, wish.from + wish.rows) };
	};
}

function tableHead(page, wish, sortBy) {
	const cells = page.columns.map((name, i) => {
		const is = wish.sort === i;
		return make("th", { scope: "col", "aria-sort": is ? (wish.up ? "ascending" : "descending") : "none" },
			button([...shown(name), is ? (wish.up ? " \u2191" : " \u2193") : ""], () => sortBy(i),
				{ "data-sort": i }));
	});
	return make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", {}, "#")), cells));
}

function tableCell(value) {
	if (value === null || value === undefined)
		return make("td", { class: "missing" }, "missing");
	const text = typeof value === "object" ? JSON.stringify(value) : String(value);
	return make("td", { class: typeof value === "number" ? "number" : null, title: text.length > 40 ? text : null },
		shown(text.slice(0, CELL)));
}

function tableBody(page) {
	return make("tbody", {}, page.rows.map((row) => make("tr", {},
		make("th", { scope: "row" }, shown(row[0])), row.slice(1).map(tableCell))));
}

/* A table that sorts, filters and pages. source: a function from a wish to a promise of a page. */
function table(label, source, note) {
	const wish = { from: 0, rows: PAGE, sort: null, up: true, filter: "" };
	const grid = make("table", { "aria-label": label });
	const where = make("span", { class: "quiet", role: "status" });
	const moves = [["First", () => 0], ["Previous", () => wish.from - PAGE], ["Next", () => wish.from + PAGE],
		["Last", () => Math.max(0, Math.ceil(found / PAGE) - 1) * PAGE]]
		.map(([text, to]) => button(text, () => show({ from: Math.max(0, to()) })));
	const filter = make("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows of " + label,
		onchange: () => show({ filter: filter.value, from: 0 }) });
	let found = 0, turn = 0;

	function sortBy(i) {
		show(wish.sort === i && wish.up ? { up: false } : { sort: i, up: true, from: 0 });
	}

	function fill(page) {
		const at = document.activeElement, sorted = at && grid.contains(at) ? at.getAttribute("data-sort") : null;
		found = page.found;
		grid.replaceChildren(tableHead(page, wish, sortBy), tableBody(page));
		if (sorted !== null)
			grid.querySelector(`[data-sort="${sorted}"]`).focus();
		const last = wish.from + page.rows.length;
		where.textContent = (found ? `rows ${number(wish.from + 1)} to ${number(last)} of ${number(found)}` : "no rows") +
			(found < page.total ? `, filtered from ${number(page.total)}` : "") +
			(page.more ? `; ${number(page.more)} more columns are not shown` : "");
		moves.forEach((move, i) => { move.disabled = i < 2 ? wish.from === 0 : last >= found; });
	}

	async function show(change) {
		const mine = ++turn;
		Object.assign(wish, change);
		where.textContent = "reading ...";
		try {
			const page = await source({ ...wish });
			if (mine === turn)
				fill(page);
		} catch (error) {
			if (mine === turn)
				where.textContent = "This page cannot be shown: " + error.message;
		}
	}

	show({});
	return make("section", { "aria-label": label }, make("h2", {}, shown(label)),
		make("div", { class: "row" }, filter, moves, where),
		make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label + ", scrolls" }, grid),
		note ? make("p", { class: "quiet" }, note) : null);
}
