/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python audit.   Owns: the audit log's files while it reads them.
 * Reads:   lines that anybody may have changed: this program finds such changes. */
#include "client/operator.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/own.h"
#include "client/admin.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/when.h"
#include "policy/chain.h"

#define DROPPED "\"event\":\"dropped\""
#define AUDIT_FILE "/var/lib/mcp-pythond/records/audit.jsonl"

static const char help[] =
	"Usage: mcp-python audit verify [--file PATH]\n"
	"       mcp-python audit show [--tenant WHO] [--since TIME] [--execution ID]\n"
	"                             [--record N] [--file PATH]\n"
	"\n"
	"Checks the chain of the audit log, or prints its records, as JSON lines.\n"
	"\n"
	"  --tenant WHO      those of a user by name, or of uid:1000, token:ci ...\n"
	"  --since TIME      those since today, yesterday, -10min, \"2 hours ago\", 2026-01-31\n"
	"                    or 2026-01-31T12:00 (all in UTC)\n"
	"  --execution ID    those of one execution\n"
	"  --record N        the one of this number: where source_record of others has it\n"
	"                    it has their script\n"
	"  --file PATH       the service's [audit] file; PATH.1, PATH.2 ... are read\n"
	"                    before it; otherwise\n"
	"                    " AUDIT_FILE "\n"
	"  --help            this text\n"
	"\n"
	"verify prints the last record's number and hash; its exit code is 65 when a line\n"
	"was changed, removed or inserted.\n";

struct audit_asked {
	bool verify;
	const char *path, *tenant, *execution;
	char who[32], since[32];	/* "": any; who: what tenant points to, of a user's name */
	json_int_t record;		/* 0: any */
};

struct walk {
	const struct audit_asked *asked;
	struct chain_link last;
	bool any;
	struct chain_link first;
	uint64_t beginning_told;	/* the number of the record that accounts for the missing
					 * beginning; 0: none */
	unsigned int wrong;
};

/* ---- one line ---- */

static bool
audit_is(const json_t *record, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(record, key));

	return !wanted || (text && strcmp(text, wanted) == 0);
}

/* Does the record say that the service removed a file that ended right before the first one? */
static bool
tells_beginning(const struct walk *walk, const char *line, size_t len)
{
	json_t *record = memmem(line, len, DROPPED, strlen(DROPPED))
			 ? json_loadb(line, len, 0, NULL) : NULL;
	const char *hash = json_string_value(json_object_get(record, "last_hash"));
	json_int_t n = json_integer_value(json_object_get(record, "last_record"));
	bool tells = hash && audit_is(record, "event", "dropped") && n > 0 &&
		     (uint64_t)n == walk->first.n - 1 && strcmp(hash, walk->first.prev) == 0;

	json_decref(record);
	return tells;
}

static void
verify_line(struct walk *walk, const char *path, unsigned int number, const char *line, size_t len)
{
	struct chain_link link;

	if (chain_read(line, len, &link) < 0) {
		printf("%s:%u: the line does not belong to the chain, or was changed\n", path, number);
		walk->wrong++;
		return;
	}
	if (!walk->any)
		walk->first = link;
	else if (!chain_follows(&walk->last, &link)) {
		printf("%s:%u: record %" PRIu64 " does not follow record %" PRIu64 "\n", path,
		       number, link.n, walk->last.n);
		walk->wrong++;
	}
	walk->any = true;
	walk->last = link;
	if (walk->first.n > 1 && tells_beginning(walk, line, len))
		walk->beginning_told = link.n;
}

static void
show_line(const struct audit_asked *asked, const char *line, size_t len)
{
	json_t *record = json_loadb(line, len, 0, NULL);
	const char *time = json_string_value(json_object_get(record, "time"));

	if (record && audit_is(record, "tenant", asked->tenant) &&
	    (!asked->record || json_integer_value(json_object_get(record, "n")) == asked->record) &&
	    audit_is(record, "execution", asked->execution) &&
	    (!*asked->since || (time && strcmp(time, asked->since) >= 0)))
		admin_print_json(stdout, record);
	json_decref(record);
}

/* ---- files ---- */

static int
audit_read_file(struct walk *walk, const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	if (!file)
		return -errno;
	while ((len = getline(&line, &size, file)) > 0) {
		number++;
		if (line[len - 1] == '\n')
			len--;
		else if (walk->asked->verify)
			printf("%s:%u: the line lacks its line break\n", path, number);
		if (walk->asked->verify)
			verify_line(walk, path, number, line, (size_t)len);
		else
			show_line(walk->asked, line, (size_t)len);
	}
	free(line);
	fclose(file);
	return 0;
}

