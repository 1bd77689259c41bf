# SPDX-License-Identifier: Apache-2.0
# gateway: lets clients that do not speak MCP in. Python on aiohttp, with a user of its own and no
# authority: the service decides what a client may.
gatewaydir = $(datadir)/mcp-python-gateway
dist_gateway_DATA = \
	gateway/jupyter.py gateway/jupyter_wire.py \
	gateway/kernel.py \
	gateway/main.py \
	gateway/run_code.py \
	gateway/server.py \
	gateway/service.py
libexec_SCRIPTS += mcp-python-gateway
EXTRA_DIST += gateway/mcp-python-gateway.in
CLEANFILES += mcp-python-gateway
mcp-python-gateway: gateway/mcp-python-gateway.in Makefile
	$(AM_V_GEN)sed -e 's,@gatewaydir[@],$(gatewaydir),; s,@VERSION[@],$(VERSION),; s,@srcdir[@],$(srcdir),' \
		$(srcdir)/gateway/mcp-python-gateway.in >$@.tmp && chmod 755 $@.tmp && mv $@.tmp $@
