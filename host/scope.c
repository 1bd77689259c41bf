/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at a start by hand.   Owns: a connection to the user's manager, as long
 * as one call takes.
 * sd-bus calls that wait are not used, because each has its own time limit, up to 90 seconds. */
#include "host/startup.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "base/clock.h"
#include "base/why.h"

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE MANAGER ".Manager"

struct asking {
	sd_bus *bus;
	char unit[64];
	bool answered;
	int error;		/* once answered */
	struct why *why;
};

static int
scope_end(struct asking *asking, int error, const char *text)
{
	asking->answered = true;
	asking->error = error < 0 ? why_say(asking->why, error, "", "the user's service manager: %s",
					    text) : 0;
	return 0;
}

/* The reply says only whether the call was accepted; a signal reports that the process was moved.
 */
static int
on_reply(sd_bus_message *message, void *arg, sd_bus_error *)
{
	const sd_bus_error *error = sd_bus_message_get_error(message);

	if (error == NULL)
		return 0;
	return scope_end(arg, -sd_bus_message_get_errno(message), error->message ? error->message
									  : error->name);
}

static int
on_job_removed(sd_bus_message *message, void *arg, sd_bus_error *)
{
	struct asking *asking = arg;
	const char *job, *unit, *result;
	uint32_t id;

	if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) < 0 ||
	    strcmp(unit, asking->unit) != 0)
		return 0;
	return scope_end(asking, strcmp(result, "done") == 0 ? 0 : -EIO, result);
}

/* The manager's own socket, which systemctl --user also uses, works without a bus. */
static int
connect_privately(sd_bus **bus_r)
{
	const char *directory = secure_getenv("XDG_RUNTIME_DIR");
	char address[PATH_MAX];
	sd_bus *bus = NULL;
	int r;

	if (directory == NULL || strpbrk(directory, ",;%") != NULL)
		return -ENOMEDIUM;
	snprintf(address, sizeof(address), "unix:path=%s/systemd/private", directory);
	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		sd_bus_unref(bus);
	else
		*bus_r = bus;
	return r;
}

static int
scope_ask(struct asking *asking)
{
	const char *sender = NULL;
	int r = connect_privately(&asking->bus);

	if (r < 0) {
		r = sd_bus_open_user(&asking->bus);
		sender = MANAGER;
	}
	if (r >= 0)
		r = sd_bus_match_signal_async(asking->bus, NULL, sender, MANAGER_PATH,
					      MANAGER_INTERFACE, "JobRemoved", on_job_removed, NULL,
					      asking);
	/* To the manager, process 0 is the caller: the caller's own number may be of another pid
	 * namespace. */
	if (r >= 0)
		r = sd_bus_call_method_async(asking->bus, NULL, MANAGER, MANAGER_PATH,
					     MANAGER_INTERFACE, "StartTransientUnit", on_reply, asking,
					     "ssa(sv)a(sa(sv))", asking->unit, "fail", 4,
					     "Description", "s", "Python for AI agents, in jails",
					     "PIDs", "au", 1, UINT32_C(0), "Delegate", "b", 1,
					     "CollectMode", "s", "inactive-or-failed", 0);
	return r;
}

static int
wait_for_end(struct asking *asking, uint64_t end_ms)
{
	int r = 0;

	while (r >= 0 && !asking->answered) {
		uint64_t now_ms = clock_ms();

		r = sd_bus_process(asking->bus, NULL);
		if (r != 0 || asking->answered)
			continue;
		if (now_ms >= end_ms)
			return -ETIMEDOUT;
		r = sd_bus_wait(asking->bus, (end_ms - now_ms) * 1000);
		r = r == -EINTR ? 0 : r;
	}
	return r < 0 ? r : 0;
}

int
scope_enter(unsigned int timeout_ms, struct why *why_r)
{
	struct asking asking = { .why = why_r };
	uint64_t end_ms = clock_ms() + timeout_ms;
	int r;

	snprintf(asking.unit, sizeof(asking.unit), "mcp-pythond-%d.scope", (int)getpid());
	r = scope_ask(&asking);
	if (r >= 0)
		r = wait_for_end(&asking, end_ms);
	if (r < 0)
		scope_end(&asking, r, strerror(-r));
	sd_bus_close_unref(asking.bus);
	return asking.error;
}
