/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/socketfile.h"
#include "base/why.h"

static char directory[] = "/tmp/test-socketfile-XXXXXX";
static char path[64], lock_path[72], spare[72];

static int
set_up(void **state)
{
	(void)state;
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/s", directory);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	snprintf(spare, sizeof(spare), "%s.spare", path);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(lock_path);
	unlink(spare);		/* of a process that was killed */
	return rmdir(directory);
}

static int
try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	strcpy(address.sun_path, path);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static void
it_is_made_and_removed(void **state)
{
	struct socketfile *file;
	struct why why;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(try_connect(), 0);
	close(fd);
	socketfile_close(file);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(lock_path, F_OK), -1);
}

/* Its name comes back from the second one, and that one from the first. Another service that has
 * taken the path keeps it. */
static void
a_name_that_vanishes_comes_back(void **state)
{
	struct socketfile *file, *handed;
	struct why why;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, other, plain;

	(void)state;
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), 0);
	assert_int_equal(socketfile_look(file), 0);
	assert_true(socketfile_is_own(file));
	if (geteuid() == 0) {	/* root alone may look into its directory */
		assert_int_equal(seteuid(65534), 0);
		assert_int_equal(socketfile_look(file), 0);
		assert_int_equal(seteuid(0), 0);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(socketfile_look(file), 1);
	assert_int_equal(try_connect(), 0);
	assert_int_equal(unlink(spare), 0);
	assert_int_equal(socketfile_look(file), 0);
	assert_int_equal(rename(spare, path), 0);	/* the same file: rename(2) does nothing */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(lock_path), 0);
	assert_int_equal(socketfile_look(file), 1);
	assert_int_equal(try_connect(), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s.handed", path);
	plain = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_null(socketfile_of(plain));
	assert_int_equal(bind(plain, (struct sockaddr *)&address, sizeof(address)), 0);
	handed = socketfile_of(plain);
	close(plain);
	assert_non_null(handed);
	assert_false(socketfile_is_own(handed));
	assert_int_equal(socketfile_look(handed), 0);
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(socketfile_look(handed), -EEXIST);
	socketfile_close(handed);
	/* The lock is another file now. */
	assert_int_equal(unlink(path), 0);
	other = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(other >= 0);
	assert_int_equal(socketfile_look(file), -EADDRINUSE);
	close(other);
	assert_int_equal(unlink(lock_path), 0);
	assert_int_equal(unlink(spare), 0);
	assert_int_equal(socketfile_look(file), -ENOENT);
	close(fd);
	socketfile_close(file);
}

/* Its name comes when it listens already: by a move, never by being made there. */
static void
whoever_finds_it_can_connect(void **state)
{
	union {
		char bytes[4096];
		struct inotify_event event;
	} buffer;
	struct socketfile *file;
	struct why why;
	int fd, watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	unsigned int seen = 0;
	ssize_t n;

	(void)state;
	assert_true(inotify_add_watch(watch, directory, IN_CREATE | IN_MOVED_TO) >= 0);
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), 0);
	n = read(watch, buffer.bytes, sizeof(buffer));
	assert_true(n > 0);
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const void *)(buffer.bytes + at);

		if (strcmp(event->name, "s") == 0)
			seen |= event->mask;
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	assert_int_equal(seen, IN_MOVED_TO);
	close(watch);
	close(fd);
	socketfile_close(file);
}

static void
one_that_is_served_is_refused(void **state)
{
	struct socketfile *file, *other;
	struct why why;
	int fd, fd2;

	(void)state;
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), 0);
	assert_int_equal(socketfile_open(path, geteuid(), &other, &fd2, &why), -EADDRINUSE);
	assert_non_null(strstr(why.text, path));
	/* a program that does not use the lock */
	unlink(lock_path);
	assert_int_equal(socketfile_open(path, geteuid(), &other, &fd2, &why), -EADDRINUSE);
	assert_int_equal(try_connect(), 0);
	close(fd);
	socketfile_close(file);
}

static void
a_dead_one_is_replaced(void **state)
{
	struct socketfile *file;
	struct why why;
	pid_t child = fork();
	int fd, status;

	(void)state;
	if (child == 0) {
		/* dies without cleaning up */
		_exit(socketfile_open(path, geteuid(), &file, &fd, &why) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(try_connect(), -ECONNREFUSED);
	assert_int_equal(access(lock_path, F_OK), 0);
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), 0);
	assert_int_equal(try_connect(), 0);
	close(fd);
	socketfile_close(file);
}

