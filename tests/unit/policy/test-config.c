/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files, right and wrong: every mistake is told with its line, and what
 * is printed can be read back. */
#include "policy/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/keys.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Reads text as a file; *errors_r (freed by the caller) has "FILE" for its name. */
static int
read_bytes(struct config *config, const char *text, size_t len, char **errors_r)
{
	char path[] = "test-config-XXXXXX", *raw = NULL, *at;
	size_t size = 0;
	FILE *errors = open_memstream(&raw, &size);
	int fd = mkstemp(path), r;
	char *out;

	assert_non_null(errors);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	r = config_read(config, path, errors);
	if (r == 0)
		r = config_check(config, path, errors);
	fclose(errors);
	unlink(path);

	/* the name is another each time */
	out = malloc(size + 1);
	assert_non_null(out);
	*out = '\0';
	for (at = strtok(raw, "\n"); at; at = strtok(NULL, "\n")) {
		assert_memory_equal(at, path, strlen(path));
		strcat(out, "FILE");
		strcat(out, at + strlen(path));
		strcat(out, "\n");
	}
	free(raw);
	*errors_r = out;
	return r;
}

static void
the_built_in_values_hold(void **state)
{
	struct config *config = config_new();

	(void)state;
	assert_int_equal(config->limits.standard.wall_ms, 30000);
	assert_int_equal(config->limits.cap.wall_ms, 600000);
	assert_int_equal(config->limits.standard.cpu_ms, 30000);
	assert_int_equal(config->limits.cap.cpu_ms, 600000);
	assert_int_equal(config->limits.standard.memory_bytes, 512 << 20);
	assert_int_equal(config->limits.cap.memory_bytes, UINT64_C(2048) << 20);
	assert_int_equal(config->limits.standard.pids, 64);
	assert_int_equal(config->limits.cap.pids, 512);
	assert_int_equal(config->limits.standard.output_bytes, 1 << 20);
	assert_int_equal(config->limits.standard.output_total, 64 << 20);
	assert_int_equal(config->service.subuid_base, 1879048192);
	assert_null(config->service.socket);
	assert_string_equal(config->service.user, "mcp-python");
	assert_int_equal(config->n_profiles, 1);
	assert_ptr_equal(config_find_profile(config, "basic"), &config->profile[0]);
	assert_null(config_find_profile(config, "other"));
	assert_int_equal(config_disk_bytes(config, &config->profile[0]), 2048ULL << 20);
	assert_int_equal(config->profile[0].disk_inodes, 65536);
	assert_true(config->profile[0].modules.n > 20);
	assert_null(config->profile[0].modules.item[config->profile[0].modules.n]);
	assert_int_equal(config_check(config, "built-in", stderr), 0);
	config_free(config);
	config_free(NULL);
}

static void
a_file_goes_over_the_built_in_values(void **state)
{
	static const char text[] =
		"# a comment\n"
		"; another\n"
		"\n"
		"[service]\n"
		"socket = /run/mcp-pythond/s.sock   ; where clients come\n"
		"line_max_bytes = 64K\r\n"
		"[limits]\n"
		"timeout_seconds=5\n"
		"memory_mb: 64\n"
		"[profile basic]\n"
		"modules = json, re\n"
		"\tmath\n"
		"  urllib.parse,collections.abc\n"
		"[profile data-2.x]\n"
		"disk_bytes = 1G\n"
		"paths = /opt/data /srv/models\n"
		"[profile bare]\n"
		"[profile more]\n"
		"modules = + numpy,\n"
		"  scipy.stats\n"
		"[limits]\n"
		"pids = 7";
	struct config *config = config_new();
	const struct config_profile *p;
	char *errors;

	(void)state;
	assert_int_equal(read_bytes(config, text, sizeof(text) - 1, &errors), 0);
	assert_string_equal(errors, "");
	free(errors);
	assert_string_equal(config->service.socket, "/run/mcp-pythond/s.sock");
	assert_int_equal(config->service.line_max, 65536);
	assert_int_equal(config->limits.standard.wall_ms, 5000);
	assert_int_equal(config->limits.standard.memory_bytes, 64 << 20);
	assert_int_equal(config->limits.standard.pids, 7);
	assert_int_equal(config->limits.standard.cpu_ms, 30000);
	assert_int_equal(config->n_profiles, 4);
	p = &config->profile[0];
	assert_int_equal(p->modules.n, 5);
	assert_string_equal(p->modules.item[2], "math");
	assert_string_equal(p->modules.item[4], "collections.abc");
	p = config_find_profile(config, "data-2.x");
	assert_non_null(p);
	assert_int_equal(config_disk_bytes(config, p), 1 << 30);
	assert_int_equal(p->paths.n, 2);
	assert_string_equal(p->paths.item[1], "/srv/models");
	assert_true(p->modules.n > 20);
	p = config_find_profile(config, "bare");
	assert_non_null(p);
	assert_int_equal(config_find_profile(config, "more")->modules.n, p->modules.n + 2);
	p = config_find_profile(config, "more");
	assert_string_equal(p->modules.item[0], "abc");
	assert_string_equal(p->modules.item[p->modules.n - 1], "scipy.stats");
	config_free(config);
}