static int
audit_by_number(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

/* The numbers N of all PATH.N, ascending; malloc'd. Returns their count or -errno. The oldest
 * files may be gone, and numbers between them may be missing. */
static int
find_numbers(const char *path, unsigned long **number_r)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	own_mem char *directory = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
	own_mem unsigned long *number = NULL;
	const struct dirent *entry;
	size_t len = strlen(name), n = 0;
	DIR *list;

	if (!directory)
		abort();
	list = opendir(slash ? directory : ".");
	if (!list)
		return -errno;
	while ((entry = readdir(list))) {
		char *end;

		if (strncmp(entry->d_name, name, len) != 0 || entry->d_name[len] != '.' ||
		    !isdigit((unsigned char)entry->d_name[len + 1]))
			continue;
		number = reallocarray(number, n + 1, sizeof(*number));
		if (!number)
			abort();
		number[n] = strtoul(entry->d_name + len + 1, &end, 10);
		n += *end == '\0';
	}
	closedir(list);
	if (n > 0)
		qsort(number, n, sizeof(*number), audit_by_number);
	*number_r = give_ptr(number);
	return (int)n;
}

static int
audit_read_all(struct walk *walk, const char *path)
{
	own_mem unsigned long *number = NULL;
	int n = find_numbers(path, &number), r;

	if (n < 0)
		say("the directory of %s: %s", path, strerror(-n));
	for (int i = 0; i < n; i++) {
		own_mem char *rotated = NULL;

		if (asprintf(&rotated, "%s.%lu", path, number[i]) < 0)
			abort();
		r = audit_read_file(walk, rotated);
		if (r < 0) {
			say("%s: %s", rotated, strerror(-r));
			return EX_NOINPUT;
		}
	}
	r = audit_read_file(walk, path);
	if (r == 0)
		return 0;
	if (r == -ENOENT)
		say("%s: there are no records; --file names another file, as [audit] file does in "
		    "the configuration", path);
	else
		say("%s: %s", path, strerror(-r));
	return r == -EACCES ? EX_NOPERM : EX_NOINPUT;
}

/* A missing beginning was removed by the service if a record of the chain says that the removed
 * file ended with exactly this link. */
static void
tell_beginning(const struct walk *walk)
{
	if (walk->first.n == 1)
		return;
	if (walk->beginning_told)
		printf("begins with record %" PRIu64 ": record %" PRIu64 " says that the service "
		       "removed what was before it\n", walk->first.n, walk->beginning_told);
	else
		printf("begins with record %" PRIu64 ": what was before it is not here, and no "
		       "record says that the service removed it\n", walk->first.n);
}

static int
audit_run(const struct audit_asked *asked)
{
	struct walk walk = { .asked = asked };
	int code = audit_read_all(&walk, asked->path ? asked->path : AUDIT_FILE);

	if (code || !asked->verify)
		return code;
	if (!walk.any) {
		puts("no records");
		return 0;
	}
	tell_beginning(&walk);
	printf("%s: up to record %" PRIu64 ", %s\n", walk.wrong ? "BROKEN" : "ok", walk.last.n,
	       walk.last.hash);
	return walk.wrong ? EX_DATAERR : 0;
}

/* A record's time begins as the text does that is made here. */
static bool
read_since(struct audit_asked *asked, const char *text)
{
	time_t when;
	struct tm tm;

	if (when_read(text, time(NULL), &when) < 0 || !gmtime_r(&when, &tm)) {
		say("audit: --since %s: a time is needed, such as today, yesterday, -10min, "
		    "\"2 hours ago\", 2026-01-31 or 2026-01-31T12:00", text);
		return false;
	}
	strftime(asked->since, sizeof(asked->since), "%Y-%m-%dT%H:%M:%S", &tm);
	return true;
}

/* "ada" and "user:ada" are the uid's tenant; what else has a colon is a tenant. */
static bool
read_tenant(struct audit_asked *asked, const char *text)
{
	const char *name = strncmp(text, "user:", 5) == 0 ? text + 5 : text;
	const struct passwd *user;

	asked->tenant = text;
	if (strchr(name, ':'))
		return true;
	if (*name && strspn(name, "0123456789") == strlen(name)) {
		snprintf(asked->who, sizeof(asked->who), "uid:%.20s", name);
	} else {
		user = getpwnam(name);
		if (!user) {
			say("audit: --tenant %s: there is no such user", text);
			return false;
		}
		snprintf(asked->who, sizeof(asked->who), "uid:%u", (unsigned int)user->pw_uid);
	}
	asked->tenant = asked->who;
	return true;
}

int
audit_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "tenant", required_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "execution", required_argument, NULL, 'e' },
		{ "record", required_argument, NULL, 'r' },
		{ "file", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct audit_asked asked = { .verify = false };
	int option;
	char *end;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			if (!read_tenant(&asked, optarg))
				return EX_USAGE;
			break;
		case 's':
			if (!read_since(&asked, optarg))
				return EX_USAGE;
			break;
		case 'e':
			asked.execution = optarg;
			break;
		case 'r':
			asked.record = strtoll(optarg, &end, 10);
			if (*end || asked.record < 1) {
				say("audit: --record: a number from 1 on");
				return EX_USAGE;
			}
			break;
		case 'f':
			asked.path = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return EX_USAGE;
		}
	}
	if (optind != argc - 1 || (strcmp(argv[optind], "verify") != 0 &&
				   strcmp(argv[optind], "show") != 0)) {
		say("audit: verify or show");
		return EX_USAGE;
	}
	asked.verify = strcmp(argv[optind], "verify") == 0;
	return audit_run(&asked);
}
