/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of all keys; the types of their values are in
 * policy/key_value.c. */
#include "policy/keys.h"

#include <errno.h>
#include <string.h>

#include "policy/config.h"
#include "policy/learnable.h"

#define KiB UINT64_C(1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* The modules that scripts import most and that import without a side effect (no thread, no
 * descriptor left open). Other modules are imported by the script, at its own cost. */
#define BASIC_MODULES \
	"abc argparse array ast asyncio base64 binascii bisect builtins bz2 calendar cmath " \
	"codecs collections collections.abc concurrent.futures contextlib contextvars copy " \
	"csv dataclasses datetime decimal difflib enum errno fnmatch fractions functools " \
	"gc glob gzip hashlib heapq hmac html importlib inspect io itertools json keyword " \
	"linecache locale logging lzma math numbers operator os pathlib pickle platform " \
	"pprint queue random re secrets select selectors shlex shutil signal socket sqlite3 " \
	"stat statistics string struct subprocess sys tempfile textwrap threading time " \
	"token tokenize traceback types typing unicodedata urllib.parse uuid warnings " \
	"weakref zipfile zlib zoneinfo"

/* The modules of the standard library in the basic tier of the server python_sandbox_server. */
#define BASIC_TIER \
	"abc base64 binascii bisect calendar cmath collections configparser contextlib copy " \
	"csv dataclasses datetime decimal difflib enum fractions functools hashlib heapq hmac " \
	"html itertools json math operator random re secrets statistics string textwrap time " \
	"types typing unicodedata urllib.parse uuid xml.etree"

/* Well-known packages that take long to import, and their modules that scripts import most. A
 * zygote may import them before a script does (policy/learnable.h). */
#define LEARNABLE_MODULES \
	"numpy pandas scipy scipy.stats scipy.optimize scipy.signal scipy.sparse scipy.linalg " \
	"scipy.interpolate scipy.integrate scipy.spatial matplotlib matplotlib.pyplot seaborn " \
	"sklearn sklearn.linear_model sklearn.model_selection sklearn.metrics " \
	"sklearn.preprocessing sklearn.ensemble sklearn.cluster sklearn.decomposition " \
	"sklearn.datasets sklearn.tree sklearn.svm sklearn.neighbors sklearn.pipeline " \
	"sklearn.feature_extraction.text statsmodels.api statsmodels.formula.api " \
	"statsmodels.tsa.seasonal statsmodels.tsa.holtwinters statsmodels.tsa.arima.model sympy " \
	"requests httpx bs4 lxml.etree lxml.html yaml jinja2 networkx nltk openpyxl " \
	"docx pypdf PIL.Image plotly.express plotly.graph_objects altair polars " \
	"pydantic tabulate rich tqdm aiohttp dateutil.parser"

#define KEY(section, name, kind, member, least, most, unit, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, member), least, most, unit, \
	  standard, 0, NULL }
#define TENANT_KEY(section, name, kind, member, least, most, unit, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, member), least, most, unit, \
	  standard, KEY_OF_TENANT, NULL }
#define TENANT_DENY_KEY(section, name, kind, member, most, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, member), 0, most, 1, standard, \
	  KEY_OF_TENANT | KEY_ADDS, NULL }
#define CHOICE_KEY(section, name, member, choices, standard) \
	{ section, name, KEY_CHOICE, offsetof(struct config, member), 0, 0, 1, standard, 0, \
	  choices }
#define TENANT_CHOICE_KEY(section, name, member, choices, standard) \
	{ section, name, KEY_CHOICE, offsetof(struct config, member), 0, 0, 1, standard, \
	  KEY_OF_TENANT, choices }
#define PROFILE_KEY(name, kind, member, least, most, standard) \
	{ "profile", name, KEY_##kind, offsetof(struct config_profile, member), least, most, 1, \
	  standard, 0, NULL }

#define TOOLS_KEY(name, kind, member, least, most, standard) \
	{ "tools", name, KEY_##kind, offsetof(struct config_tools, member), least, most, 1, \
	  standard, 0, NULL }
