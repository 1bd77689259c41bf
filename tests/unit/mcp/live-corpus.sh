#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The corpora of malformed and unusual messages, against a live server.
exec "${PYTHON3:-/usr/bin/python3}" "${srcdir:-.}/tests/integration/jsonrpc_corpus.py" \
	--start tests/unit/mcp/serve-fake
