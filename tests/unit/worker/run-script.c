/* SPDX-License-Identifier: Apache-2.0 */
/* run-script [-ct] [-m MODULE]... [-n COUNT] FILE [ARG]...
 *
 * Runs a script in a real worker without a supervisor, for people who work on the jail.
 * Its output and its exit status become those of this program (128 and the signal when it was
 * killed, 124 on time-out, 125 when the jail failed). -v tells what DONE said; -n runs it so often
 * and prints how long that took; -c counts memory, as under a controller; -t: with terminals.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/worker/host.h"

static char *
read_file(const char *path, size_t *len_r)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *text = malloc(8 << 20);

	if (!f || !text)
		return NULL;
	*len_r = fread(text, 1, (8 << 20) - 1, f);
	text[*len_r] = '\0';
	fclose(f);
	return text;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
print_times(const char *what, double *us, size_t n)
{
	qsort(us, n, sizeof(*us), compare);
	fprintf(stderr, "%s: min %.0f us, median %.0f us, 99%% %.0f us\n", what, us[0],
		us[n / 2], us[n * 99 / 100]);
}

static void
tell(const struct host_result *r)
{
	if (r->end == HOST_JAIL_FAILED)
		fprintf(stderr, "jail failed: %.*s: %s\n",
			(int)r->frame.msg.jail_failed.what.len,
			r->frame.msg.jail_failed.what.at,
			strerror((int)r->frame.msg.jail_failed.error));
	if (r->told[0])
		fprintf(stderr, "told %s\n", r->told);
	if (r->end != HOST_DONE)
		return;
	fprintf(stderr, "exit %u raised %d", r->done->exit_code, r->done->raised);
#define TEXT(field)                                                                    \
	if (r->done->has_##field)                                                      \
	fprintf(stderr, "\n" #field ": %.*s", (int)r->done->field.len,                 \
		r->done->field.at)
	TEXT(value_repr);
	TEXT(value_json);
	TEXT(error_type);
	TEXT(error_message);
	TEXT(error_traceback);
	fprintf(stderr, "\nerror_line %u cut %d\n", r->done->error_line,
		r->done->value_cut);
}

static int
status_of(const struct host_result *r)
{
	if (r->end == HOST_DONE)
		return (int)r->done->exit_code;
	if (r->end == HOST_EXITED)
		return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status)
					      : WEXITSTATUS(r->status);
	return r->end == HOST_TIMEOUT ? 124 : 125;
}

int
main(int argc, char **argv)
{
	const char *modules[64] = { NULL };
	struct host_options options = { .modules = modules, .disk_bytes = 256 << 20,
					.disk_inodes = 65536 };
	struct host_run run = { .data_bytes = 512ULL << 20,
				.processes = 64,
				.cpu_seconds = 60 };
	size_t n_modules = 0, count = 1;
	double *ready, *done;
	bool verbose = false;
	char *script;
	struct host host;
	int option, status = 125, r;

	while ((option = getopt(argc, argv, "+csm:n:tv")) >= 0)
		if (option == 'c')
			options.memory_counted = true;
		else if (option == 's')
			options.single_id = true;
		else if (option == 'm' && n_modules < 63)
			modules[n_modules++] = optarg;
		else if (option == 'n')
			count = strtoul(optarg, NULL, 10);
		else if (option == 't')
			options.terminals = true;
		else if (option == 'v')
			verbose = true;
		else
			return 125;
	if (optind >= argc || !count ||
	    !(script = read_file(argv[optind], &run.script_len)))
		return 125;
	run.script = script;
	run.args = (const char *const *)argv + optind + 1;
	ready = calloc(count, sizeof(*ready));
	done = calloc(count, sizeof(*done));
	if (!ready || !done)
		return 125;
	r = host_start(&options, &host);
	if (r < 0) {
		fprintf(stderr, "zygote: %s: %s\n", host.failed[0] ? host.failed : "-",
			strerror(host.error ? (int)host.error : -r));
		host_stop(&host);
		return 125;
	}
	if (verbose)
		fprintf(stderr, "python %s, landlock %u, %zu missing %s\n", host.python,
			host.landlock_abi, host.n_missing, host.missing);
	for (size_t i = 0; i < count; i++) {
		struct host_result result;

		host_run(&host, &run, &result);
		ready[i] = result.ready_us;
		done[i] = result.done_us;
		if (i == 0) {
			fwrite(result.out, 1, result.out_len, stdout);
			fwrite(result.err, 1, result.err_len, stderr);
			if (verbose || result.end == HOST_JAIL_FAILED)
				tell(&result);
			status = status_of(&result);
		}
		host_result_done(&result);
	}
	if (count > 1) {
		print_times("SPAWN to READY", ready, count);
		print_times("RUN to DONE", done, count);
	}
	host_stop(&host);
	free(ready);
	free(done);
	free(script);
	return status;
}
