/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools of other MCP servers. The worker asks the supervisor, which decides about each
 * call and lets mcp-python-tools make it. worker/tools_module.py is the module that scripts import.
 */
#ifndef WORKER_TOOLS_H
#define WORKER_TOOLS_H

#include <Python.h>

#include <stdint.h>

/* The function ask_tool(server: str, tool: str | None, arguments: str | None) -> (status, body):
 * status as enum tool_status, body a str. Without a tool and arguments it asks for the list of the
 * server's tools. Threads may call it at the same time. A new reference, or NULL with an exception
 * set. */
PyObject *tools_ask(void);

/* From now on this process may make this many calls. */
void tools_begin(uint32_t calls);

#endif
