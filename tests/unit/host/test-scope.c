/* SPDX-License-Identifier: Apache-2.0 */
/* A scope is asked for as the manager wants it, and no manager can hold up the start. A child
 * stands for the user's manager, on the socket that belongs to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "base/why.h"
#include "host/startup.h"

#define PATH "/org/freedesktop/systemd1"
#define INTERFACE "org.freedesktop.systemd1.Manager"
#define AMPLE_MS 60000
#define SHORT_MS 100

static char directory[] = "/tmp/test-scope.XXXXXX";
static char place[64], socket_path[96];
static pid_t manager;

static int
listen_as_manager(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(address.sun_path, socket_path);
	unlink(socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* How the manager answers a call; unit: the name in it. */
typedef int (*answer_fn)(sd_bus_message *call, const char *unit);

static int
on_call(sd_bus_message *call, void *arg, sd_bus_error *error)
{
	const char *unit, *mode, *name[4], *text[2];
	answer_fn answer = *(answer_fn *)arg;
	uint32_t process;
	int delegate, r;

	(void)error;
	if (!sd_bus_message_is_method_call(call, INTERFACE, "StartTransientUnit"))
		return 0;
	r = sd_bus_message_read(call, "ssa(sv)a(sa(sv))", &unit, &mode, 4, &name[0], "s", &text[0],
				&name[1], "au", 1, &process, &name[2], "b", &delegate, &name[3],
				"s", &text[1], 0);
	if (r < 0 || strcmp(mode, "fail") != 0 || strcmp(name[1], "PIDs") != 0 || process != 0 ||
	    strcmp(name[2], "Delegate") != 0 || !delegate)
		return sd_bus_reply_method_errnof(call, EINVAL, "not as a manager wants it");
	return answer(call, unit);
}

static _Noreturn void
be_manager(int listening, answer_fn answer)
{
	int fd = accept(listening, NULL, NULL);
	sd_id128_t id = { .bytes = { 1 } };
	sd_bus *bus = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (answer == NULL || sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 ||
	    sd_bus_set_server(bus, 1, id) < 0 || sd_bus_set_trusted(bus, 1) < 0 ||
	    sd_bus_add_filter(bus, NULL, on_call, &answer) < 0 || sd_bus_start(bus) < 0)
		_exit(1);
	for (;;) {
		int r = sd_bus_process(bus, NULL);

		if (r < 0 || (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0))
			_exit(0);
	}
}

/* answer: NULL: the manager takes the connection and ends. */
static int
enter_with(answer_fn answer, struct why *why)
{
	int fd = listen_as_manager(), r;

	manager = fork();
	if (manager == 0)
		be_manager(fd, answer);
	close(fd);
	r = scope_enter(AMPLE_MS, why);
	kill(manager, SIGKILL);
	assert_int_equal(waitpid(manager, NULL, 0), manager);
	return r;
}

static int
tell_of_job(sd_bus_message *call, const char *unit, const char *result)
{
	return sd_bus_emit_signal(sd_bus_message_get_bus(call), PATH, INTERFACE, "JobRemoved",
				  "uoss", UINT32_C(7), PATH "/job/7", unit, result);
}

static int
move(sd_bus_message *call, const char *unit)
{
	sd_bus_reply_method_return(call, "o", PATH "/job/7");
	tell_of_job(call, "another.scope", "failed");
	return tell_of_job(call, unit, "done");
}

static int
fail_to_move(sd_bus_message *call, const char *unit)
{
	sd_bus_reply_method_return(call, "o", PATH "/job/7");
	return tell_of_job(call, unit, "failed");
}

static int
refuse(sd_bus_message *call, const char *unit)
{
	(void)unit;
	return sd_bus_reply_method_errnof(call, EACCES, "not today");
}

static void
test_moved(void **state)
{
	(void)state;
	assert_int_equal(enter_with(move, NULL), 0);
}

static void
test_refusals_are_told(void **state)
{
	struct why why = { .text = "" };

	(void)state;
	assert_int_equal(enter_with(refuse, &why), -EACCES);
	assert_non_null(strstr(why.text, "not today"));
	assert_int_equal(enter_with(fail_to_move, &why), -EIO);
	assert_non_null(strstr(why.text, "failed"));
	assert_true(enter_with(NULL, &why) < 0);
}

static void
test_silence_is_no_wall(void **state)
{
	int fd = listen_as_manager();

	(void)state;
	assert_int_equal(scope_enter(SHORT_MS, NULL), -ETIMEDOUT);
	close(fd);
}

static void
test_without_manager(void **state)
{
	struct why why = { .text = "" };

	(void)state;
	unlink(socket_path);
	assert_true(scope_enter(AMPLE_MS, &why) < 0);
	assert_non_null(strstr(why.text, "service manager"));
	unsetenv("XDG_RUNTIME_DIR");
	assert_true(scope_enter(AMPLE_MS, NULL) < 0);
	setenv("XDG_RUNTIME_DIR", directory, 1);
}

static int
set_up(void **state)
{
	(void)state;
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	if (mkdtemp(directory) == NULL || setenv("XDG_RUNTIME_DIR", directory, 1) < 0)
		return -1;
	snprintf(place, sizeof(place), "%s/systemd", directory);
	snprintf(socket_path, sizeof(socket_path), "%s/systemd/private", directory);
	return mkdir(place, 0700);
}

static int
clean_up(void **state)
{
	(void)state;
	unlink(socket_path);
	rmdir(place);
	return rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_refusals_are_told),
		cmocka_unit_test(test_silence_is_no_wall),
		cmocka_unit_test(test_without_manager),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