#define SECRET_KEY(name, kind, member, most, standard) \
	{ "secret", name, KEY_##kind, offsetof(struct config_secret, member), 1, most, 1, \
	  standard, 0, NULL }
#define INTERPRETER_KEY(name, member) \
	{ "interpreter", name, KEY_PATH, offsetof(struct config_interpreter, member), 1, 4000, 1, \
	  "", 0, NULL }

#define VERDICTS "allow|approve|deny"	/* in the order of enum policy_verdict */

static const struct key keys[] = {
	KEY("service", "socket",              PATH,  service.socket,              1, 107,        1, ""),
	KEY("service", "user",                NAME,  service.user,                1, 32,         1, "mcp-python"),
	KEY("service", "directory_seconds",   U32,   service.directory_seconds,   1, 120,        1, "10"),
	KEY("service", "identity_seconds",    U32,   service.identity_seconds,    1, 86400,      1, "3600"),
	CHOICE_KEY("service", "unknown_uids", service.unknown_uids, "refuse|allow", "refuse"),
	KEY("service", "subuid_base",         U32,   service.subuid_base,     65536, 4294836223, 1, "1879048192"),
	KEY("service", "subuid_count",        U32,   service.subuid_count,        3, 65536,      1, "65536"),
	KEY("service", "sessions_max",        U32,   service.sessions_max,        1, 65536,      1, "1024"),
	KEY("service", "sessions_per_tenant", U32,   service.sessions_per_tenant, 1, 65536,      1, "512"),
	KEY("service", "line_max_bytes",      BYTES, service.line_max,        65536, GiB,        1, "16M"),

	KEY("http", "listen",               ADDRESS, http.listen,               1, 64,    1, ""),
	KEY("http", "socket",               PATH,    http.socket,               1, 107,   1, ""),
	KEY("http", "allowed_hosts",        HOSTS,   http.hosts,                0, CONFIG_LIST_MAX, 1, ""),
	KEY("http", "allowed_origins",      ORIGINS, http.origins,              0, CONFIG_LIST_MAX, 1, ""),
	KEY("http", "links",                URI,     http.links,                1, 1024,  1, ""),
	KEY("http", "link_seconds",         U32,     http.link_seconds,         60, 604800, 1, "3600"),
	KEY("http", "insecure",             BOOL,    http.insecure,             0, 1,     1, "no"),
	KEY("http", "body_max_bytes",       BYTES,   http.body_max,         65536, GiB,   1, "16M"),
	KEY("http", "connections_max",      U32,     http.connections_max,      1, 65536, 1, "1024"),
	KEY("http", "connections_per_peer", U32,     http.connections_per_peer, 1, 65536, 1, "512"),
	KEY("http", "sessions_max",         U32,     http.sessions_max,         1, 1000000, 1, "16384"),
	KEY("http", "sessions_per_tenant",  U32,     http.sessions_per_tenant,  1, 1000000, 1, "8192"),
	KEY("http", "session_idle_seconds", U32,     http.session_idle_seconds, 1, 604800, 1, "3600"),
	KEY("http", "resume_seconds",       U32,     http.resume_seconds,       0, 3600,  1, "60"),
	KEY("http", "stream_seconds",       U32,     http.stream_seconds,       0, 86400, 1, "0"),
	KEY("http", "keepalive_seconds",    U32,     http.keepalive_seconds,    1, 3600,  1, "15"),
	KEY("http", "idle_seconds",         U32,     http.idle_seconds,         1, 86400, 1, "60"),
	KEY("http", "request_seconds",      U32,     http.request_seconds,      1, 86400, 1, "60"),

	KEY("mcp", "toolsets",           TOOLSETS, mcp.toolsets,        0, 4,         1, "native"),
	CHOICE_KEY("mcp", "arguments",   mcp.arguments, "common|all", "common"),
	CHOICE_KEY("mcp", "structured",  mcp.structured, "auto|yes|no", "auto"),
	KEY("mcp", "output_schemas",     BOOL,  mcp.output_schemas,     0, 1,         1, "no"),
	CHOICE_KEY("mcp", "views",       mcp.views, "auto|no", "auto"),
	KEY("mcp", "text_tokens",        U32,   mcp.text_tokens,        0, 1000000,   1, "8000"),
	KEY("mcp", "state_key_file",     PATH,  mcp.state_key_file,     1, 4095,      1, ""),
	KEY("mcp", "ask_seconds",        U32,   mcp.ask_seconds,        1, 86400,     1, "300"),
	KEY("mcp", "parked_per_tenant",  U32,   mcp.parked_per_tenant,  0, 4096,      1, "32"),
	KEY("mcp", "tasks_per_tenant",   U32,   mcp.tasks_per_tenant,   0, 65536,     1, "64"),
	KEY("mcp", "task_ttl_seconds",   U32,   mcp.task_ttl_seconds,   60, 604800,   1, "3600"),
	KEY("mcp", "task_after_seconds", U32,   mcp.task_after_seconds, 0, 86400,     1, "10"),
	KEY("mcp", "repeat_seconds",     U32,   mcp.repeat_seconds,     1, 86400,     1, "600"),
	KEY("mcp", "repeat_calls",       U32,   mcp.repeat_calls,       1, 65536,     1, "16384"),
	KEY("mcp", "repeat_file",        PATH,  mcp.repeat_file,        1, 4095,      1, ""),
	KEY("mcp", "jobs_per_tenant",    U32,   mcp.jobs_per_tenant,    0, 4096,      1, "32"),
	KEY("mcp", "job_seconds",        U32,   mcp.job_seconds,        1, 604800,    1, "3600"),
	KEY("mcp", "job_bytes",          BYTES, mcp.job_bytes,          65536, 16 * GiB, 1, "64M"),
	KEY("mcp", "kept_bytes",         BYTES, mcp.kept_bytes,         65536, 16 * GiB, 1, "64M"),

	KEY("skills", "directory",           PATH,  skills.directory,       1, 4000,      1, ""),

	/* as in the server that this set of tools replaces */
	KEY("exec-sandbox", "python_version",   VERSION, exec_sandbox.python_version, 1, 16,          1, ""),
	KEY("exec-sandbox", "default_timeout",  U32,   exec_sandbox.default_timeout,  1, 86400,       1, "30"),
	KEY("exec-sandbox", "max_timeout",      U32,   exec_sandbox.max_timeout,      1, 86400,       1, "300"),
	KEY("exec-sandbox", "max_output_bytes", BYTES, exec_sandbox.max_output_bytes, 1024, 64 * MiB, 1, "100K"),
	KEY("exec-sandbox", "text_tokens",      U32,   exec_sandbox.text_tokens,      0, 1000000,     1, "8000"),

	KEY("python-sandbox", "default_timeout",  U32,     python_sandbox.default_timeout,  1, 86400,       1, "30"),
	KEY("python-sandbox", "max_timeout",      U32,     python_sandbox.max_timeout,      1, 86400,       1, "300"),
	KEY("python-sandbox", "max_output_bytes", BYTES,   python_sandbox.max_output_bytes, 1024, 64 * MiB, 1, "1M"),
	KEY("python-sandbox", "text_tokens",      U32,     python_sandbox.text_tokens,      0, 1000000,     1, "8000"),
	KEY("python-sandbox", "memory_limit",     BYTES,   python_sandbox.memory_limit,     16 * MiB, 1024 * GiB, 1, "128M"),
	KEY("python-sandbox", "data_science",     BOOL,    python_sandbox.data_science,     0, 1,           1, "no"),
	KEY("python-sandbox", "network",          BOOL,    python_sandbox.network,          0, 1,           1, "no"),
	KEY("python-sandbox", "filesystem",       BOOL,    python_sandbox.filesystem,       0, 1,           1, "no"),
	KEY("python-sandbox", "allowed_imports",  MODULES, python_sandbox.allowed_imports,  0, CONFIG_LIST_MAX, 1, ""),

	KEY("run-python", "dependencies", PACKAGES, run_python.dependencies, 0, CONFIG_LIST_MAX, 1, ""),
	KEY("run-python", "text_tokens",  U32,      run_python.text_tokens,  0, 1000000,         1, "8000"),
	CHOICE_KEY("run-python", "return_mode", run_python.return_mode, "xml|json", "xml"),

	KEY("tiers", "basic",        MODULES, tiers.basic,        0, CONFIG_LIST_MAX, 1, BASIC_TIER),
	KEY("tiers", "data_science", MODULES, tiers.data_science, 0, CONFIG_LIST_MAX, 1, "matplotlib numpy pandas plotly scipy seaborn sklearn statsmodels sympy"),
	KEY("tiers", "network",      MODULES, tiers.network,      0, CONFIG_LIST_MAX, 1, "aiohttp email ftplib httpx requests smtplib urllib.request websocket"),
	KEY("tiers", "filesystem",   MODULES, tiers.filesystem,   0, CONFIG_LIST_MAX, 1, "glob os.path pathlib shutil tarfile tempfile zipfile"),

	KEY("auth", "token_file",         PATH,   auth.token_file,         1, 4095, 1, ""),
	KEY("auth", "jwks_file",          PATH,   auth.jwks_file,          1, 4095, 1, ""),
	KEY("auth", "issuer",             URI,    auth.issuer,             1, 255,  1, ""),
	KEY("auth", "resource",           URI,    auth.resource,           1, 255,  1, ""),
	KEY("auth", "required_scopes",    SCOPES, auth.required_scopes,    0, 16,   1, ""),
	KEY("auth", "leeway_seconds",     U32,    auth.leeway_seconds,     0, 600,  1, "30"),
	KEY("auth", "trusted_header",     HEADER, auth.trusted_header,     1, 64,   1, ""),
	KEY("auth", "trusted_proxy_user", NAME,   auth.trusted_proxy_user, 1, 32,   1, ""),

	KEY("pool", "warm",               U32, pool.warm,               0, 512,     1, "4"),
	KEY("pool", "warm_max",           U32, pool.warm_max,           0, 4096,    1, "64"),
	KEY("pool", "workers_max",        U32, pool.workers_max,        1, 16384,   1, "256"),
	KEY("pool", "tenant_running_max", U32, pool.tenant_running_max, 1, 16384,   1, "64"),
	KEY("pool", "tenant_queue_max",   U32, pool.tenant_queue_max,   1, 1000000, 1, "512"),
	KEY("pool", "wait_seconds",       U32, pool.wait_seconds,       1, 86400,   1, "120"),
	KEY("pool", "idle_seconds",       U32, pool.idle_seconds,       1, 86400,   1, "60"),
	KEY("pool", "zygote_seconds",     U32, pool.zygote_seconds,     0, 2592000, 1, "3600"),
	KEY("pool", "tenant_zygotes_max", U32, pool.tenant_zygotes_max, 1, 1024,    1, "32"),
	KEY("pool", "ready_max",          U32, pool.ready_max,          0, 4096,    1, "16"),
	KEY("pool", "tenant_ready_max",   U32, pool.tenant_ready_max,   0, 512,     1, "2"),
	KEY("pool", "learn",              MODULES, pool.learn,          0, LEARNABLE_MAX,      1, LEARNABLE_MODULES),
	KEY("pool", "learned_file",       PATH, pool.learned_file,      1, 4095,    1, ""),

	TENANT_KEY("repl", "sessions_max",    U32,   repl.sessions_max, 0, 65536,   1,   "16"),
	TENANT_KEY("repl", "memory_total_mb", U64,   repl.memory_total, 0, 16777216, MiB, "8192"),
	TENANT_KEY("repl", "idle_seconds",    U32,   repl.idle_seconds, 1, 2592000, 1,   "3600"),
	TENANT_KEY("repl", "age_seconds",     U32,   repl.age_seconds,  1, 2592000, 1,   "86400"),
	/* in the order of enum background_mode */
	TENANT_CHOICE_KEY("repl", "background", repl.background, "run|freeze|end", "run"),
	TENANT_KEY("repl", "background_seconds", U32, repl.background_ms, 1, 86400, 1000, "60"),

	TENANT_KEY("limits", "timeout_seconds", U32, limits.standard.wall_ms,      1, 86400,   1000, "30"),
	TENANT_KEY("limits", "timeout_max",     U32, limits.cap.wall_ms,           1, 86400,   1000, "600"),
	TENANT_KEY("limits", "cpu_seconds",     U32, limits.standard.cpu_ms,       1, 86400,   1000, "30"),
	TENANT_KEY("limits", "cpu_max",         U32, limits.cap.cpu_ms,            1, 86400,   1000, "600"),
	KEY("limits", "cpu_percent",     U32, limits.cpu_percent,           1, 1000000,    1, "400"),
	TENANT_KEY("limits", "memory_mb",       U64, limits.standard.memory_bytes, 16, 1048576, MiB, "512"),
	TENANT_KEY("limits", "memory_max_mb",   U64, limits.cap.memory_bytes,      16, 1048576, MiB, "2048"),
	TENANT_KEY("limits", "pids",            U32, limits.standard.pids,         1, 65536,      1, "64"),
	TENANT_KEY("limits", "pids_max",        U32, limits.cap.pids,              1, 65536,      1, "512"),
	TENANT_KEY("limits", "input_seconds",   U32, limits.input_ms,              1, 86400,   1000, "600"),
	TENANT_KEY("limits", "output_kb",       U64, limits.standard.output_bytes, 1, 65536,    KiB, "1024"),
	TENANT_KEY("limits", "output_total_mb", U64, limits.standard.output_total, 1, 1048576,  MiB, "64"),

	TENANT_KEY("network", "allow",              RULES,  network.allow,              0, CONFIG_LIST_MAX, 1, ""),
	TENANT_KEY("network", "allow_private",      RANGES, network.allow_private,      0, CONFIG_LIST_MAX, 1, ""),
	TENANT_KEY("network", "secrets",            SECRETS, network.secrets,           0, CONFIG_SECRETS_MAX, 1, "*"),
	KEY("network", "nameserver",         ADDRESS, network.nameserver,        1, 64,       1, ""),
	TENANT_KEY("network", "bytes_max",          BYTES,  network.bytes_max,          1, 1024 * GiB, 1, "256M"),
	TENANT_KEY("network", "rate_max",           BYTES,  network.rate_max,        4096, GiB,      1, "16M"),
	TENANT_KEY("network", "connections",        U32,    network.connections,        1, 1024,     1, "32"),
	TENANT_KEY("network", "connections_max",    U32,    network.connections_max,    1, 1000000,  1, "1000"),
	TENANT_KEY("network", "idle_seconds",       U32,    network.idle_seconds,       1, 86400,    1, "60"),
	TENANT_KEY("network", "connection_seconds", U32,    network.connection_seconds, 1, 86400,    1, "600"),

	TENANT_KEY("tool-calls", "servers", SERVERS, tool_calls.servers, 0, CONFIG_TOOLS_MAX, 1, "*"),
	TENANT_KEY("tool-calls", "allow",   TOOLS,   tool_calls.allow,   0, CONFIG_LIST_MAX,  1, ""),
	TENANT_KEY("tool-calls", "approve", TOOLS,   tool_calls.approve, 0, CONFIG_LIST_MAX,  1, ""),
	TENANT_DENY_KEY("tool-calls", "deny", TOOLS, tool_calls.deny,    CONFIG_LIST_MAX,     ""),
	TENANT_CHOICE_KEY("tool-calls", "read_only", tool_calls.read_only, VERDICTS, ""),
	TENANT_CHOICE_KEY("tool-calls", "others",    tool_calls.others,    VERDICTS, ""),
	TENANT_KEY("tool-calls", "calls",         U32,   tool_calls.calls,         1, 10000,    1, "100"),
	TENANT_KEY("tool-calls", "at_once",       U32,   tool_calls.at_once,       1, 64,       1, "8"),
	TENANT_KEY("tool-calls", "seconds",       U32,   tool_calls.seconds,       1, 3600,     1, "60"),
	TENANT_KEY("tool-calls", "result_bytes",  BYTES, tool_calls.result_bytes,  1024, 8 * MiB, 1, "1M"),
	TENANT_KEY("tool-calls", "results_bytes", BYTES, tool_calls.results_bytes, 1024, 16 * GiB, 1, "64M"),

	TENANT_KEY("quota", "executions_per_minute", U32, quota.per_minute, 0, 1000000, 1, "0"),
	TENANT_KEY("quota", "concurrent",            U32, quota.concurrent, 0, 16384, 1, "0"),
	TENANT_KEY("quota", "queued",                U32, quota.queued, 0, 1000000, 1, "0"),
	TENANT_KEY("quota", "cpu_seconds_per_hour",  U32, quota.cpu_seconds_per_hour, 0, 10000000, 1, "0"),
	TENANT_KEY("quota", "sessions",              U32, quota.sessions, 0, 65536, 1, "0"),
	TENANT_KEY("quota", "disk_bytes",            BYTES, quota.disk_bytes, 0, 1024 * 1024 * GiB, 1, "0"),
	TENANT_KEY("quota", "audit_bytes_per_hour",  BYTES, quota.audit_bytes_per_hour, 0, 1024 * 1024 * GiB, 1, "1G"),

	TENANT_CHOICE_KEY("policy", "preset",          policy.preset, "default|strict|open", "default"),
	TENANT_CHOICE_KEY("policy", "run_script",      policy.run_script, VERDICTS, ""),
	TENANT_CHOICE_KEY("policy", "run_repl",        policy.run_repl, VERDICTS, ""),
	TENANT_CHOICE_KEY("policy", "install_package", policy.install_package, VERDICTS, ""),
	TENANT_CHOICE_KEY("policy", "input",           policy.input, "allow|deny", ""),
	TENANT_KEY("policy", "profiles",         PROFILES, policy.profiles, 0, CONFIG_PROFILES_MAX, 1, ""),
	TENANT_KEY("policy", "approvers",        WHO, policy.approvers, 0, CONFIG_LIST_MAX, 1, "uid:0"),
	TENANT_KEY("policy", "approval_seconds", U32, policy.approval_seconds, 1, 2592000, 1, "86400"),
	TENANT_KEY("policy", "denied_seconds", U32, policy.denied_seconds, 0, 2592000, 1, "3600"),

	TENANT_KEY("packages", "index",          URI,  packages.index, 1, 255, 1, ""),
	TENANT_KEY("packages", "extra_indexes",  URIS, packages.extra_indexes, 0, 16, 1, ""),
	TENANT_KEY("packages", "file_hosts",     HOSTS, packages.file_hosts, 0, 64, 1, ""),
	KEY("packages", "store",                 PATH, packages.store, 1, 4000, 1, ""),
	KEY("packages", "store_mb",              U64, packages.store_bytes, 1, 1073741824, MiB, "20480"),
	KEY("packages", "keep_days",             U32, packages.keep_seconds, 1, 36500, 86400, "30"),
	TENANT_KEY("packages", "allow",          PACKAGES, packages.allow, 0, CONFIG_LIST_MAX, 1, ""),
	TENANT_DENY_KEY("packages", "deny",      PACKAGES, packages.deny, CONFIG_LIST_MAX, ""),
	TENANT_CHOICE_KEY("packages", "others",  packages.others, VERDICTS, ""),
	KEY("packages", "advisories",            PATH, packages.advisories, 1, 4095, 1, ""),
	/* in the order of enum advisory_severity */
	TENANT_CHOICE_KEY("packages", "advisories_deny", packages.advisories_deny, "never|low|moderate|high|critical", "never"),
	TENANT_CHOICE_KEY("packages", "build",   packages.build, "deny|allow", "deny"),
	TENANT_KEY("packages", "require_hashes", BOOL, packages.require_hashes, 0, 1, 1, "yes"),
	TENANT_KEY("packages", "allow_urls",     BOOL, packages.allow_urls, 0, 1, 1, "no"),
	TENANT_KEY("packages", "max_packages",   U32, packages.max_packages, 1, 4096, 1, "256"),
	TENANT_KEY("packages", "max_bytes",      BYTES, packages.max_bytes, 65536, 1024 * GiB, 1, "2G"),
	TENANT_KEY("packages", "timeout_seconds",   U32, packages.timeout_ms, 1, 86400, 1000, "600"),
	TENANT_KEY("packages", "memory_mb",         U64, packages.memory_bytes, 64, 1048576, MiB, "2048"),
	TENANT_KEY("packages", "environment_mb",    U64, packages.environment_bytes, 1, 1048576, MiB, "2048"),
	TENANT_KEY("packages", "environment_files", U32, packages.environment_files, 1, 10000000, 1, "100000"),

	KEY("audit", "file",             PATH,  audit.file, 1, 4095, 1, ""),
	KEY("audit", "journal",          BOOL,  audit.journal, 0, 1, 1, "yes"),
	KEY("audit", "source",           BOOL,  audit.source, 0, 1, 1, "yes"),
	KEY("audit", "sync",             BOOL,  audit.sync, 0, 1, 1, "no"),
	CHOICE_KEY("audit", "outputs",   audit.outputs, "hash|whole", "hash"),
	CHOICE_KEY("audit", "on_failure", audit.on_failure, "stop|continue", "stop"),
	KEY("audit", "text_bytes",       BYTES, audit.text_bytes, 64, 64 * MiB, 1, "64K"),
	KEY("audit", "rotate_bytes",     BYTES, audit.rotate_bytes, 4096, 1024 * GiB, 1, "64M"),
	KEY("audit", "keep_bytes",       BYTES, audit.keep_bytes, 0, 1024 * 1024 * GiB, 1, "2G"),

	TENANT_KEY("alarms", "executions",     U32, alarms.executions,     0, 1000000,  1, "600"),
	TENANT_KEY("alarms", "failures",       U32, alarms.failures,       0, 1000000,  1, "100"),
	TENANT_KEY("alarms", "denials",        U32, alarms.denials,        0, 1000000,  1, "50"),
	TENANT_KEY("alarms", "new_hosts",      U32, alarms.new_hosts,      0, 1000000,  1, "20"),
	TENANT_KEY("alarms", "cpu_seconds",    U32, alarms.cpu_seconds,    0, 10000000, 1, "2400"),
	TENANT_KEY("alarms", "unusual_times",  U32, alarms.unusual_times,  0, 100,      1, "10"),
	TENANT_KEY("alarms", "period_seconds", U32, alarms.period_seconds, 1, 604800,   1, "3600"),

	KEY("metrics", "listen",  ADDRESS, metrics.listen, 1, 64, 1, ""),
	KEY("metrics", "tenants", BOOL,    metrics.tenants, 0, 1, 1, "no"),

	KEY("admin", "socket",    PATH, admin.socket, 1, 107, 1, ""),
	KEY("admin", "approvals", PATH, admin.approvals, 1, 4095, 1, ""),
	KEY("admin", "operators", WHO,  admin.operators, 0, CONFIG_LIST_MAX, 1, "uid:0"),

	KEY("results", "displays",       U32,   limits.standard.results.displays,   0, 200,     1, "20"),
	KEY("results", "display_kb",     U32,   limits.standard.results.display_bytes, 0, 4096,  KiB, "4096"),
	KEY("results", "picture_pixels", U32,   limits.standard.results.picture_pixels, 64, 16384, 1, "1568"),
	KEY("results", "files",          U32,   limits.standard.results.files,      0, 1000,    1, "100"),
	KEY("results", "file_kb",        U32,   limits.standard.results.file_bytes, 0, 4096,    KiB, "4096"),
	KEY("results", "files_kb",       U32,   limits.standard.results.files_bytes, 0, 65536,  KiB, "8192"),
	KEY("results", "inputs",         U32,   results.inputs,                     0, 256,     1, "64"),
	KEY("results", "input_kb",       U32,   results.input_bytes,                0, 16384,   KiB, "4096"),
	KEY("results", "inputs_kb",      U32,   results.inputs_bytes,               0, 32768,   KiB, "8192"),
	KEY("results", "spill_bytes",    BYTES, limits.standard.results.spill_bytes, 65536, GiB, 1, "16M"),
	KEY("results", "keep_seconds",   U32,   results.keep_seconds,   1, 604800,        1, "600"),
	KEY("results", "keep_bytes",     BYTES, results.keep_bytes,     65536, 16 * GiB,  1, "16M"),
	KEY("results", "keep_bytes_max", BYTES, results.keep_bytes_max, 65536, 256 * GiB, 1, "128M"),

	KEY("files", "directory",    PATH,  files.directory,    1, 4000,             1, ""),
	KEY("files", "file_bytes",   BYTES, files.file_bytes,   0, 1024 * GiB,       1, "256M"),
	KEY("files", "tenant_bytes", BYTES, files.tenant_bytes, MiB, 1024 * 1024 * GiB, 1, "1G"),
	KEY("files", "bytes_max",    BYTES, files.bytes_max,    MiB, 1024 * 1024 * GiB, 1, "16G"),
	KEY("files", "tenant_files", U32,   files.tenant_files, 1, 10000,            1, "1000"),
	KEY("files", "keep_seconds", U32,   files.keep_seconds, 1, 31536000,         1, "86400"),

	KEY("workspace", "volume",       BOOL,  workspace.volume,       0, 1,                1, "no"),
	KEY("workspace", "directory",    PATH,  workspace.directory,    1, 3900,             1, ""),
	KEY("workspace", "volume_bytes", BYTES, workspace.volume_bytes, MiB, 1024 * GiB,     1, "1G"),
	KEY("workspace", "volume_files", U64,   workspace.volume_files, 16, 10000000,        1, "65536"),
	KEY("workspace", "volumes",      U32,   workspace.volumes,      1, 1000,             1, "4"),
	KEY("workspace", "bytes_max",    BYTES, workspace.bytes_max,    MiB, 1024 * 1024 * GiB, 1, "16G"),

	INTERPRETER_KEY("worker",  worker),
	INTERPRETER_KEY("program", program),
	INTERPRETER_KEY("root",    root),

	PROFILE_KEY("interpreter", WORD,    interpreter, 1, 32,              ""),
	PROFILE_KEY("modules",     MODULES, modules,     0, CONFIG_LIST_MAX, BASIC_MODULES),
	PROFILE_KEY("paths",       PATHS,   paths,       0, CONFIG_LIST_MAX, ""),
	PROFILE_KEY("disk_bytes",  BYTES,   disk_bytes,  0, 1024 * GiB,      "0"),
	PROFILE_KEY("disk_inodes", U64,     disk_inodes, 64,    100000000,   "65536"),
	PROFILE_KEY("terminals",   BOOL,    terminals,   0, 1,               "no"),
	PROFILE_KEY("zygote_per_tenant", BOOL, zygote_per_tenant, 0, 1,      "no"),

	TOOLS_KEY("command",           COMMAND,    command,           1, 64,   ""),
	TOOLS_KEY("url",               SERVER_URL, url,               1, 2000, ""),
	TOOLS_KEY("ca_file",           PATH,       ca_file,           1, 4095, ""),
	TOOLS_KEY("credential_file",   PATH,       credential_file,   1, 4095, ""),
	TOOLS_KEY("credential_header", HEADER,     credential_header, 1, 64,   ""),
	TOOLS_KEY("oauth_token_url",   URI,        oauth_token_url,   1, 2000, ""),
	TOOLS_KEY("oauth_client_id",   ID,         oauth_client_id,   1, 512,  ""),
	TOOLS_KEY("oauth_client_secret_file", PATH, oauth_client_secret_file, 1, 4095, ""),
	TOOLS_KEY("oauth_scope",       SCOPES,     oauth_scope,       0, 32,   ""),

	SECRET_KEY("host",       TARGET, host,       300,  ""),
	SECRET_KEY("header",     HEADER, header,     64,   "Authorization"),
	SECRET_KEY("value_file", PATH,   value_file, 4095, ""),
	SECRET_KEY("ca_file",    PATH,   ca_file,    4095, ""),
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const struct key *
key_at(size_t i)
{
	return i < N_KEYS ? &keys[i] : NULL;
}

bool
key_is_named(const struct key *key)
{
	return strcmp(key->section, "profile") == 0 || strcmp(key->section, "interpreter") == 0 ||
	       strcmp(key->section, "tools") == 0 || strcmp(key->section, "secret") == 0;
}

int
key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}
