#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Starts mcp-pythond of the package for this machine. Node cannot replace itself by a program, so it
// forwards signals to it, and ends as it has ended. stdout belongs to MCP: errors go to stderr.
"use strict";
const { spawn } = require("child_process");
const path = require("path");

const CONTAINER = "podman run -i --rm --security-opt unmask=ALL mcp-pythond";

function fail(...lines) {
	for (const line of lines) console.error("mcp-pythond: " + line);
	process.exit(1);
}

function findProgram() {
	const name = `mcp-pythond-${process.platform}-${process.arch}`;
	if (process.platform !== "linux")
		fail(`it runs on Linux; this is ${process.platform}. In a container:`, CONTAINER,
			"(doc/containers.md of the source says how the image is built)");
	if (!require("../package.json").optionalDependencies[name])
		fail(`no package for ${process.arch}: there are x64 and arm64`);
	if (!process.report.getReport().header.glibcVersionRuntime)
		fail("it needs glibc 2.34 or later, and this system has another C library. In a container:",
			CONTAINER);
	try {
		const place = path.dirname(require.resolve(name + "/package.json"));
		return path.join(place, "libexec", "mcp-pythond");
	} catch {
		return fail(`the package ${name} is not installed: was npm told --omit=optional?`);
	}
}

function run(program) {
	const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
	const forwarded = ["SIGTERM", "SIGINT", "SIGHUP"];
	for (const name of forwarded) process.on(name, () => child.kill(name));
	child.on("error", (error) => fail(error.message));
	child.on("exit", (status, signal) => {
		if (signal === null) process.exit(status);
		for (const name of forwarded) process.removeAllListeners(name);
		process.kill(process.pid, signal);
	});
}

run(findProgram());