#define SERVER_URL "http:// or https://, a host and a path, or unix:PATH or unix:PATH:/TARGET of at " \
	"most 2000 bytes\n"
#define SECTIONS \
	"[service], [http], [mcp], [skills], [exec-sandbox], [python-sandbox], [run-python], [tiers], [auth], [pool], [repl], [limits], [network], " \
	"[tool-calls], [quota], [policy], [packages], [audit], [alarms], [metrics], [admin], [results], [files], [workspace], [profile NAME], [interpreter NAME], [tools NAME], [secret NAME] and [tenant WHO]"

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define TENANT_IS \
	"a tenant is uid:NUMBER, user:NAME, group:NAME, token:NAME or sub:NAME\n"

static const struct bad_case {
	const char *name, *text, *errors;
} bad_cases[] = {
	{ "unknown section", "\n[serivce]\nsocket = /x\n",
	  "FILE:2: [serivce]: unknown section; right are " SECTIONS "\n" },
	{ "a profile needs a name", "[profile]\n[profile ]\n[profile a b]\n[profile ../x]\n",
	  "FILE:1: [profile]: unknown section; right are " SECTIONS "\n"
	  "FILE:2: [profile ]: the name is made of letters, digits, \"_\", \"-\" and \".\"; it has at most 64 bytes\n"
	  "FILE:3: [profile a b]: the name is made of letters, digits, \"_\", \"-\" and \".\"; it has at most 64 bytes\n"
	  "FILE:4: [profile ../x]: the name is made of letters, digits, \"_\", \"-\" and \".\"; it has at most 64 bytes\n" },
	{ "a section is alone", "[pool\n[pool] x\n[pool]]\nwarm = 1\n",
	  "FILE:1: a section is one [NAME] alone on its line\n"
	  "FILE:2: a section is one [NAME] alone on its line\n"
	  "FILE:3: a section is one [NAME] alone on its line\n" },
	{ "section too long", "[" X50 X50 X50 X50 "]\n[tenant sub:" X50 X50 X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxx]\n",
	  "FILE:1: the line is longer than 198 bytes; a list goes on in lines that begin with a blank\n"
	  "FILE:2: the name of a section has at most 184 bytes\n" },
	{ "a profile's name is short", "[profile " X50 "xxxxxxxxxxxxxxx]\n",
	  "FILE:1: [profile " X50 "xxxxxxxxxxxxxxx]: the name is made of letters, digits, \"_\", \"-\" and \".\"; it has at most 64 bytes\n" },
	{ "tenants are known by kind", "[tenant]\n[tenant 1000]\n[tenant uid:x]\n[tenant user:a b]\n"
	  "[tenant role:x]\n[tenant group:]\n",
	  "FILE:1: [tenant]: unknown section; right are " SECTIONS "\n"
	  "FILE:2: [tenant 1000]: " TENANT_IS "FILE:3: [tenant uid:x]: " TENANT_IS
	  "FILE:4: [tenant user:a b]: " TENANT_IS "FILE:5: [tenant role:x]: " TENANT_IS
	  "FILE:6: [tenant group:]: " TENANT_IS },
	{ "keys of tenants have sections", "[tenant uid:1]\nrun_script = deny\nlimits.x = 1\n"
	  "profile.modules = x\nhttp.listen = 1\n.x = 1\nlimits.pids = 0\n"
	  "limits.pids = 5\nlimits.pids = 6\n[tenant uid:2]\nlimits.pids = 7\n",
	  "FILE:2: run_script: unknown key; a tenant's are SECTION.KEY, such as limits.timeout_max\n"
	  "FILE:3: limits.x: unknown key; a tenant's are SECTION.KEY, such as limits.timeout_max\n"
	  "FILE:4: profile.modules: unknown key; a tenant's are SECTION.KEY, such as "
	  "limits.timeout_max\n"
	  "FILE:5: http.listen: is the same for all tenants\n"
	  "FILE:6: .x: unknown key; a tenant's are SECTION.KEY, such as limits.timeout_max\n"
	  "FILE:7: pids: \"0\" is not a whole number from 1 to 65536\n"
	  "FILE:9: limits.pids: said twice, first in line 8\n" },
	{ "verdicts are words", "[policy]\nrun_script = maybe\npreset =\nrun_repl =\n",
	  "FILE:2: run_script: \"maybe\" is none of allow|approve|deny\n"
	  "FILE:3: preset: \"\" is none of default|strict|open\n" },
	{ "packages have names and versions", "[packages]\nallow = numpy>=1,<2 pandas * a@http://x\n"
	  "deny = x;y\n",
	  "FILE:2: allow: \"a@http://x\" is not the name of a package, with or without versions "
	  "such as >=1,<2\n"
	  "FILE:3: deny: \"x;y\" is not the name of a package, with or without versions such as "
	  ">=1,<2\n" },
	{ "approvers are known by kind", "[policy]\napprovers = self uid:0 root\n",
	  "FILE:2: approvers: \"root\" is not uid:NUMBER, user:NAME, group:NAME, token:NAME, "
	  "sub:NAME or self\n" },
	{ "what a tenant's section makes wrong", "[tenant group:g]\nlimits.timeout_max = 10\n",
	  "FILE:2: [tenant group:g] [limits] timeout_seconds: is above timeout_max\n" },
	{ "profiles that are not there", "[policy]\nprofiles = basic none\n",
	  "FILE:2: [policy] profiles: there is no [profile none]\n" },
	{ "unknown key", "[pool]\nwarm = 3\nwram = 4\n", "FILE:3: wram: unknown key in [pool]\n" },
	{ "key of another section", "[pool]\npids = 3\n", "FILE:2: pids: unknown key in [pool]\n" },
	{ "key without a name", "[pool]\n= 3\n", "FILE:2: : unknown key in [pool]\n" },
	{ "before any section", "warm = 3\n[pool]\n", "FILE:1: warm: stands before any [SECTION]\n" },
	{ "no key", "[pool]\nwarm\n", "FILE:2: neither [SECTION] nor KEY = VALUE\n" },
	{ "no value", "[pool]\nwarm =\n", "FILE:2: warm: \"\" is not a whole number from 0 to 512\n" },
	{ "comment for a value", "[pool]\nwarm ; = 3\n", "FILE:2: not understood\n" },
	{ "twice", "[pool]\nwarm = 3\n[limits]\npids = 2\n[pool]\nwarm = 3\n",
	  "FILE:6: warm: said twice, first in line 2\n" },
	{ "twice, with a profile between", "[pool]\nwarm = 3\n[profile b]\n[pool]\nwarm = 3\n",
	  "FILE:5: warm: said twice, first in line 2\n" },
	{ "twice in a profile", "[profile a]\ndisk_bytes=1M\n[profile b]\ndisk_bytes=1M\n"
	  "[profile a]\ndisk_bytes=1M\n", "FILE:6: disk_bytes: said twice, first in line 2\n" },
	{ "no number", "[pool]\nwarm = four\n",
	  "FILE:2: warm: \"four\" is not a whole number from 0 to 512\n" },
	{ "not whole", "[limits]\ntimeout_seconds = 1.5\n",
	  "FILE:2: timeout_seconds: \"1.5\" is not a whole number from 1 to 86400\n" },
	{ "negative", "[pool]\nwarm = -1\n",
	  "FILE:2: warm: \"-1\" is not a whole number from 0 to 512\n" },
	{ "hexadecimal", "[pool]\nwarm = 0x10\n",
	  "FILE:2: warm: \"0x10\" is not a whole number from 0 to 512\n" },
	{ "2^64 + 1", "[pool]\nwarm = 18446744073709551617\n",
	  "FILE:2: warm: \"18446744073709551617\" is not a whole number from 0 to 512\n" },
	{ "suffix where none may be", "[limits]\nmemory_mb = 1G\n",
	  "FILE:2: memory_mb: \"1G\" is not a whole number from 16 to 1048576\n" },
	{ "other suffixes", "[service]\nline_max_bytes = 1T\n[profile basic]\ndisk_bytes = 1MB\n",
	  "FILE:2: line_max_bytes: \"1T\" is not a number of bytes (K, M or G may follow) from "
	  "65536 to 1073741824\n"
	  "FILE:4: disk_bytes: \"1MB\" is not a number of bytes (K, M or G may follow) from "
	  "0 to 1099511627776\n" },
	{ "2^64 by suffix", "[service]\nline_max_bytes = 17179869184G\n",
	  "FILE:2: line_max_bytes: \"17179869184G\" is not a number of bytes (K, M or G may "
	  "follow) from 65536 to 1073741824\n" },
	{ "relative paths", "[service]\nsocket = run/x\n[profile basic]\npaths = /ok ../up\n",
	  "FILE:2: socket: \"run/x\" is not an absolute path without blanks, \".\" or \"..\" of at "
	  "most 107 bytes\n"
	  "FILE:4: paths: \"../up\" is not an absolute path without blanks, \".\" or \"..\"\n" },
	{ "paths in disguise", "[profile a]\npaths = /a/../etc\n[profile b]\npaths = /\n"
	  "[profile c]\npaths = /a//b\n[profile d]\npaths = /a/.\n[profile e]\npaths = /a/\n",
	  "FILE:2: paths: \"/a/../etc\" is not an absolute path without blanks, \".\" or \"..\"\n"
	  "FILE:4: paths: \"/\" is not an absolute path without blanks, \".\" or \"..\"\n"
	  "FILE:6: paths: \"/a//b\" is not an absolute path without blanks, \".\" or \"..\"\n"
	  "FILE:8: paths: \"/a/.\" is not an absolute path without blanks, \".\" or \"..\"\n"
	  "FILE:10: paths: \"/a/\" is not an absolute path without blanks, \".\" or \"..\"\n" },
	{ "no user", "[service]\nuser = 0day\n",
	  "FILE:2: user: \"0day\" is not a user name of at most 32 bytes\n" },
	{ "no modules", "[profile a]\nmodules = json os;sys\n[profile b]\nmodules = a..b\n"
	  "[profile c]\nmodules = .a\n[profile d]\nmodules = a.\n[profile e]\nmodules = 1a\n",
	  "FILE:2: modules: \"os;sys\" is not the name of a Python module\n"
	  "FILE:4: modules: \"a..b\" is not the name of a Python module\n"
	  "FILE:6: modules: \".a\" is not the name of a Python module\n"
	  "FILE:8: modules: \"a.\" is not the name of a Python module\n"
	  "FILE:10: modules: \"1a\" is not the name of a Python module\n" },
	{ "a number has one line", "[pool]\nwarm = 1\n 2\n", "FILE:3: warm: the value is one line\n" },
	{ "nothing to continue", "[pool]\n warm = 1\n",
	  "FILE:2: a line that begins with a blank continues a list, and there is none above it\n" },
	{ "a plus that is no addition", "[profile a]\nmodules = +json\n[profile b]\nmodules = json + re\n"
	  "[pool]\nwarm = + 1\n[profile c]\npaths = + /a\n",
	  "FILE:2: modules: \"+json\" is not the name of a Python module\n"
	  "FILE:4: modules: \"+\" is not the name of a Python module\n"
	  "FILE:6: warm: \"+ 1\" is not a whole number from 0 to 512\n"
	  "FILE:8: paths: \"+\" is not an absolute path without blanks, \".\" or \"..\"\n" },
	{ "a wrong list is told once", "[profile a]\nmodules = 1\n 2\n 3\n",
	  "FILE:2: modules: \"1\" is not the name of a Python module\n" },
	{ "a wrong key's further lines are not another's",
	  "[profile a]\nmodules = json\nmodlues = re\n math\n",
	  "FILE:3: modlues: unknown key in [profile]\n" },
	{ "control character", "[pool]\nwarm = \x01" "1\n", "FILE:2: the line holds a control character\n" },
	{ "strange bytes", "[pool]\nwarm = \xff\x1b\n[po\xc3\xa9l]\n",
	  "FILE:2: the line holds a control character\n"
	  "FILE:3: [po??l]: unknown section; right are " SECTIONS "\n" },
	{ "no way to a server", "[tools a]\nca_file = /c\n",
	  "FILE: [tools a] has neither command nor url\n" },
	{ "two ways to a server", "[tools a]\ncommand = /c\nurl = https://h/mcp\n",
	  "FILE:2: [tools a] has a command and a url: it can be reached in one way only\n" },
	{ "a credential in the clear", "[tools a]\nurl = http://localhost.example/\n"
	  "credential_file = /c\n",
	  "FILE:3: [tools a] credential_file: is for a url with https:// or unix:, or of this "
	  "machine\n" },
	{ "OAuth without a client", "[tools a]\nurl = unix:/s\noauth_token_url = https://t/\n",
	  "FILE:3: [tools a] oauth_token_url: needs oauth_client_id and oauth_client_secret_file\n" },
	{ "a client without OAuth", "[tools a]\nurl = unix:/s\noauth_client_id = x\n",
	  "FILE:3: [tools a] oauth: there is no oauth_token_url\n" },
	{ "OAuth in the clear", "[tools a]\nurl = https://h/\noauth_client_id = x\n"
	  "oauth_client_secret_file = /c\noauth_token_url = http://t/\n",
	  "FILE:5: [tools a] oauth_token_url: is https://, or of this machine, and for a url that is so\n" },
	{ "OAuth and a credential", "[tools a]\nurl = https://h/\noauth_client_id = x\n"
	  "oauth_client_secret_file = /c\noauth_token_url = https://t/\ncredential_file = /c\n",
	  "FILE:5: [tools a] oauth_token_url: there is a credential_file too\n" },
	{ "a secret without a host", "[secret a]\nvalue_file = /c\n",
	  "FILE: [secret a] has no host\n" },
	{ "a secret without a file", "[secret a]\nhost = a.test\n",
	  "FILE: [secret a] has no value_file\n" },
	{ "a secret for a suffix", "[secret a]\nhost = .a.test\n",
	  "FILE:2: host: \".a.test\" is not HOST or HOST:PORT of at most 300 bytes\n" },
	{ "a secret in a header of the proxy's", "[secret a]\nhost = a\nvalue_file = /c\nheader = host\n",
	  "FILE:4: [secret a] header: is one that the proxy writes itself\n" },
	{ "a secret that is none", "[network]\nsecrets = b\n[secret a]\nhost = a\nvalue_file = /c\n",
	  "FILE:2: [network] secrets: there is no [secret b]\n" },
	{ "a credential for a command", "[tools a]\ncommand = /c\ncredential_file = /c\n",
	  "FILE:3: [tools a] credential_file: is for a url with https:// or unix:, or of this "
	  "machine\n" },
	{ "a header without a credential", "[tools a]\nurl = unix:/s\ncredential_header = X\n",
	  "FILE:3: [tools a] credential_header: there is no credential_file\n" },
	{ "certificates without TLS", "[tools a]\nurl = http://h/\nca_file = /c\n",
	  "FILE:3: [tools a] ca_file: is for a url with https:// alone\n" },
	{ "no url", "[tools a]\nurl = unix:s\n[tools b]\nurl = unix:/s:t\n[tools c]\nurl = ftp://h/\n"
	  "[tools d]\nurl = https://user@h/\n",
	  "FILE:2: url: \"unix:s\" is not " SERVER_URL
	  "FILE:4: url: \"unix:/s:t\" is not " SERVER_URL
	  "FILE:6: url: \"ftp://h/\" is not " SERVER_URL
	  "FILE:8: url: \"https://user@h/\" is not " SERVER_URL },
	{ "sets of tools", "[mcp]\ntoolsets = native, other\n",
	  "FILE:2: toolsets: \"other\" is not native, exec-sandbox, python-sandbox or run-python\n" },
	{ "no set of tools", "[mcp]\ntoolsets =\n", "FILE:2: [mcp] toolsets: names no set\n" },
	{ "a set's default above its cap", "[exec-sandbox]\ndefault_timeout = 301\n",
	  "FILE:2: [exec-sandbox] default_timeout: is above max_timeout\n" },
	{ "half of an authentication",
	  "[auth]\njwks_file = /etc/j\ntrusted_header = X-User\n",
	  "FILE:2: [auth] jwks_file: needs an issuer\n"
	  "FILE:2: [auth] jwks_file: needs a resource: the URI by which clients know this service\n"
	  "FILE:3: [auth] trusted_header: needs a trusted_proxy_user\n" },
	{ "the other half", "[auth]\nissuer = https://i\nrequired_scopes = a b\n"
	  "trusted_proxy_user = www-data\n",
	  "FILE:2: [auth] issuer: needs a jwks_file\n"
	  "FILE:3: [auth] required_scopes: needs a jwks_file\n"
	  "FILE:4: [auth] trusted_proxy_user: needs a trusted_header\n" },
	{ "authentication of strange forms",
	  "[auth]\nissuer = ftp://i\nresource = https://h/\"x\ntrusted_header = X User\n"
	  "required_scopes = a\\b\nleeway_seconds = 601\ntoken_file = tokens\n",
	  "FILE:2: issuer: \"ftp://i\" is not http:// or https://, a host and a path, if need be, of "
	  "at most 255 bytes\n"
	  "FILE:3: resource: \"https://h/\"x\" is not http:// or https://, a host and a path, if need "
	  "be, of at most 255 bytes\n"
	  "FILE:4: trusted_header: \"X User\" is not the name of a header of at most 64 bytes\n"
	  "FILE:5: required_scopes: \"a\\b\" is not a scope\n"
	  "FILE:6: leeway_seconds: \"601\" is not a whole number from 0 to 600\n"
	  "FILE:7: token_file: \"tokens\" is not an absolute path without blanks, \".\" or \"..\" of at "
	  "most 4095 bytes\n" },
	{ "a header that has a meaning already",
	  "[auth]\ntrusted_header = authorization\ntrusted_proxy_user = www-data\n",
	  "FILE:2: [auth] trusted_header: Authorization has a meaning of its own\n" },
	{ "addresses are numbers", "[http]\nlisten = localhost:80\n",
	  "FILE:2: listen: \"localhost:80\" is not a numeric address and a port such as "
	  "127.0.0.1:8080 of at most 64 bytes\n" },
	{ "an address has a port", "[http]\nlisten = 127.0.0.1\n",
	  "FILE:2: listen: \"127.0.0.1\" is not a numeric address and a port such as "
	  "127.0.0.1:8080 of at most 64 bytes\n" },
	{ "version 6 has brackets", "[http]\nlisten = ::1:80\n",
	  "FILE:2: listen: \"::1:80\" is not a numeric address and a port such as "
	  "127.0.0.1:8080 of at most 64 bytes\n" },
	{ "a port is a number", "[http]\nlisten = [::1]:65536\n",
	  "FILE:2: listen: \"[::1]:65536\" is not a numeric address and a port such as "
	  "127.0.0.1:8080 of at most 64 bytes\n" },
	{ "yes or no", "[http]\ninsecure = true\n",
	  "FILE:2: insecure: \"true\" is neither yes nor no\n" },
	{ "hosts have no scheme", "[http]\nallowed_hosts = a.example b.example:80 http://x\n",
	  "FILE:2: allowed_hosts: \"http://x\" is not the name of a host, with or without a "
	  "port\n" },
	{ "origins have one", "[http]\nallowed_origins = https://a.example a.example\n",
	  "FILE:2: allowed_origins: \"a.example\" is not http:// or https:// and the name of a "
	  "host, with or without a port\n" },
	{ "origins have no path", "[http]\nallowed_origins = https://a.example/\n",
	  "FILE:2: allowed_origins: \"https://a.example/\" is not http:// or https:// and the "
	  "name of a host, with or without a port\n" },
	{ "all mistakes, not the first", "[pool]\nwarm = x\nwarm_max = y\n[limits]\npids = 0\nz = 1\n",
	  "FILE:2: warm: \"x\" is not a whole number from 0 to 512\n"
	  "FILE:3: warm_max: \"y\" is not a whole number from 0 to 4096\n"
	  "FILE:5: pids: \"0\" is not a whole number from 1 to 65536\n"
	  "FILE:6: z: unknown key in [limits]\n" },
	{ "default above cap", "[limits]\ntimeout_seconds = 20\ntimeout_max = 10\nmemory_mb = 4096\n"
	  "pids = 600\ncpu_seconds = 601\noutput_kb = 2048\noutput_total_mb = 1\n",
	  "FILE:2: [limits] timeout_seconds: is above timeout_max\n"
	  "FILE:6: [limits] cpu_seconds: is above cpu_max\n"
	  "FILE:4: [limits] memory_mb: is above memory_max_mb\n"
	  "FILE:5: [limits] pids: is above pids_max\n"
	  "FILE:7: [limits] output_kb: is above output_total_mb\n" },
	{ "nothing could wait", "[pool]\ntenant_queue_max = 0\n",
	  "FILE:2: tenant_queue_max: \"0\" is not a whole number from 1 to 1000000\n" },
	{ "no room for any job", "[mcp]\njob_bytes = 1023K\n",
	  "FILE:2: [limits] output_kb: is above job_bytes in [mcp]\n" },
	{ "warm above warm_max", "[pool]\nwarm = 65\n[service]\nsubuid_count = 256\n",
	  "FILE:2: [pool] warm: is above warm_max\n"
	  "FILE:4: [pool] workers_max: is above subuid_count in [service], less 2\n" },
};

