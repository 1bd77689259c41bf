# SPDX-License-Identifier: Apache-2.0
# doc: manual pages, written by hand; the table of configuration keys is checked by
# systemd/check-units.sh, the formatting here.
dist_man_MANS += \
	doc/man/mcp-python.1 \
	doc/man/mcp-python-kernel.1 \
	doc/man/mcp-python-usage.1 \
	doc/man/mcp-python-web.1 \
	doc/man/mcp-pythond.conf.5 \
	doc/man/mcp-pythond-tokens.5 \
	doc/man/mcp-python-egress.8 \
	doc/man/mcp-python-gateway.8 \
	doc/man/mcp-python-interpreter.8 \
	doc/man/mcp-python-keeper.8 \
	doc/man/mcp-python-tools.8 \
	doc/man/mcp-python-unpack.8 \
	doc/man/mcp-python-worker.8 \
	doc/man/mcp-pythond.8
dist_doc_DATA = README.md doc/agents.md doc/containers.md doc/docker-seccomp.json doc/doors.md doc/features.md \
	doc/hacking.md doc/moving.md doc/operators.md doc/threat-model.md doc/findings.md doc/finite.md \
	doc/reliability.md doc/views.md
EXTRA_DIST += doc/site
architecturedir = $(docdir)/architecture
dist_architecture_DATA = doc/architecture/README.md doc/architecture/egress.md doc/architecture/execution.md \
	doc/architecture/files.md doc/architecture/jail.md doc/architecture/messages.md \
	doc/architecture/other-servers.md doc/architecture/packages.md doc/architecture/policy.md \
	doc/architecture/privilege.md doc/architecture/protocol.md doc/architecture/sessions.md \
	doc/architecture/style.md
haproxydir = $(docdir)/haproxy
dist_haproxy_DATA = doc/haproxy/README.md doc/haproxy/haproxy.cfg
prometheusdir = $(docdir)/prometheus
dist_prometheus_DATA = doc/prometheus/mcp-pythond.rules.yml
grafanadir = $(docdir)/grafana
dist_grafana_DATA = doc/grafana/mcp-pythond.json
examplesdir = $(docdir)/examples
examples_DATA = examples/hello.py examples/sales_report.py examples/client_tools.mjs examples/client_tools_modern.mjs examples/approvals-notify.service examples/report.service examples/report.timer examples/advisories.service examples/advisories.timer
examples_SCRIPTS = examples/approvals_notify.py examples/advisories.py
kubernetesdir = $(docdir)/examples/kubernetes
dist_kubernetes_DATA = examples/kubernetes/mcp-pythond.yaml examples/kubernetes/podmonitor.yaml
dist_check_SCRIPTS += doc/check-man.sh
TESTS += doc/check-man.sh
