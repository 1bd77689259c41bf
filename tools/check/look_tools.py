# SPDX-License-Identifier: Apache-2.0
"""Searches the tools of other servers, in a jailed worker.

Standard input: {"query": text, "detail": "name", "summary" or "full", "server": text or null,
"limit": n}. The value of the last expression is the answer: {"tools": [{"name", "description"?,
"usage"?}]}, or {"error": text}.
"""

import json
import sys

import tools

USAGE_MAX = 120000  # characters of all usages, because servers choose their length


def look(query, detail, server, limit):
    if server is not None and server not in tools.servers():
        return {"error": "there is no server %s; there are: %s" % (server, ", ".join(tools.servers()))}
    try:
        found = tools.search(query, server, limit)
    except tools.ToolError as e:
        return {"error": str(e)}
    left = USAGE_MAX
    for one in found:
        if detail == "name":
            del one["description"]
        elif detail == "full":
            usage = tools.describe(one["name"])
            if len(usage) > left:
                usage = usage[:left] + "\n[...]"
            left = max(0, left - len(usage))
            one["usage"] = usage
    return {"tools": found}


look(**json.load(sys.stdin))
