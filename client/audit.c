/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python audit.   Owns: nothing.
 * Reads:   lines that an attacker may have changed: this program finds such changes. */
#include "client/commands.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "client/admin.h"
#include "client/audit_files.h"
#include "client/audit_show.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/when.h"
#include "policy/chain.h"

#define DROPPED "\"event\":\"dropped\""
#define REPLACED "\"event\":\"replaced\""
#define SET_BACK_S 3600		/* the clock may have been set back so far: records of this time
				 * before --since are read, too */
#define AUDIT_FILE "/var/lib/mcp-pythond/records/audit.jsonl"

static const char help[] =
	"Usage: mcp-python audit verify [--file PATH]\n"
	"       mcp-python audit show [OPTIONS]\n"
	"\n"
	"Checks the chain of the audit log, or shows its records: on a terminal as a table,\n"
	"otherwise as JSON lines.\n"
	"\n"
	"  --tenant WHO      those of a user by name, or of uid:1000, token:ci ...\n"
	"  --since TIME      those since today, yesterday, -10min, \"2 hours ago\", 2026-01-31\n"
	"                    or 2026-01-31T12:00 (all in UTC)\n"
	"  --until TIME      those before that time\n"
	"  --event NAME      those of an event, such as execution-ended or denied\n"
	"  --status STATUS   those with a status, such as memory_limit\n"
	"  --text TEXT       those with TEXT in a script, a reason or any other value, in small\n"
	"                    or capital letters; or with a hash that begins with TEXT\n"
	"  --execution ID    those of one execution\n"
	"  --record N        the one of this number: where source_record of others has it\n"
	"                    it has their script\n"
	"  --last N          the last N of them; -n N is the same\n"
	"  --follow          then those that are added, until Ctrl-C; -f is the same\n"
	"  --json, --table   JSON lines, or a table, wherever they go\n"
	"  --file PATH       the service's [audit] file; PATH.1, PATH.2 ... are read\n"
	"                    before it; otherwise\n"
	"                    " AUDIT_FILE "\n"
	"  --help            this text\n"
	"\n"
	"verify prints the last record's number and hash; its exit code is 65 when a line\n"
	"was changed, removed or inserted.\n";

struct walk {
	struct chain_link last;
	bool any;
	struct chain_link first;
	uint64_t beginning_told;	/* the number of the record that accounts for the missing
					 * beginning; 0: none */
	bool was_replaced;		/* it says that somebody else has removed the beginning */
	unsigned int wrong;
};

/* ---- one line ---- */

/* Does the record say that a file is gone whose last record came right before the first record that
 * was read? */
static bool
tells_beginning(const struct walk *walk, const char *line, size_t len)
{
	json_t *record = memmem(line, len, DROPPED, strlen(DROPPED)) ||
			 memmem(line, len, REPLACED, strlen(REPLACED))
			 ? json_loadb(line, len, 0, NULL) : NULL;
	const char *hash = json_string_value(json_object_get(record, "last_hash"));
	const char *event = json_string_value(json_object_get(record, "event"));
	json_int_t n = json_integer_value(json_object_get(record, "last_record"));
	bool tells = hash && event && n > 0 &&
		     (strcmp(event, "dropped") == 0 || strcmp(event, "replaced") == 0) &&
		     (uint64_t)n == walk->first.n - 1 && strcmp(hash, walk->first.prev) == 0;

	json_decref(record);
	return tells;
}

static void
verify_line(void *arg, const struct audit_line *line)
{
	struct walk *walk = arg;
	struct chain_link link;

	if (!line->is_whole)
		printf("%s:%u: the line lacks its line break\n", line->path, line->number);
	if (chain_read(line->text, line->len, &link) < 0) {
		printf("%s:%u: the line does not belong to the chain, or was changed\n", line->path,
		       line->number);
		walk->wrong++;
		return;
	}
	if (!walk->any)
		walk->first = link;
	else if (!chain_follows(&walk->last, &link)) {
		printf("%s:%u: record %" PRIu64 " does not follow record %" PRIu64 "\n", line->path,
		       line->number, link.n, walk->last.n);
		walk->wrong++;
	}
	walk->any = true;
	walk->last = link;
	if (walk->first.n > 1 && tells_beginning(walk, line->text, line->len)) {
		walk->beginning_told = link.n;
		walk->was_replaced = memmem(line->text, line->len, REPLACED, strlen(REPLACED));
	}
}

/* A missing beginning was removed by the service if a record of the chain says that the removed
 * file ended with exactly this link. */
