# SPDX-License-Identifier: Apache-2.0
# govern: what policy decides at run time: the gate, approvals, the audit log, counters.
noinst_LIBRARIES += libgovern.a
libgovern_a_SOURCES = \
	govern/advisories.c govern/advisories.h \
	govern/alarms.c govern/alarms.h \
	govern/approvals.c govern/approvals.h \
	govern/approvals_file.c govern/approvals_file.h \
	govern/approvals_load.c \
	govern/approvals_parts.h \
	govern/audit.c govern/audit.h \
	govern/audit_file.c govern/audit_file.h \
	govern/audit_log.c govern/audit_log.h \
	govern/audit_record.c govern/audit_record.h govern/audit_events.def govern/audit_events.def \
	govern/gate.c govern/gate.h \
	govern/ledger.c govern/ledger.h \
	govern/metrics.c govern/metrics.h \
	govern/openmetrics.c govern/openmetrics.h \
	govern/subject.c govern/subject.h \
	govern/whole_file.c govern/whole_file.h \
	govern/writer.c govern/writer.h
libgovern_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
