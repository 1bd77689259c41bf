/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the executions of the installer's programs.
 * Reads:   their output and answers, which come from a worker and an index: any bytes. */
#include "tools/packages/program.h"

#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/network.h"
#include "tools/shared/inside.h"

#define CPU_MS 300000
#define PIDS 64
#define OUTPUT_BYTES (64 * 1024)
#define OUTPUT_TOTAL (16 * 1024 * 1024)
#define LINE_MAX_BYTES 160

struct program {
	struct tool_host host;
	struct inside *inside;
	program_ended *ended;
	void *arg;
	double progress;
	size_t line_len;
	char line[LINE_MAX_BYTES + 1];
};

/* ---- output of the program ---- */

/* Lines in which pip only reports progress. */
static bool
is_progress(const char *line)
{
	static const char *const starts[] = { "Collecting ", "Downloading ", "Installing ",
					      "Successfully ", "Using " };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (strncmp(line, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

static void
program_end_line(struct program *program)
{
	struct tool_progress progress = { .message = program->line };
	const char *line = program->line;

	program->line[program->line_len] = '\0';
	program->line_len = 0;
	line += strspn(line, " ");
	if (!is_progress(line))
		return;
	progress.message = line;
	progress.progress = ++program->progress;
	program->host.on_progress(program->host.arg, &progress);
}

static void
program_on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct program *program = arg;

	if (stream != STREAM_STDOUT)
		return;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c == '\n')
			program_end_line(program);
		else if (program->line_len < LINE_MAX_BYTES)
			program->line[program->line_len++] = c < ' ' || c > '~' ? '?' : (char)c;
	}
}

/* ---- its end ---- */

/* The lines of pip with the reason of a failure. */
struct telling {
	bool goes_on;		/* indented lines belong to the line before */
	bool traceback;		/* the lines of a traceback are left out; the first other line
				 * ends it */
};

static bool
program_starts(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && strncmp(line, with, strlen(with)) == 0;
}

static bool
is_telling(struct telling *state, const char *line, size_t len)
{
	bool indented = *line == ' ';

	if (state->traceback) {
		state->traceback = indented;
		return !indented;
	}
	state->traceback = program_starts(line, len, "Traceback ");
	state->goes_on = program_starts(line, len, "ERROR: ") || program_starts(line, len, "WARNING: ") ||
			 program_starts(line, len, "  ERROR: ") || (state->goes_on && indented);
	return state->goes_on;
}

static char *
words_of(const struct outcome *outcome)
{
	const struct outcome_stream *out = &outcome->stream[STREAM_STDOUT];
	struct telling state = { false, false };
	char *words = NULL;
	size_t len, kept;
	FILE *to = open_memstream(&words, &len);

	xalloc_check(to);
	for (size_t at = 0; at < out->len;) {
		const char *line = out->text + at;
		const char *end = memchr(line, '\n', out->len - at);
		size_t n = end ? (size_t)(end - line) + 1 : out->len - at;

		if (is_telling(&state, line, n))
			fwrite(line, 1, n, to);
		at += n;
	}
	xassert(fclose(to) == 0);
	kept = jsonout_fit(words, len, PROGRAM_WORDS_MAX);
	while (kept && (words[kept - 1] == '\n' || words[kept - 1] == ' '))
		kept--;
	words[kept] = '\0';
	return words;
}

static void
program_on_answered(void *arg, const json_t *answer, const struct outcome *outcome)
{
	struct program program = *(struct program *)arg;
	own_mem char *words = words_of(outcome);

	free(arg);
	program.ended(program.arg, answer, words, outcome);
}

/* ---- the way to the index ---- */

#define HOSTS_MAX 128
#define OVERHEAD_BYTES (256 << 20)	/* for pages of the index beside the files */

struct way {
	struct config_network network;
	char *allow[HOSTS_MAX], *allow_private[HOSTS_MAX];	/* malloc'd */
};

static void
program_allow(struct config_list *list, const char *text)
{
	if (list->n < HOSTS_MAX)
		list->item[list->n++] = xstrdup(text);
}

/* Allows the host of an index. If the URL has an address in place of a host's name, the address is
 * allowed even if it is private, because the operator has named exactly this address. */
static void
allow_index(struct way *way, const char *url)
{
	bool secure = strncmp(url, "https://", 8) == 0;
	const char *host = url + (secure ? 8 : 7);
	size_t len = strcspn(host, "/");
	struct network_target target;
	char text[NETWORK_HOST_MAX + 16], address[NETWORK_ADDRESS_TEXT];

	if (network_target_parse(host, len, secure ? 443 : 80, &target) < 0)
		return;
	if (target.address.family == 0) {
		snprintf(text, sizeof(text), "%s:%u", target.host, target.port);
	} else {
		network_address_print(&target.address, address);
		snprintf(text, sizeof(text), strchr(address, ':') ? "[%s]:%u" : "%s:%u",
			 address, target.port);
		program_allow(&way->network.allow_private, address);
	}
	program_allow(&way->network.allow, text);
}

static void
way_init(struct way *way, const struct config *config)
{
	*way = (struct way){ .network = config->network };
	way->network.allow = (struct config_list){ .item = way->allow };
	way->network.allow_private = (struct config_list){ .item = way->allow_private };
	way->network.bytes_max = config->packages.max_bytes + OVERHEAD_BYTES;
	way->network.connection_seconds = config->packages.timeout_ms / 1000;
	for (size_t i = 0; i < config->network.allow_private.n; i++)
		program_allow(&way->network.allow_private, config->network.allow_private.item[i]);
	allow_index(way, config->packages.index);
	for (size_t i = 0; i < config->packages.extra_indexes.n; i++)
		allow_index(way, config->packages.extra_indexes.item[i]);
	for (size_t i = 0; i < config->packages.file_hosts.n; i++)
		program_allow(&way->network.allow, config->packages.file_hosts.item[i]);
}

/* ---- starting ---- */

static struct limits
installer_limits(const struct config *config)
{
	return (struct limits){
		.wall_ms = config->packages.timeout_ms,
		.cpu_ms = CPU_MS,
		.memory_bytes = config->packages.memory_bytes,
		.pids = PIDS,
		.output_bytes = OUTPUT_BYTES,
		.output_total = OUTPUT_TOTAL,
		/* The limits of results do not depend on the client that asked for the run. */
		.results = config->limits.standard.results,
	};
}

int
program_start(const struct tool_host *host, const struct program_request *asked,
	      program_ended *ended, void *arg, struct program **program_r, struct why *why_r)
{
	const struct limits limits = installer_limits(host->config);
	struct program *program = xcalloc(1, sizeof(*program));
	struct way way;
	const struct inside_probe probe = {
		.program = asked->text,
		.argument = asked->argument,
		.profile = asked->profile,
		.channel = asked->channel,
		.limits = &limits,
		.network = asked->sealed ? NULL : &way.network,
		.on_output = host->on_progress ? program_on_output : NULL,
	};
	int r;

	program->host = *host;
	program->ended = ended;
	program->arg = arg;
	way_init(&way, host->config);
	r = inside_ask(host, &probe, program_on_answered, program, &program->inside, why_r);
	for (size_t i = 0; i < way.network.allow.n; i++)
		free(way.allow[i]);
	for (size_t i = 0; i < way.network.allow_private.n; i++)
		free(way.allow_private[i]);
	if (r < 0)
		free(program);
	else
		*program_r = program;
	return r;
}

void
program_cancel(struct program *program, enum cancel_reason reason)
{
	inside_cancel(program->inside, reason);
	free(program);
}
