# SPDX-License-Identifier: Apache-2.0
# gateway: lets clients that do not speak MCP in. Python on aiohttp and pyzmq, without authority:
# the service decides what a client may. Modules are run by the programs below and by nobody else.
gatewaydir = $(datadir)/mcp-python-gateway
dist_gateway_DATA = \
	gateway/calls.py gateway/commands.py \
	gateway/e2b.py gateway/e2b_envd.py gateway/e2b_jail.py \
	gateway/hosted.py \
	gateway/jupyter.py gateway/jupyter_wire.py \
	gateway/kernel.py \
	gateway/librechat.py \
	gateway/lines.py gateway/login.py \
	gateway/main.py \
	gateway/notify.py \
	gateway/options.py \
	gateway/records.py \
	gateway/run_code.py \
	gateway/server.py \
	gateway/service.py \
	gateway/usage.py \
	gateway/web.py \
	gateway/zmq_kernel.py
# Pages of the console, and what they load.
gatewaypagesdir = $(gatewaydir)/pages
dist_gatewaypages_DATA = \
	gateway/pages/approval.html gateway/pages/approvals.html gateway/pages/audit.html \
	gateway/pages/base.html gateway/pages/error.html gateway/pages/health.html \
	gateway/pages/now.html gateway/pages/now_part.html gateway/pages/packages.html gateway/pages/parts.html \
	gateway/pages/policy.html gateway/pages/run.html gateway/pages/runs.html \
	gateway/pages/script.html gateway/pages/sessions.html gateway/pages/usage.html \
	gateway/pages/verified.html gateway/pages/welcome.html
gatewaystaticdir = $(gatewaypagesdir)/static
dist_gatewaystatic_DATA = gateway/pages/static/console.css gateway/pages/static/console.js gateway/pages/static/icon.svg
gateway_made = mcp-python-gateway mcp-python-kernel mcp-python-usage mcp-python-web
libexec_SCRIPTS += $(gateway_made)
EXTRA_DIST += gateway/program.in
CLEANFILES += $(gateway_made)
$(gateway_made): gateway/program.in Makefile
	$(AM_V_GEN)case $@ in *-kernel) module=zmq_kernel ;; *-usage) module=usage ;; *-web) module=web ;; *) module=main ;; esac && $(SED) -e 's,@gatewaydir[@],$(gatewaydir),' -e 's,@bindir[@],$(bindir),' \
		-e 's,@VERSION[@],$(VERSION),' -e 's,@srcdir[@],$(srcdir),' -e 's,@program[@],$@,' \
		-e "s,@module[@],$$module," $(srcdir)/gateway/program.in >$@.tmp && \
	chmod 755 $@.tmp && mv $@.tmp $@

# Jupyter programs of all users find the kernel by this file.
kernelspecdir = $(datadir)/jupyter/kernels/mcp-python
kernelspec_DATA = gateway/kernel.json
CLEANFILES += gateway/kernel.json
gateway/kernel.json: mcp-python-kernel
	$(AM_V_GEN)$(MKDIR_P) gateway && ./mcp-python-kernel --spec $(bindir) >$@.tmp && mv $@.tmp $@

# The client library, which pip installs.
EXTRA_DIST += sdk/python/README.md sdk/python/pyproject.toml sdk/python/mcp_python/__init__.py
