// SPDX-License-Identifier: Apache-2.0
// A host of MCP Apps in a browser: the official bridge, and beside it a frame of another origin that holds the view.
// What the view asks of the server goes to Node (drive.mjs), which has the client.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const told = { size: [], calls: [], saved: [], links: [], ended: 0 };

window.told = told;

// Shows one call. what: {html, tool, arguments, result, theme, can, sandbox}; the promise holds when the view is ready.
window.showCall = (what) => new Promise((resolve, reject) => {
	const frame = document.createElement("iframe");
	const capabilities = what.can || { openLinks: {}, serverTools: {}, serverResources: {}, downloadFile: {} };
	const bridge = new AppBridge(null, { name: "test-host", version: "1" }, capabilities, {
		hostContext: { theme: what.theme, displayMode: "inline", toolInfo: { tool: what.tool } },
	});

	frame.style.cssText = "width: 100%; border: 0; height: 900px";
	bridge.onsandboxready = () => bridge.sendSandboxResourceReady({ html: what.html, sandbox: "allow-scripts" })
		.catch(reject);
	bridge.onsizechange = ({ height }) => {
		told.size.push(height);
		frame.style.height = height + "px";
	};
	bridge.oncalltool = (params) => {
		told.calls.push(params);
		return window.callTool(params);
	};
	bridge.onreadresource = (params) => window.readResource(params);
	bridge.ondownloadfile = (params) => {
		told.saved.push(params);
		return {};
	};
	bridge.onopenlink = (params) => {
		told.links.push(params);
		return {};
	};
	bridge.oninitialized = async () => {
		await bridge.sendToolInput({ arguments: what.arguments });
		if (what.result)
			await bridge.sendToolResult(what.result);
		resolve();
	};
	document.body.style.background = what.theme === "dark" ? "#101114" : "#ffffff";
	document.body.replaceChildren(frame);
	window.bridge = bridge;
	bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow)).then(() => {
		frame.src = what.sandbox;
	}, reject);
});