static void
mistakes_are_told_with_their_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(bad_cases); i++) {
		struct config *config = config_new();
		char *errors;
		int r = read_bytes(config, bad_cases[i].text, strlen(bad_cases[i].text), &errors);

		if (r != -EINVAL || strcmp(errors, bad_cases[i].errors) != 0)
			fail_msg("%s: %d\n%sinstead of\n%s", bad_cases[i].name, r, errors,
				 bad_cases[i].errors);
		free(errors);
		config_free(config);
	}
}

/* Every number of the table at its bounds and one past them. */
static void
numbers_have_their_ranges(void **state)
{
	const struct key *key;

	(void)state;
	for (size_t i = 0; (key = key_at(i)); i++) {
		struct config *config = config_new();
		const struct { uint64_t n; bool right; } cases[] = {
			{ key->least, true }, { key->most, true },
			{ key->least - 1, key->least == 0 }, { key->most + 1, false },
		};
		void *base = config;

		if (strcmp(key->section, "profile") == 0)
			base = &config->profile[0];
		for (size_t c = 0; key->kind <= KEY_BYTES && c < N(cases); c++) {
			char text[32];

			if (cases[c].n == UINT64_MAX)
				continue;
			snprintf(text, sizeof(text), "%ju", (uintmax_t)cases[c].n);
			assert_int_equal(key_set(key, base, text, false, NULL),
					 cases[c].right ? 0 : -EINVAL);
		}
		config_free(config);
	}
}