static void
tell_beginning(const struct walk *walk)
{
	if (walk->first.n == 1)
		return;
	if (walk->beginning_told)
		printf("begins with record %" PRIu64 ": record %" PRIu64 " says that %s "
		       "removed what was before it\n", walk->first.n, walk->beginning_told,
		       walk->was_replaced ? "SOMEBODY ELSE" : "the service");
	else
		printf("begins with record %" PRIu64 ": what was before it is not here, and no "
		       "record says that the service removed it\n", walk->first.n);
}

static bool
verify_end(void *)
{
	return true;
}

static int
verify(const char *path)
{
	struct walk walk = { .wrong = 0 };
	const struct audit_files files = {
		.path = path, .on_line = verify_line, .on_end = verify_end, .arg = &walk,
	};
	int code = audit_files_read(&files, false);

	if (code)
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

/* ---- arguments ---- */

/* Makes the text with which the time of a record begins, so many seconds earlier. */
static bool
read_when(char text_r[32], const char *option, const char *text, time_t earlier)
{
	time_t when;
	struct tm tm;

	if (when_read(text, time(NULL), &when) < 0 ||
	    !gmtime_r(&(time_t){ when - earlier }, &tm)) {
		say("audit: --%s %s: a time is needed, such as today, yesterday, -10min, "
		    "\"2 hours ago\", 2026-01-31 or 2026-01-31T12:00", option, text);
		return false;
	}
	strftime(text_r, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	return true;
}

static bool
read_number(json_int_t *number_r, json_int_t most, const char *option, const char *text)
{
	char *end;

	*number_r = strtoll(text, &end, 10);
	if (*end == '\0' && *number_r >= 1 && *number_r <= most)
		return true;
	say("audit: --%s %s: a number from 1 to %" JSON_INTEGER_FORMAT, option, text, most);
	return false;
}

static bool
read_tenant(struct audit_asked *asked, const char *text)
{
	asked->tenant = admin_principal(text, asked->who);
	if (!asked->tenant)
		say("audit: --tenant %s: there is no such user", text);
	return asked->tenant;
}

static bool
read_last(struct audit_asked *asked, const char *text)
{
	json_int_t last;

	if (!read_number(&last, AUDIT_LAST_MAX, "last", text))
		return false;
	asked->last = (size_t)last;
	return true;
}

/* 0, an exit code, or -1 after --help. */
static int
audit_read_option(struct audit_asked *asked, int option)
{
	bool right = true;

	switch (option) {
	case 't':
		right = read_tenant(asked, optarg);
		break;
	case 's':
		right = read_when(asked->since, "since", optarg, 0) &&
			read_when(asked->early, "since", optarg, SET_BACK_S);
		break;
	case 'u':
		right = read_when(asked->until, "until", optarg, 0);
		break;
	case 'E':
		asked->event = optarg;
		break;
	case 'S':
		asked->status = optarg;
		break;
	case 'T':
		asked->text = optarg;
		break;
	case 'e':
		asked->execution = optarg;
		break;
	case 'r':
		right = read_number(&asked->record, INT64_MAX, "record", optarg);
		break;
	case 'n':
		right = read_last(asked, optarg);
		break;
	case 'f':
		asked->follow = true;
		break;
	case 'j':
	case 'b':
		asked->table = option == 'b';
		break;
	case 'F':
		asked->path = optarg;
		break;
	case 'h':
		fputs(help, stdout);
		return -1;
	default:
		right = false;
	}
	return right ? 0 : EX_USAGE;
}

int
audit_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "tenant", required_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "until", required_argument, NULL, 'u' },
		{ "event", required_argument, NULL, 'E' },
		{ "status", required_argument, NULL, 'S' },
		{ "text", required_argument, NULL, 'T' },
		{ "execution", required_argument, NULL, 'e' },
		{ "record", required_argument, NULL, 'r' },
		{ "last", required_argument, NULL, 'n' },
		{ "follow", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "table", no_argument, NULL, 'b' },
		{ "file", required_argument, NULL, 'F' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct audit_asked asked = { .path = AUDIT_FILE, .table = isatty(STDOUT_FILENO) };
	const char *verb;
	int option, r;

	while ((option = getopt_long(argc, argv, "n:f", options, NULL)) != -1) {
		r = audit_read_option(&asked, option);
		if (r)
			return r < 0 ? 0 : r;
	}
	verb = optind == argc - 1 ? argv[optind] : "";
	if (strcmp(verb, "verify") == 0)
		return verify(asked.path);
	if (strcmp(verb, "show") == 0)
		return audit_show(&asked);
	say("audit: verify or show");
	return EX_USAGE;
}
