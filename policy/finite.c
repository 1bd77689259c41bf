/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "policy/finite.h"

/* test: fills the row with what one tenant can get, while another one works. */
#define ROW(what, bounds, shares, when_full, test) { what, bounds, FINITE_##shares, when_full }

static const struct finite rows[] = {
	ROW("connections of unix sockets",
	    "[service] sessions_max, [service] sessions_per_tenant", FAIR,
	    "the longest idle one of the tenant with the most is closed",
	    "shares -k idle_connections_keep_nobody_out"),
	ROW("users that are looked up",
	    "ARRIVALS_MAX, host/jobs.h:JOBS_MAX, GROUPS_MAX, USAGE_MEMBERS_MAX", SERVICE,
	    "a new user is refused until a lookup has ended",
	    "unit/host/test-directory"),
	ROW("bytes that unix sockets have not read, and of their calls",
	    "STREAM_OUTPUT_MAX, TENANT_BUFFERED_MAX, CONVERSATION_CALLS_MAX, STREAM_CALLS_MAX", FAIR,
	    "the fullest stream of the tenant with the most is closed",
	    "unit/supervisor/test-stream"),
	ROW("HTTP connections",
	    "[http] connections_max, [http] connections_per_peer", FAIR,
	    "the longest idle one of the tenant with the most is closed; strangers have a quarter",
	    "shares -k http_connections_of_nobody_keep_nobody_out"),
	ROW("bytes that HTTP clients have not read, and of their calls",
	    "HTTP_PEER_BYTES_MAX, HTTP_TENANT_BYTES_MAX, HTTP_OUTPUT_MAX, http/upload.c:WAITING_MAX", FAIR,
	    "the connection is closed, the call is refused",
	    "unit/http/test-http-account"),
	ROW("HTTP sessions",
	    "[http] sessions_max, [http] sessions_per_tenant", FAIR,
	    "the session is refused; idle ones end by session_idle_seconds",
	    "shares -k http_sessions_keep_nobody_out"),
	ROW("events of HTTP streams, for resuming",
	    "HTTP_REPLAY_STREAM_MAX, HTTP_REPLAY_TENANT_MAX", FAIR,
	    "the tenant's oldest are dropped",
	    "unit/http/test-http-replay"),
	ROW("subscriptions",
	    "mcp/methods.c:SUBSCRIPTIONS_MAX, mcp/listen.c:NAMES_MAX", TENANT,
	    "the subscription is refused",
	    "unit/mcp/test-mcp"),
	ROW("workers",
	    "[pool] workers_max, [pool] tenant_running_max, [pool] tenant_queue_max, [pool] wait_seconds, "
	    "[quota] concurrent, [quota] queued", FAIR,
	    "calls wait in the tenant's queue; the last quarter is for tenants with few",
	    "shares -k sleeping_scripts_keep_nobody_out"),
	ROW("workers that are kept warm",
	    "[pool] warm, [pool] warm_max, [pool] ready_max, [pool] tenant_ready_max", SERVICE,
	    "the longest unused ones make room",
	    "unit/engine/test-engine"),
	ROW("zygotes of tenants and profiles",
	    "[pool] tenant_zygotes_max, LAUNCHER_ALIVE_MAX, ZYGOTE_SPAWNS_MAX, POOL_KINDS_MAX", SERVICE,
	    "an idle tenant's zygote makes room; without one the call is refused",
	    "zygotes -k an_idle_tenants_zygote_is_ended"),
	ROW("sessions of run_repl",
	    "[repl] sessions_max, [repl] memory_total_mb, [quota] sessions, REPL_WAITING_MAX, ENDED_MAX, "
	    "ENDED_OF_ONE_MAX, "
	    "REPL_SNAPSHOTS_MAX, REPL_COPYING_MAX, HANDOVER_SESSIONS_MAX, HANDOVER_TABLE_MAX", FAIR,
	    "the longest idle one of the tenant with the most is ended; a quarter of all workers is for scripts",
	    "shares -k the_longest_idle_session_makes_room"),
	ROW("processes and threads",
	    "[limits] pids, [limits] pids_max", TENANT,
	    "a tenant has half of all at most: pids.max of its cgroup, or a worker is ended",
	    "system -k threads_of_one_tenant"),
	ROW("memory of workers",
	    "[limits] memory_mb, [limits] memory_max_mb", KERNEL,
	    "memory.max of each worker, and oom.group",
	    "limits -k memory_limit"),
	ROW("processor time",
	    "[limits] cpu_percent, [quota] cpu_seconds_per_hour, LOAD_WEIGHT_MOST, PERMILLE_MOST", KERNEL,
	    "cpu.weight and cpu.max of each tenant's cgroup",
	    "system -k a_busy_tenant_yields_to_the_others"),
	ROW("sockets, and memory of the network's protocols",
	    "engine/tables.c:SOCKETS_MOST", TENANT,
	    "a worker of the tenant is ended",
	    "unit/engine/test-tables"),
	ROW("uids for workers",
	    "[service] subuid_count, host/outer.c:SLOTS_MAX", SERVICE,
	    "as many as workers_max, which --check-config compares",
	    "unit/policy/test-config"),
	ROW("descriptors of the service",
	    "base/accepting.c:RESERVE_MAX, base/turns.c:WAITING_MAX, MSG_FDS_MAX, FRAME_WRITER_FDS_MAX, "
	    "ENDPOINTS_MAX, HTTP_ENDPOINTS_MAX", SERVICE,
	    "connections wait, so that calls have a reserve",
	    "start -k connections_leave_a_reserve"),
	ROW("kept results, in memory",
	    "[results] keep_bytes, [results] keep_bytes_max, RESOURCES_TENANT_MAX", FAIR,
	    "the tenant's oldest are dropped",
	    "unit/tools/test-results"),
	ROW("files on disk",
	    "[files] tenant_bytes, [files] bytes_max, [files] tenant_files, [files] file_bytes, SWEPT_MAX", TENANT,
	    "the file is not kept, and the answer says why",
	    "unit/host/test-filestore"),
	ROW("volumes",
	    "[workspace] volumes, [workspace] volume_bytes, [workspace] volume_files, [workspace] bytes_max", TENANT,
	    "a new volume is refused; in one, ENOSPC",
	    "volumes -k the_disk_keeps_some_room"),
	ROW("installed packages",
	    "[packages] store_mb, [quota] disk_bytes, OWNED_MAX, tools/sets/store.c:REQUESTS_MAX", TENANT,
	    "the sets unused for longest are dropped",
	    "unit/tools/test-owned"),
	ROW("advisories about packages",
	    "ADVISORIES_MAX, ADVISORIES_BYTES_MAX, ADVISORIES_FILE_MAX, ADVISORIES_RECORD_MAX", SERVICE,
	    "the file is refused, and what was read before counts",
	    "unit/govern/test-advisories"),
	ROW("background jobs",
	    "[mcp] jobs_per_tenant, [mcp] job_bytes", FAIR,
	    "the tenant's oldest ended jobs are dropped",
	    "unit/base/test-kept"),
	ROW("tasks",
	    "[mcp] tasks_per_tenant, [mcp] kept_bytes", FAIR,
	    "the tenant's oldest ended tasks are dropped",
	    "unit/base/test-kept"),
	ROW("calls with a key",
	    "[mcp] repeat_calls, LEDGER_CALLS_MAX", FAIR,
	    "a further key is refused; the tenant's oldest answers are dropped",
	    "unit/govern/test-ledger"),
	ROW("calls that wait for a person, and their requests",
	    "[mcp] parked_per_tenant, RUNS_BYTES_MAX", TENANT,
	    "the oldest is given up; a long request is refused",
	    "unit/mcp/test-mcp"),
	ROW("requests for approval",
	    "APPROVALS_PER_TENANT, APPROVALS_SHOWN_PER_TENANT, APPROVALS_PAST_PER_TENANT, "
	    "APPROVALS_PAST_SHOWN, APPROVAL_ITEMS_MAX, APPROVAL_SHOWN_MAX", FAIR,
	    "a new one is refused; the oldest past ones are forgotten",
	    "unit/govern/test-approvals"),
	ROW("bytes of the audit log",
	    "[quota] audit_bytes_per_hour, [audit] rotate_bytes, [audit] keep_bytes, govern/audit_log.c:PENDING_MAX, govern/writer.c:WAITING_MAX", TENANT,
	    "the tenant's calls are refused until the hour is over",
	    "audit -k a_tenant_has_a_share_of_the_log"),
	ROW("connections of operators",
	    "supervisor/operate/admin.c:CONNECTIONS_MAX, STRANGERS_MAX, supervisor/operate/admin.c:WAITING_MAX, "
	    "supervisor/operate/admin.c:UNREAD_MAX", SERVICE,
	    "a connection is refused; users who are no operators have half",
	    "shares -k strangers_keep_no_operator_out"),
	ROW("connections to the outside",
	    "[network] connections, [network] connections_max, [network] bytes_max, [network] rate_max", TENANT,
	    "the connection is refused, or slowed down",
	    "egress -k the_rate_is_bounded"),
	ROW("calls of other servers' tools",
	    "[tool-calls] calls, [tool-calls] at_once, [tool-calls] result_bytes, [tool-calls] results_bytes, "
	    "TOOL_CALLS_MAX, TOOL_LISTS_MAX", TENANT,
	    "the call of the script fails, by name",
	    "tools -k values_are_bounded"),
	ROW("executions that the service makes itself",
	    "[quota] executions_per_minute, [packages] memory_mb, [packages] max_bytes, [packages] max_packages, "
	    "[packages] environment_mb, [packages] environment_files, INSTALL_SOURCES_MAX", TENANT,
	    "the quotas of their tenant hold for them",
	    "policy -k what_the_service_runs_for_a_tenant_has_a_rate"),
};
#undef ROW

const struct finite *
finite_at(size_t i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const char *
finite_shares_name(enum finite_shares shares)
{
	static const char *const names[] = { "fair", "tenant", "service", "kernel" };

	return names[shares];
}
