# SPDX-License-Identifier: Apache-2.0
# systemd: units, sysusers, tmpfiles and the default configuration. Paths are filled in at make
# time, where $(sbindir) is known in full.
UNIT_TEMPLATES = systemd/mcp-pythond.service.in systemd/mcp-pythond-user.service.in \
	systemd/mcp-python-gateway.service.in systemd/mcp-python-web.service.in
UNITS_MADE = systemd/mcp-pythond.service systemd/mcp-pythond-user.service \
	systemd/mcp-python-gateway.service systemd/mcp-python-web.service
EXTRA_DIST += $(UNIT_TEMPLATES) \
	systemd/mcp-pythond.socket systemd/mcp-pythond-user.socket \
	systemd/mcp-pythond-admin.socket systemd/mcp-pythond-user-admin.socket \
	systemd/mcp-pythond-http.socket \
	systemd/mcp-pythond-metrics.socket systemd/mcp-python-gateway.socket \
	systemd/mcp-python-web.socket systemd/mcp-python-web-login.socket \
	systemd/mcp-python-web-proxy.socket \
	systemd/mcp-pythond.sysusers systemd/mcp-pythond.tmpfiles systemd/mcp-pythond.conf \
	systemd/mcp-pythond.catalog
CLEANFILES += $(UNITS_MADE)
all-local: $(UNITS_MADE)

systemd/mcp-pythond.service: systemd/mcp-pythond.service.in Makefile
systemd/mcp-pythond-user.service: systemd/mcp-pythond-user.service.in Makefile
systemd/mcp-python-gateway.service: systemd/mcp-python-gateway.service.in Makefile
systemd/mcp-python-web.service: systemd/mcp-python-web.service.in Makefile
# systemd 254 and later let the pause before a restart grow.
$(UNITS_MADE):
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	if $(PKG_CONFIG) --atleast-version=254 libsystemd; \
	then steps='s|^@steps[@]||' pause=100ms; else steps='/^@steps[@]/d' pause=1s; fi && \
	$(SED) -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@libexecdir[@]|$(libexecdir)|g' \
		-e "s|@restart_sec[@]|$$pause|" -e "$$steps" \
		$(srcdir)/$@.in >$@.tmp && mv $@.tmp $@

# A configuration that is there already is the administrator's, and stays.
mcpconfdir = $(sysconfdir)/mcp-pythond
install-data-local: $(UNITS_MADE)
	$(MKDIR_P) "$(DESTDIR)$(systemdsystemunitdir)" "$(DESTDIR)$(systemduserunitdir)" \
		"$(DESTDIR)$(sysusersdir)" "$(DESTDIR)$(tmpfilesdir)" "$(DESTDIR)$(mcpconfdir)" \
		"$(DESTDIR)$(catalogdir)"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond.catalog \
		"$(DESTDIR)$(catalogdir)/mcp-pythond.catalog"
	$(INSTALL_DATA) systemd/mcp-pythond.service \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond.service"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond.socket \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond.socket"
	for kind in admin http metrics; do \
		$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond-$$kind.socket \
			"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond-$$kind.socket" || exit 1; \
	done
	$(INSTALL_DATA) systemd/mcp-python-gateway.service $(srcdir)/systemd/mcp-python-gateway.socket \
		systemd/mcp-python-web.service $(srcdir)/systemd/mcp-python-web.socket \
		$(srcdir)/systemd/mcp-python-web-login.socket $(srcdir)/systemd/mcp-python-web-proxy.socket \
		"$(DESTDIR)$(systemdsystemunitdir)"
	$(INSTALL_DATA) systemd/mcp-pythond-user.service \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond.service"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond-user.socket \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond.socket"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond-user-admin.socket \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond-admin.socket"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond.sysusers \
		"$(DESTDIR)$(sysusersdir)/mcp-pythond.conf"
	$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond.tmpfiles \
		"$(DESTDIR)$(tmpfilesdir)/mcp-pythond.conf"
	test -e "$(DESTDIR)$(mcpconfdir)/mcp-pythond.conf" || \
		$(INSTALL_DATA) $(srcdir)/systemd/mcp-pythond.conf \
			"$(DESTDIR)$(mcpconfdir)/mcp-pythond.conf"

uninstall-local:
	rm -f "$(DESTDIR)$(catalogdir)/mcp-pythond.catalog" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond.service" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond-admin.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond-http.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-pythond-metrics.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-gateway.service" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-gateway.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-web.service" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-web.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-web-login.socket" \
		"$(DESTDIR)$(systemdsystemunitdir)/mcp-python-web-proxy.socket" \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond.service" \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond.socket" \
		"$(DESTDIR)$(systemduserunitdir)/mcp-pythond-admin.socket" \
		"$(DESTDIR)$(sysusersdir)/mcp-pythond.conf" \
		"$(DESTDIR)$(tmpfilesdir)/mcp-pythond.conf"
	! cmp -s "$(DESTDIR)$(mcpconfdir)/mcp-pythond.conf" $(srcdir)/systemd/mcp-pythond.conf || \
		rm -f "$(DESTDIR)$(mcpconfdir)/mcp-pythond.conf"

dist_check_SCRIPTS += systemd/check-units.sh
TESTS += systemd/check-units.sh