static void
long_lines_and_nul_are_refused(void **state)
{
	struct config *config = config_new();
	char text[400], *errors;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "[profile a]\nmodules = ", 22);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(read_bytes(config, text, sizeof(text), &errors), -EINVAL);
	assert_string_equal(errors, "FILE:2: the line is longer than 198 bytes; a list goes "
			    "on in lines that begin with a blank\n");
	free(errors);
	assert_int_equal(read_bytes(config, "[pool]\nwarm = 1\0" "2\n", 18, &errors), -EINVAL);
	assert_string_equal(errors, "FILE:2: the line holds a control character\n");
	free(errors);
	config_free(config);
}

static void
too_many_words_and_profiles_are_refused(void **state)
{
	struct config *config = config_new();
	char *text = NULL, *errors;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	fputs("[profile basic]\nmodules =\n", out);
	for (int i = 0; i <= CONFIG_LIST_MAX; i++)
		fputs(" m\n", out);
	for (int i = 1; i <= CONFIG_PROFILES_MAX; i++)
		fprintf(out, "[profile p%d]\n", i);
	fclose(out);
	assert_int_equal(read_bytes(config, text, len, &errors), -EINVAL);
	assert_string_equal(errors, "FILE:515: modules: more than 512 words\n"
			    "FILE:531: [profile p16]: there can be at most 16 profiles\n");
	assert_int_equal(config->profile[0].modules.n, CONFIG_LIST_MAX);
	assert_int_equal(config->n_profiles, CONFIG_PROFILES_MAX);
	free(errors);
	free(text);
	config_free(config);
}

