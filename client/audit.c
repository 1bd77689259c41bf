/* Runs in: mcp-python audit.   Owns: the audit log's files while it reads them.
 * Reads:   lines that anybody may have changed: that is what it looks for. */
#include "client/operator.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "client/exits.h"
#include "client/say.h"
#include "policy/chain.h"

#define AUDIT_FILE "/var/lib/mcp-pythond/records/audit.jsonl"

static const char help[] =
	"Usage: mcp-python audit verify [--file PATH]\n"
	"       mcp-python audit show [--tenant WHO] [--since TIME] [--execution ID]\n"
	"                             [--file PATH]\n"
	"\n"
	"Checks the chain of the audit log, or prints its records, as JSON lines.\n"
	"\n"
	"  --tenant WHO      those of uid:1000, token:ci ...\n"
	"  --since TIME      those since 2026-01-31, or 2026-01-31T12:00 (UTC)\n"
	"  --execution ID    those of one execution\n"
	"  --file PATH       the service's [audit] file; PATH.1, PATH.2 ... are read\n"
	"                    before it; otherwise\n"
	"                    " AUDIT_FILE "\n"
	"  --help            this text\n"
	"\n"
	"verify prints the last record's number and hash; its exit code is 65 when a line\n"
	"was changed, taken out or put in.\n";

struct audit_asked {
	bool verify;
	const char *path, *tenant, *since, *execution;
};

struct walk {
	const struct audit_asked *asked;
	struct chain_link last;
	bool any;
	uint64_t first;
	unsigned int wrong;
};

/* ---- one line ---- */

static void
verify_line(struct walk *walk, const char *path, unsigned int number, const char *line, size_t len)
{
	struct chain_link link;

	if (chain_read(line, len, &link) < 0) {
		printf("%s:%u: the line is none of the chain's, or was changed\n", path, number);
		walk->wrong++;
		return;
	}
	if (!walk->any)
		walk->first = link.n;
	else if (!chain_follows(&walk->last, &link)) {
		printf("%s:%u: record %" PRIu64 " does not follow record %" PRIu64 "\n", path,
		       number, link.n, walk->last.n);
		walk->wrong++;
	}
	walk->any = true;
	walk->last = link;
}

static bool
is(const json_t *record, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(record, key));

	return !wanted || (text && strcmp(text, wanted) == 0);
}

static void
show_line(const struct audit_asked *asked, const char *line, size_t len)
{
	json_t *record = json_loadb(line, len, 0, NULL);
	const char *time = json_string_value(json_object_get(record, "time"));

	if (record && is(record, "tenant", asked->tenant) &&
	    is(record, "execution", asked->execution) &&
	    (!asked->since || (time && strcmp(time, asked->since) >= 0))) {
		/* ASCII: nothing in it may speak to the terminal */
		json_dumpf(record, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		putchar('\n');
	}
	json_decref(record);
}

/* ---- files ---- */

static int
read_file(struct walk *walk, const char *path)
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
			printf("%s:%u: the line has no end\n", path, number);
		if (walk->asked->verify)
			verify_line(walk, path, number, line, (size_t)len);
		else
			show_line(walk->asked, line, (size_t)len);
	}
	free(line);
	fclose(file);
	return 0;
}

/* The oldest may be gone: then the chain begins in its middle. */
static int
read_all(struct walk *walk, const char *path)
{
	unsigned int missing = 0;
	int r;

	for (unsigned int n = 1; missing < 10000; n++) {
		char *rotated;

		if (asprintf(&rotated, "%s.%u", path, n) < 0)
			abort();
		missing = access(rotated, F_OK) == 0 ? 0 : missing + 1;
		r = missing ? 0 : read_file(walk, rotated);
		if (r < 0)
			say("%s: %s", rotated, strerror(-r));
		free(rotated);
		if (r < 0)
			return EX_NOINPUT;
	}
	r = read_file(walk, path);
	if (r == 0)
		return 0;
	say("%s: %s", path, strerror(-r));
	return r == -EACCES ? EX_NOPERM : EX_NOINPUT;
}

static int
run(const struct audit_asked *asked)
{
	struct walk walk = { .asked = asked };
	int code = read_all(&walk, asked->path ? asked->path : AUDIT_FILE);

	if (code || !asked->verify)
		return code;
	if (!walk.any) {
		puts("no records");
		return 0;
	}
	if (walk.first != 1)
		printf("begins with record %" PRIu64 ": what was before it is not here\n",
		       walk.first);
	printf("%s: up to record %" PRIu64 ", %s\n", walk.wrong ? "BROKEN" : "ok", walk.last.n,
	       walk.last.hash);
	return walk.wrong ? EX_DATAERR : 0;
}

int
audit_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "tenant", required_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "execution", required_argument, NULL, 'e' },
		{ "file", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct audit_asked asked = { .verify = false };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			asked.tenant = optarg;
			break;
		case 's':
			asked.since = optarg;
			break;
		case 'e':
			asked.execution = optarg;
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
	return run(&asked);
}
