/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python check-host.   Owns: the trials' children until they are reaped. */
#include "client/host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_S 30

static void
probe_say_found(struct finding *finding, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void
probe_say_found(struct finding *finding, const char *format, va_list args)
{
	vsnprintf(finding->found, sizeof(finding->found), format, args);
}

void
finding_ok(struct finding *finding, const char *format, ...)
{
	va_list args;

	finding->verdict = VERDICT_OK;
	va_start(args, format);
	probe_say_found(finding, format, args);
	va_end(args);
}

void
finding_not(struct finding *finding, enum verdict verdict, const char *cost,
	    const char *format, ...)
{
	va_list args;

	finding->verdict = verdict;
	finding->cost = cost;
	va_start(args, format);
	probe_say_found(finding, format, args);
	va_end(args);
}

void
finding_advise(struct finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->advice, sizeof(finding->advice), format, args);
	va_end(args);
}

void
probe_child_begins(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(TRIAL_S);
}

const char *
probe_error(int error)
{
	return error < 0 ? "the trial was killed" : strerror(error);
}

int
probe_wait(pid_t pid)
{
	int status;

	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
probe_in_child(int (*trial)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begins();
		_exit(trial(arg));
	}
	return probe_wait(pid);
}

const char *
probe_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}