static void
a_file_that_cannot_be_read_is_an_error(void **state)
{
	struct config *config = config_new();

	(void)state;
	assert_int_equal(config_read(config, "no/such/file", stderr), -ENOENT);
	assert_int_equal(config_read(config, "/", stderr), -EISDIR);
	config_free(config);
}

static char *
dump(const struct config *config)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	config_dump(config, out);
	fclose(out);
	return text;
}

static void
what_is_printed_can_be_read(void **state)
{
	static const char *const files[] = {
		"",
		"[service]\nsocket = /run/x\nline_max_bytes = 65537\n[limits]\ntimeout_max = 777\n",
		"[tenant uid:5]\npolicy.run_script = deny\npackages.deny = a\n b c>1,<2\n"
		"[tenant group:g]\n[policy]\npreset = strict\nrun_repl = allow\n",
		"[profile none]\nmodules =\ndisk_bytes = 3M\n[profile b]\npaths = /opt/x\n /opt/y\n",
		/* as long as a line can hold, then short ones */
		"[profile basic]\npaths=\n\t"
		"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n /b /c\n",
	};

	(void)state;
	for (size_t i = 0; i < N(files); i++) {
		struct config *first = config_new(), *second = config_new();
		char *errors, *text, *again;

		assert_int_equal(read_bytes(first, files[i], strlen(files[i]), &errors), 0);
		free(errors);
		text = dump(first);
		if (read_bytes(second, text, strlen(text), &errors) != 0)
			fail_msg("%s%s", errors, text);
		again = dump(second);
		assert_string_equal(text, again);
		assert_int_equal(first->n_profiles, second->n_profiles);
		assert_memory_equal(&first->limits, &second->limits, sizeof(first->limits));
		assert_memory_equal(&first->pool, &second->pool,
				    offsetof(struct config, pool.learn) -
				    offsetof(struct config, pool));
		assert_int_equal(first->pool.learn.n, second->pool.learn.n);
		assert_int_equal(first->profile[0].paths.n, second->profile[0].paths.n);
		free(errors);
		free(text);
		free(again);
		config_free(first);
		config_free(second);
	}
}