/* Many start at once over a dead socket: exactly one gets it, and it stays connectable. */
static void
of_many_one_wins(void **state)
{
	enum { STARTERS = 16 };
	int start[2], done[2], wins = 0, status;
	pid_t starter[STARTERS];
	char byte;

	(void)state;
	a_dead_one_is_replaced(state);
	assert_int_equal(pipe(start), 0);
	assert_int_equal(pipe(done), 0);
	for (int i = 0; i < STARTERS; i++) {
		starter[i] = fork();
		if (starter[i] == 0) {
			struct socketfile *file;
			struct why why;
			int fd, r;

			close(start[1]);
			close(done[0]);
			(void)!read(start[0], &byte, 1);	/* the end: go */
			r = socketfile_open(path, geteuid(), &file, &fd, &why);
			byte = r == 0 ? 'w' : r == -EADDRINUSE ? 'l' : '?';
			(void)!write(done[1], &byte, 1);
			pause();
		}
	}
	close(start[0]);
	close(start[1]);
	close(done[1]);
	for (int i = 0; i < STARTERS; i++) {
		assert_int_equal(read(done[0], &byte, 1), 1);
		assert_true(byte == 'w' || byte == 'l');
		wins += byte == 'w';
	}
	assert_int_equal(wins, 1);
	assert_int_equal(try_connect(), 0);
	close(done[0]);
	for (int i = 0; i < STARTERS; i++) {
		kill(starter[i], SIGKILL);
		waitpid(starter[i], &status, 0);
	}
}

static void
what_is_no_socket_stays(void **state)
{
	struct socketfile *file;
	struct why why;
	struct stat st;
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	close(fd);
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void
a_link_as_lock_is_not_followed(void **state)
{
	struct socketfile *file;
	struct why why;
	int fd;

	(void)state;
	assert_int_equal(symlink("/tmp/nowhere-at-all", lock_path), 0);
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), -ELOOP);
	assert_int_equal(access("/tmp/nowhere-at-all", F_OK), -1);
}

static void
a_lock_with_another_name_is_not_taken(void **state)
{
	struct socketfile *file;
	struct why why;
	char other[80];
	int fd;

	(void)state;
	snprintf(other, sizeof(other), "%s/valuable", directory);
	fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(link(other, lock_path), 0);
	assert_int_equal(socketfile_open(path, geteuid(), &file, &fd, &why), -EPERM);
	unlink(other);
}

static void
it_goes_to_its_owner(void **state)
{
	struct socketfile *file;
	struct why why;
	struct stat st;
	int fd;

	(void)state;
	if (geteuid() != 0) {
		skip();		/* only root may give files away */
		return;
	}
	assert_int_equal(socketfile_open(path, 12345, &file, &fd, &why), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(lock_path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	close(fd);
	socketfile_close(file);
}

static void
long_and_missing_paths_are_explained(void **state)
{
	struct socketfile *file;
	struct why why;
	char longer[200];
	int fd;

	(void)state;
	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[108] = '\0';
	assert_int_equal(socketfile_open(longer, geteuid(), &file, &fd, &why),
			 -ENAMETOOLONG);
	assert_non_null(strstr(why.text, "108"));
	assert_int_equal(socketfile_open("/tmp/none-such-directory/s", geteuid(), &file, &fd,
					 &why), -ENOENT);
}

static void
the_default_follows_the_environment(void **state)
{
	struct why why;
	char *chosen;

	(void)state;
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	chosen = socketfile_default(geteuid(), &why);
	assert_string_equal(chosen, "/run/user/7/mcp-pythond.sock");
	free(chosen);
	unsetenv("XDG_RUNTIME_DIR");
	if (geteuid() == 0)
		return;		/* would make a directory below /run */
	assert_null(socketfile_default(geteuid(), &why));
	assert_non_null(strstr(why.text, "--socket"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_made_and_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_that_vanishes_comes_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(whoever_finds_it_can_connect, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_served_is_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_dead_one_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_many_one_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_socket_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_as_lock_is_not_followed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_lock_with_another_name_is_not_taken,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_goes_to_its_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_and_missing_paths_are_explained, set_up,
						tear_down),
		cmocka_unit_test(the_default_follows_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
