/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: wheel_unpack() in the taker; the rest in the reader of a wheel, a child of the taker.
 * The reader cannot open a file or a socket, nor start a program or a child; it has only the wheel
 * and a pipe.
 * Owns:    the reader. */
#include "keeper/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/why.h"
#include "keeper/intake.h"
#include "keeper/walls.h"

#define WHEEL_FD 3		/* the reader's descriptor of the wheel */
#define STREAM_FD 4
#define BLOCK 65536
#define DATA_MAX (1UL << 30)
#define CPU_SECONDS 300		/* for one wheel */

/* ---- the stream ---- */

/* Most significant byte first. */
static void
put_number(FILE *to, uint64_t number, unsigned int len)
{
	while (len--)
		putc((int)(number >> (8 * len) & 0xff), to);
}

struct sent {
	FILE *to;
	uint32_t files;
};

static int
send_file(void *arg, const char *path, bool executable, uint64_t size)
{
	struct sent *sent = arg;
	size_t len = strlen(path);

	putc(executable ? 'X' : 'F', sent->to);
	put_number(sent->to, len, 2);
	put_number(sent->to, size, 8);
	sent->files++;
	return fwrite(path, 1, len, sent->to) == len ? 0 : -EPIPE;
}

static int
send_bytes(void *arg, const void *bytes, size_t len)
{
	struct sent *sent = arg;

	return fwrite(bytes, 1, len, sent->to) == len ? 0 : -EPIPE;
}

static void
send_end(struct sent *sent, int r, const struct why *why)
{
	size_t len = strnlen(why->text, INTAKE_REASON_MAX);

	if (r == 0) {
		putc('E', sent->to);
		put_number(sent->to, sent->files, 4);
	} else {
		putc('R', sent->to);
		put_number(sent->to, len, 2);
		fwrite(why->text, 1, len, sent->to);
	}
	fflush(sent->to);
}

/* ---- the reader ---- */

static int
unpack_limit(void)
{
	static const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{ RLIMIT_CPU, CPU_SECONDS },
#ifndef WITH_SANITIZERS
		{ RLIMIT_DATA, DATA_MAX },
#endif
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		const struct rlimit to = { limits[i].most, limits[i].most };
		struct rlimit now;

		if (getrlimit(limits[i].what, &now) < 0 ||
		    (now.rlim_max > to.rlim_max && setrlimit(limits[i].what, &to) < 0))
			return -errno;
	}
	return 0;
}

/* Closes everything but the wheel and the stream. */
static int
keep_two(int wheel, int stream)
{
	int high = fcntl(wheel, F_DUPFD, STREAM_FD + 1);

	if (high < 0 || dup2(stream, STREAM_FD) < 0 || dup2(high, WHEEL_FD) < 0 ||
	    close_range(STREAM_FD + 1, ~0U, 0) < 0 || close_range(0, 2, 0) < 0)
		return -errno;
	return 0;
}

static _Noreturn void
live_as_reader(int wheel, int stream, uint64_t size, const struct wheel_asked *asked)
{
	static char block[BLOCK];
	struct why why = { .text = "the reader of wheels could not be walled in" };
	struct sent sent = { .to = NULL };
	const struct wheel_sink sink = { send_file, send_bytes, &sent };
	int r = keep_two(wheel, stream);

	prctl(PR_SET_NAME, "wheel-reader", 0, 0, 0);
	sent.to = r == 0 ? fdopen(STREAM_FD, "w") : NULL;
	if (!sent.to || setvbuf(sent.to, block, _IOFBF, sizeof(block)) != 0)
		_exit(EXIT_FAILURE);
	r = unpack_limit();
	if (r == 0)
		r = walls_enter(WALLS_READER);
	if (r == 0)
		r = wheel_read(WHEEL_FD, size, asked, &sink, &why);
	send_end(&sent, r, &why);
	_exit(EXIT_SUCCESS);
}

/* ---- the taker ---- */

/* Reaps the reader. If its stream broke off (r is -EPIPE), why_r gets how the reader ended, which
 * says more. Otherwise returns r. */
static int
wait_for(pid_t reader, int r, struct why *why_r)
{
	int status = 0;

	while (waitpid(reader, &status, 0) < 0)
		if (errno != EINTR)
			return why_say(why_r, -errno, "", "the reader of a wheel");
	if (r != -EPIPE)
		return r;
	if (WIFSIGNALED(status))
		return why_say(why_r, -EBADMSG, "", "the reader of a wheel was ended by "
			       "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return why_say(why_r, -EBADMSG, "", "the reader of a wheel ended with %d",
		       WEXITSTATUS(status));
}

int
wheel_unpack(int wheel, uint64_t size, const struct wheel_asked *asked, struct intake *intake,
       struct why *why_r)
{
	int stream[2], r;
	pid_t reader;

	if (pipe2(stream, O_CLOEXEC) < 0)
		return why_say(why_r, -errno, "", "the reader of a wheel");
	reader = fork();
	if (reader == 0)
		live_as_reader(wheel, stream[1], size, asked);
	r = reader < 0 ? -errno : 0;
	close(stream[1]);
	if (r == 0)
		r = intake_read(intake, stream[0], why_r);
	else
		why_say(why_r, r, "", "the reader of a wheel");
	/* A reader that still writes fails now. */
	close(stream[0]);
	return reader < 0 ? r : wait_for(reader, r, why_r);
}
