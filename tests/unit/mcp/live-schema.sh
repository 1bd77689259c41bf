#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a live server sends, in every revision, against the official schemas.
exec "${PYTHON3:-/usr/bin/python3}" "${srcdir:-.}/tests/integration/mcp_schema.py" \
	--start tests/unit/mcp/serve-fake