static void
interpreters_have_sections(void **state)
{
	static const char right[] = "[profile a]\ninterpreter = x\n"
				    "[interpreter x]\nworker = /opt/worker\n"
				    "[interpreter y]\nroot = /srv/y\n"
				    "[profile b]\ninterpreter = debug\n";
	static const char wrong[] = "[interpreter x/y]\n[interpreter x]\nroot = here\n"
				    "modules = os\n";
	struct config *config = config_new();
	char *errors = NULL;

	(void)state;
	assert_int_equal(read_bytes(config, right, strlen(right), &errors), 0);
	assert_int_equal(config->n_interpreters, 2);
	assert_ptr_equal(config_interpreter_of(config, config_find_profile(config, "a")),
			 &config->interpreter[0]);
	assert_string_equal(config->interpreter[0].worker, "/opt/worker");
	assert_null(config->interpreter[0].root);
	assert_string_equal(config->interpreter[1].root, "/srv/y");
	assert_null(config_interpreter_of(config, config_find_profile(config, "b")));
	assert_null(config_interpreter_of(config, config_find_profile(config, "basic")));
	free(errors);
	config_free(config);
	config = config_new();
	assert_int_equal(read_bytes(config, wrong, strlen(wrong), &errors), -EINVAL);
	assert_non_null(strstr(errors, ":1: [interpreter x/y]: the name is made of"));
	assert_non_null(strstr(errors, ":3: root:"));
	assert_non_null(strstr(errors, ":4: modules: unknown key in [interpreter]"));
	free(errors);
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_built_in_values_hold),
		cmocka_unit_test(interpreters_have_sections),
		cmocka_unit_test(a_file_goes_over_the_built_in_values),
		cmocka_unit_test(mistakes_are_told_with_their_lines),
		cmocka_unit_test(numbers_have_their_ranges),
		cmocka_unit_test(long_lines_and_nul_are_refused),
		cmocka_unit_test(too_many_words_and_profiles_are_refused),
		cmocka_unit_test(a_file_that_cannot_be_read_is_an_error),
		cmocka_unit_test(what_is_printed_can_be_read),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
