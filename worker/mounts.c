/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (build, settle) and every worker (enter).
 * Owns:    the root tmpfs while it is being filled.
 * Each mount costs time in every worker, whose namespace copies them all: small files are
 * copied, not bound. */
#include "worker/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mount_calls.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "worker/procfs.h"
#include "worker/python.h"

#define COPY_MAX (1024 * 1024) /* bytes of a built-in file; larger ones are bound */
#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define PTS "/dev/pts"
#define MANAGED "etc/externally-managed"	/* what pip says of itself (PEP 668) */
#define PIP_CONF "usr/pip.conf"		/* of the system's Python alone: no venv reads it */
#define TERMINALS_MAX "16"		/* of one worker; the kernel has a bound for all together */

/* The directory of shared libraries, where each machine has its own. */
#ifdef __x86_64__
#define MULTIARCH "/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "/usr/lib/aarch64-linux-gnu"
#else
#error "which directory has the shared libraries of this machine?"
#endif

/* ---- paths of the host in every jail; missing ones are skipped ---- */

/* Directories and large files, bound read-only. A slash at the end marks a directory of a few
 * small files and links, which is copied. */
static const char *const shown[] = {
	"/usr/lib/python3",
	"/usr/local/lib/python" PYTHON_VERSION,
	"/usr/lib/locale",
	/* Paths that OpenSSL, ncurses and Tcl have compiled in; `machine -k compiled_in` asks the
	 * libraries of a host. */
	"/usr/lib/ssl/",
	"/etc/pki/tls/",
	"/etc/pki/tls/certs/",
	"/etc/pki/ca-trust/extracted",
	"/usr/lib/terminfo",
	"/usr/share/terminfo",
	"/usr/share/tcltk",
	"/usr/share/zoneinfo",
	"/usr/share/matplotlib",
	"/usr/share/fonts",
	"/usr/share/ca-certificates",
	"/usr/share/python-wheels",
	/* Data of Debian's packages of Python: docutils, pycountry, pyproj, plotly. */
	"/usr/share/docutils",
	"/usr/share/iso-codes",
	"/usr/share/proj",
	"/usr/share/python3-plotly",
	"/etc/alternatives/",
	"/etc/fonts",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/matplotlibrc",
	"/etc/mime.types",
	"/etc/protocols",
	"/etc/services",
	"/etc/python" PYTHON_VERSION "/",
	"/etc/ssl/certs/",
	"/etc/ssl/openssl.cnf",
};

/* Programs of the worker's Python. */
static const char *const pythons[] = { "python3", ("python" PYTHON_VERSION), "pip", "pip3" };

/* Small programs that scripts start, in /usr/bin. */
static const char *const programs[] = {
	"sh", "dash", "bash", "[", "awk",
	"base64", "basename", "bunzip2", "bzip2", "cat", "chmod", "cmp", "comm", "cp",
	"cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "egrep", "env",
	"expand", "expr", "factor", "false", "fgrep", "find", "fold", "free", "getent",
	"getopt", "grep", "groups", "gunzip", "gzip", "head", "hostname", "iconv",
	"id", "join", "kill", "ldd", "link", "ln", "locale", "ls", "mawk", "md5sum",
	"mkdir", "mkfifo", "mktemp", "mv", "nice", "nl", "nohup", "nproc", "numfmt",
	"od", "paste", "pgrep", "pkill", "pr", "printenv", "printf", "ps", "pwd", "readlink",
	"realpath", "rev", "rm", "rmdir", "sed", "seq", "sha1sum", "sha256sum",
	"sha512sum", "shuf", "sleep", "sort", "split", "stat", "stdbuf", "stty",
	"sum", "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true",
	"truncate", "tsort", "tty", "uname", "unexpand", "uniq", "unlink", "uptime", "wc",
	"which", "whoami", "xargs", "yes", "xz", "unxz", "xzcat", "zcat",
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "lib", "usr/lib" },		{ "bin", "usr/bin" },
	{ "sbin", "usr/bin" },		{ "usr/sbin", "bin" },
	{ "usr/bin/python", "python3" },
	{ "dev/fd", "/proc/self/fd" },	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
	{ "home/python", "../run/home" }, { "var/tmp", "../tmp" },
	/* Models that have learned from other services write their files there. */
	{ "mnt/data", "../workspace" },
	/* Where programs for E2B look for their files: in the volume of their sandbox. */
	{ "home/user", "../volume/data" },
	{ "var/run", "../run" },	{ "etc/mtab", "../proc/self/mounts" },
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/passwd",
	  "root:x:0:0:root:/root:/usr/sbin/nologin\n"
	  "python:x:1000:1000:python:/home/python:/bin/sh\n"
	  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\npython:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1\tlocalhost python\n::1\tlocalhost ip6-localhost\n" },
	{ "etc/hostname", "python\n" },
	{ "etc/host.conf", "multi on\n" },
	{ "etc/resolv.conf", "" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"
			       "services: files\nprotocols: files\n" },
	{ MANAGED,
	  "[externally-managed]\n"
	  "Error=Packages are installed here before a script runs, not by pip inside it.\n"
	  " Run the script again with dependencies=[\"NAME\"] or a PEP 723 block, or call\n"
	  " install_package (for a session of run_repl: with session). check_environment\n"
	  " says what is there and what can be installed.\n"
	  " --break-system-packages does not help.\n" },
};

/* pip installs what is there, so to speak: it finds requirements that are met, and no index of its
 * own accord for the others. */
static const char pip_conf[] =
	"[global]\n"
	"index-url = file:///packages-are-installed-before-a-run\n"
	"disable-pip-version-check = true\n"
	"[install]\n"
	"break-system-packages = true\n";

static const char *const devices[] = { "null", "full", "random", "urandom", "zero" };

/* Mount points of the worker's own file systems. */
static const char *const own[] = { "run", "tmp", "workspace", "dev/shm", "proc",
				   &ENVIRONMENT_PLACE[1], &VOLUME_PLACE[1] };

/* Paths that no jail shows. The proof from inside tries the first one that the host has. */
static const char *const hidden[] = { "/etc/shadow", "/root", "/sys/kernel", "/boot",
				      "/var/lib" };

static const char *outside;
static char what[PATH_MAX + 64];

static int
mounts_failed(const char **what_r, const char *step, const char *path, int error)
{
	snprintf(what, sizeof(what), "%s %s", step, path);
	*what_r = what;
	return error;
}

/* ---- filling the root, which is a directory descriptor ---- */

/* Makes the directories that lead to path (relative), and path itself if whole, with this mode. */
static int
make_dirs_with(int root, const char *path, bool whole, mode_t mode)
{
	const char *end = whole ? path + strlen(path) : strrchr(path, '/');
	size_t len = end ? (size_t)(end - path) : 0;
	char part[PATH_MAX];

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	snprintf(part, sizeof(part), "%.*s", (int)len, path);
	if (len == 0 || faccessat(root, part, F_OK, 0) == 0)	/* most are there: one call */
		return 0;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && i != len)
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdirat(root, part, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int
make_dirs(int root, const char *path, bool whole)
{
	return make_dirs_with(root, path, whole, 0755);
}

static int
mounts_make_link(int root, const char *path, const char *target)
{
	int r = make_dirs(root, path, false);

	if (r < 0)
		return r;
	return symlinkat(target, root, path) < 0 && errno != EEXIST ? -errno : 0;
}

static int
make_file(int root, const char *path, const char *text, size_t len)
{
	own_fd int fd = -1;
	int r = make_dirs(root, path, false);

	if (r < 0)
		return r;
	fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		return -EIO;
	return 0;
}

static int
copy_file(int root, const char *from, const char *to)
{
	own_fd int in = open(from, O_RDONLY | O_CLOEXEC);
	own_fd int out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	r = make_dirs(root, to, false);
	if (r < 0)
		return r;
	out = openat(root, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		     st.st_mode & 0555);
	if (out < 0)
		return errno == EEXIST ? 0 : -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	/* Python compiles a module anew if its time is not the one in its .pyc file. */
	return futimens(out, (struct timespec[2]){ st.st_atim, st.st_mtim }) < 0 ? -errno : 0;
}

/* Mounts a cloned tree on a path of the new root that exists. */
static int
mount_tree(int root, int tree, const char *to, uint64_t attributes)
{
	struct mount_attr attr = { .attr_set = attributes };

	if (attributes && call_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
		return -errno;
	return call_move_mount(tree, "", root, to, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Mounts a clone of the host's path on the same path of the new root. */
static int
bind_path(int root, const char *path, uint64_t attributes, bool directory)
{
	const char *to = path + 1;
	own_fd int tree = call_open_tree(AT_FDCWD, path,
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					    AT_SYMLINK_NOFOLLOW);
	int r;

	if (tree < 0)
		return -errno;
	r = directory ? make_dirs(root, to, true) : make_file(root, to, "", 0);
	return r < 0 ? r : mount_tree(root, tree, to, attributes);
}

bool
mounts_is_manual_page(const char *target)
{
	return strncmp(target, "/usr/share/man/", strlen("/usr/share/man/")) == 0;
}

/* Copies links and small files of a directory, without its subdirectories. A zygote copies hundreds
 * of links before the first worker, so each takes two system calls. */
static int
copy_entries(int root, const char *dir)
{
	own_list DIR *list = opendir(dir);
	struct dirent *entry;
	int r = list ? make_dirs(root, dir + 1, true) : -errno;
	own_fd int to = r < 0 ? -1 : openat(root, dir + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (r == 0 && to < 0)
		r = -errno;
	while (r == 0 && (entry = nextentry(list, &r))) {
		const char *name = entry->d_name;
		char path[PATH_MAX], target[PATH_MAX];
		struct stat st;
		ssize_t n;

		n = readlinkat(dirfd(list), name, target, sizeof(target) - 1);
		if (n >= 0) {
			target[n] = '\0';
			if (!mounts_is_manual_page(target) &&
			    symlinkat(target, to, name) < 0 && errno != EEXIST)
				r = -errno;
			continue;
		}
		if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
		    lstat(path, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode) && st.st_size <= COPY_MAX) {
			r = copy_file(root, path, path + 1);
			/* Not readable for all users of the host, so not shown; or removed
			 * meanwhile. */
			if (r == -EACCES || r == -ENOENT)
				r = 0;
		}
	}
	return r;
}

static int show_path(int root, const char *path);

/* Shows the libraries and the loaders (ld-linux-aarch64.so.1) that lie in /usr/lib itself, which is
 * not shown as a whole. */
static int
show_libraries(int root)
{
	own_list DIR *list = opendir("/usr/lib");
	struct dirent *entry;
	int r = list || errno == ENOENT ? 0 : -errno;

	while (r == 0 && (entry = nextentry(list, &r))) {
		char path[sizeof("/usr/lib/") + NAME_MAX];

		if ((strncmp(entry->d_name, "lib", 3) != 0 && strncmp(entry->d_name, "ld", 2) != 0) ||
		    !strstr(entry->d_name, ".so"))
			continue;
		snprintf(path, sizeof(path), "/usr/lib/%s", entry->d_name);
		r = show_path(root, path);
		if (r == -ENOENT || r == -EACCES)
			r = 0;
	}
	return r;
}

/* Shows one built-in path. -ENOENT: the host lacks it. */
static int
show_path(int root, const char *path)
{
	size_t len = strlen(path);
	char dir[PATH_MAX];
	struct stat st;

	if (path[len - 1] == '/') {
		snprintf(dir, sizeof(dir), "%.*s", (int)(len - 1), path);
		return copy_entries(root, dir);
	}
	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return bind_path(root, path, READ_ONLY, true);
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	return st.st_size <= COPY_MAX ? copy_file(root, path, path + 1) :
		bind_path(root, path, READ_ONLY, false);
}

/* Shows the profile's own root, which the zygote is in, without the directories that a worker has
 * for itself and those of the system. */
static int
show_whole(int root, const char **what_r)
{
	static const char *const not[] = {
		".", "..", "boot", "dev", "etc", "home", "lost+found", "media", "mnt", "proc", "root",
		"run", "srv", "sys", "tmp", "var", "workspace",
	};
	own_list DIR *list = opendir("/");
	struct dirent *entry;
	int r = list ? 0 : -errno;

	*what_r = "the interpreter's root";
	while (r == 0 && (entry = nextentry(list, &r))) {
		char path[NAME_MAX + 2], target[PATH_MAX];
		bool shown_here = true;
		struct stat st;
		ssize_t n;

		for (size_t i = 0; i < sizeof(not) / sizeof(not[0]); i++)
			shown_here &= strcmp(entry->d_name, not[i]) != 0;
		snprintf(path, sizeof(path), "/%s", entry->d_name);
		if (!shown_here || lstat(path, &st) < 0)
			continue;
		n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target) - 1) : -1;
		if (n >= 0) {
			target[n] = '\0';
			r = mounts_make_link(root, &path[1], target);
		} else if (S_ISDIR(st.st_mode)) {
			r = bind_path(root, path, READ_ONLY, true);
		}
		if (r < 0)
			mounts_failed(what_r, "show", path, r);
	}
	return r;
}

/* Shows that root, and the built-in paths that it does not have. */
static int
show_own_root(int root, const char **what_r)
{
	int r = show_whole(root, what_r);

	for (size_t i = 0; r == 0 && i < sizeof(links) / sizeof(links[0]); i++) {
		if (strncmp(links[i].path, "usr/", 4) == 0)
			continue;
		r = mounts_make_link(root, links[i].path, links[i].target);
		if (r < 0)
			mounts_failed(what_r, "link", links[i].path, r);
	}
	for (size_t i = 0; r == 0 && i < sizeof(shown) / sizeof(shown[0]); i++) {
		if (strncmp(shown[i], "/etc/", 5) != 0)
			continue;
		r = show_path(root, shown[i]);
		if (r == -ENOENT)
			r = 0;
		if (r < 0)
			mounts_failed(what_r, "show", shown[i], r);
	}
	return r;
}

/* Shows a program by its real file; a name that links elsewhere becomes a link to that file. */
static int
show_program(int root, const char *name)
{
	char path[64], real[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/usr/bin/%s", name);
	/* A file, as most are: realpath() would also read each directory above it. */
	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		snprintf(real, sizeof(real), "%s", path);
	else if (!realpath(path, real) || strncmp(real, "/usr/", 5) != 0)
		return -ENOENT;
	if (strcmp(real, path) != 0) {
		int r = mounts_make_link(root, path + 1, real);

		if (r < 0)
			return r;
	}
	/* Several names may lead to one file. */
	if (faccessat(root, real + 1, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return show_path(root, real);
}

/* Makes a link to a program of the Python that has a directory of its own. The host's program
 * would lack its standard library. */
static int
show_python(int root, const char *name)
{
	const struct python *python = python_chosen();
	char path[NAME_MAX + 16], target[PATH_MAX];
	int r;

	if (!*python->tree)
		return show_program(root, name);
	snprintf(path, sizeof(path), "usr/bin/%s", name);
	if (snprintf(target, sizeof(target), "%s/bin/%s", python->tree, name) >=
	    (int)sizeof(target))
		return -ENAMETOOLONG;
	if (access(target, F_OK) < 0)
		return -errno;
	r = python->shares_tree ? show_path(root, target) : 0;
	return r < 0 ? r : mounts_make_link(root, path, target);
}

/* Shows the files of the Python. If it has a directory to itself, all files in it are shown; if it
 * shares the directory with other software, only Python's own files are. */
static int
show_python_files(int root, const char **what_r)
{
	static const char *const files_of_it[] = {
		"lib/python" PYTHON_VERSION, "lib/libpython" PYTHON_VERSION ".so.1.0",
	};
	const struct python *python = python_chosen();
	const char *tree = *python->tree ? python->tree : "/usr";
	const bool whole = *python->tree && !python->shares_tree;
	int r;

	/* Scripts can walk through the directories that lead there, but cannot list them. */
	r = *python->tree ? make_dirs_with(root, &python->tree[1], false, 0111) : 0;
	if (r < 0)
		return mounts_failed(what_r, "directories above", tree, r);
	if (whole) {
		r = show_path(root, tree);
		return r < 0 ? mounts_failed(what_r, "show", tree, r) : 0;
	}
	for (size_t i = 0; i < sizeof(files_of_it) / sizeof(files_of_it[0]); i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", tree, files_of_it[i]) >= (int)sizeof(path))
			return mounts_failed(what_r, "show", tree, -ENAMETOOLONG);
		r = show_path(root, path);
		if (r < 0 && r != -ENOENT)
			return mounts_failed(what_r, "show", path, r);
	}
	return 0;
}

/* Shows the directory of shared libraries: Debian's of the machine, Fedora's /usr/lib64, or the
 * whole /usr/lib of other systems. */
static int
show_shared_libraries(int root, const char **what_r)
{
	const bool multiarch = access(MULTIARCH, F_OK) == 0;
	struct stat st;
	const char *path = multiarch ? MULTIARCH :
		lstat("/usr/lib64", &st) == 0 && S_ISDIR(st.st_mode) ? "/usr/lib64" : "/usr/lib";
	int r = show_path(root, path);

	if (r == 0 && multiarch && access("/usr/lib64", F_OK) == 0)
		r = show_path(root, "/usr/lib64/");
	return r < 0 ? mounts_failed(what_r, "show", path, r) : 0;
}

static int
show_built_in(int root, const char **what_r)
{
	char real[PATH_MAX];
	int r;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		r = mounts_make_link(root, links[i].path, links[i].target);
		if (r < 0)
			return mounts_failed(what_r, "link", links[i].path, r);
	}
	r = show_shared_libraries(root, what_r);
	if (r == 0)
		r = show_python_files(root, what_r);
	if (r < 0)
		return r;
	/* Only ctypes.util.find_library runs it. /sbin is /usr/bin here. Ubuntu's is a shell
	 * script in front of the program. */
	if (realpath("/sbin/ldconfig.real", real) || realpath("/sbin/ldconfig", real)) {
		r = copy_file(root, real, "usr/bin/ldconfig");
		if (r < 0)
			return mounts_failed(what_r, "show", real, r);
	}
	if (access("/lib64", F_OK) == 0 &&
	    (r = mounts_make_link(root, "lib64", "usr/lib64")) < 0)
		return mounts_failed(what_r, "link", "lib64", r);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		r = show_path(root, shown[i]);
		if (r < 0 && r != -ENOENT)
			return mounts_failed(what_r, "show", shown[i], r);
	}
	r = show_libraries(root);
	if (r < 0)
		return mounts_failed(what_r, "show libraries in", "/usr/lib", r);
	r = show_python(root, basename(python_chosen()->program));
	if (r < 0 && r != -ENOENT)
		return mounts_failed(what_r, "show", python_chosen()->program, r);
	for (size_t i = 0; i < sizeof(pythons) / sizeof(pythons[0]); i++) {
		r = show_python(root, pythons[i]);
		if (r < 0 && r != -ENOENT)
			return mounts_failed(what_r, "show python", pythons[i], r);
	}
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		r = show_program(root, programs[i]);
		if (r < 0 && r != -ENOENT)
			return mounts_failed(what_r, "show /usr/bin", programs[i], r);
	}
	return 0;
}
/* ---- the operator's paths ---- */

/* Absolute, without "." and "..", and not a path where workers mount their own file systems. */
static bool
may_show(const char *path)
{
	static const char *const never[] = {
		"/proc", "/sys", "/dev", "/run", "/tmp", "/workspace", "/home/python",
		ENVIRONMENT_PLACE, FILE_PLACES_DIRECTORY, "/volume",
		"/var/run", "/var/tmp",
	};
	size_t len = strlen(path);

	if (path[0] != '/' || len < 2 || len >= PATH_MAX || strstr(path, "//") ||
	    strstr(path, "/./") || strstr(path, "/../"))
		return false;
	if (strcmp(path + len - 2, "/.") == 0 ||
	    (len > 2 && strcmp(path + len - 3, "/..") == 0))
		return false;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		size_t n = strlen(never[i]);

		if (strncmp(path, never[i], n) == 0 &&
		    (path[n] == '\0' || path[n] == '/'))
			return false;
	}
	return true;
}

/* Does the new root show this path already, because a directory above it is bound? */
static bool
is_shown(int root, const char *path)
{
	struct stat here, there;

	return stat(path, &here) == 0 && fstatat(root, path + 1, &there, 0) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static int
show_configured(int root, const char *path)
{
	char real[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (S_ISLNK(st.st_mode) &&
	    faccessat(root, path + 1, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		r = mounts_make_link(root, path + 1, target);
		if (r < 0)
			return r;
	}
	/* Links on the way are followed on the host; the jail has the usual links too.
	 */
	if (!realpath(path, real))
		return -errno;
	if (!may_show(real) || stat(real, &st) < 0)
		return -EPERM;
	if (is_shown(root, real))
		return 0;
	return bind_path(root, real, READ_ONLY, S_ISDIR(st.st_mode));
}

static int
compare_paths(const void *a, const void *b)
{
	const struct msg_str *x = a, *y = b;
	size_t least = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->at, y->at, least);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static int
show_all_configured(int root, const struct msg_strs *paths, struct msg_strs *missing,
		    const char **what_r)
{
	own_mem struct msg_str *sorted = calloc(paths->n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < paths->n; i++)
		sorted[i] = paths->item[i];
	/* A directory comes before its contents, which then are shown already. */
	qsort(sorted, paths->n, sizeof(*sorted), compare_paths);
	for (size_t i = 0; i < paths->n; i++) {
		own_mem char *path = strndup(sorted[i].at, sorted[i].len);
		int r;

		if (!path)
			return -ENOMEM;
		r = may_show(path) ? show_configured(root, path) : -EPERM;
		if (r == -ENOENT)
			missing->item[missing->n++] = sorted[i];
		else if (r < 0)
			return mounts_failed(what_r, "show", path, r);
	}
	return 0;
}

/* ---- files that are made, and not from the host ---- */

static int
bind_device(int root, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/%s", name);
	return bind_path(root, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			 false);
}

/* Shows what pip says here in place of what the distribution lets it say, whose advice is for
 * people at a terminal of the host. A Python that lets pip install has no such file. The system's
 * pip, whose directory is the root's own, goes on with what is installed. */
static int
replace_managed(int root)
{
	static const char *const lib[] = { "lib", "lib64" };
	const char *tree = python_chosen()->tree;
	char path[PATH_MAX + 64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(lib) / sizeof(lib[0]); i++) {
		own_fd int made = -1;

		snprintf(path, sizeof(path), "%s/%s/python" PYTHON_VERSION "/EXTERNALLY-MANAGED",
			 *tree ? &tree[1] : "usr", lib[i]);
		if (faccessat(root, path, F_OK, 0) < 0)
			continue;
		made = call_open_tree(root, MANAGED, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		r = made < 0 ? -errno : mount_tree(root, made, path, READ_ONLY);
		if (r == 0 && !*tree)
			r = make_file(root, PIP_CONF, pip_conf, sizeof(pip_conf) - 1);
	}
	return r;
}

/* Makes the places on which stored files are mounted. */
static int
make_places(int root)
{
	char path[sizeof(FILE_PLACES_DIRECTORY) + 16];
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < FILE_PLACES; i++) {
		snprintf(path, sizeof(path), "%s/%02u", &FILE_PLACES_DIRECTORY[1], i);
		r = make_file(root, path, "", 0);
	}
	return r;
}

static int
make_own(int root, bool zero, bool terminals, bool folder, const char **what_r)
{
	size_t n_devices = sizeof(devices) / sizeof(devices[0]) - (zero ? 0 : 1);
	int r;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		r = make_file(root, files[i].path, files[i].text,
			      strlen(files[i].text));
		if (r < 0)
			return mounts_failed(what_r, "file", files[i].path, r);
	}
	r = replace_managed(root);
	if (r < 0)
		return mounts_failed(what_r, "mount", MANAGED, r);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		r = make_dirs(root, own[i], true);
		if (r < 0)
			return mounts_failed(what_r, "directory", own[i], r);
	}
	r = make_places(root);
	if (r < 0)
		return mounts_failed(what_r, "places in", FILE_PLACES_DIRECTORY, r);
	r = procfs_prepare(root, what_r);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_devices; i++) {
		r = bind_device(root, devices[i]);
		if (r < 0)
			return mounts_failed(what_r, "device", devices[i], r);
	}
	if (folder) {
		r = make_dirs(root, &FOLDER_PLACE[1], true);
		if (r == 0)
			r = mounts_make_link(root, "folder", &FOLDER_PLACE[1]);
		if (r < 0)
			return mounts_failed(what_r, "directory", FOLDER_PLACE, r);
	}
	if (terminals) {
		r = make_dirs(root, &PTS[1], true);
		if (r == 0)
			r = mounts_make_link(root, "dev/ptmx", "pts/ptmx");
		/* /dev/tty is the terminal of the session that opens it. */
		if (r == 0)
			r = bind_device(root, "tty");
		if (r < 0)
			return mounts_failed(what_r, "device", "tty", r);
	}
	/* The kernel lets a worker mount a proc of its own only if one is visible. */
	r = bind_path(root, "/proc", 0, true);
	return r < 0 ? mounts_failed(what_r, "bind", "/proc", r) : 0;
}

/* Mounts a tmpfs over the root; returns a descriptor of its top. */
static int
new_root(void)
{
	own_fd int fs = call_fsopen("tmpfs", FSOPEN_CLOEXEC);
	own_fd int root = -1;

	if (fs < 0 || call_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_STRING, "size", "64m", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	root = call_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (root < 0 ||
	    call_move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return give_fd(root);
}

static int
mounts_pivot(int root)
{
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

static int
lock_root(void)
{
	struct mount_attr attr = { .attr_set = READ_ONLY };

	return call_mount_setattr(AT_FDCWD, "/", 0, &attr) < 0 ? -errno : 0;
}

static const struct {
	const char *from, *to;
	mode_t mode;
} views[] = {
	{ "/run/workspace", "/workspace", 0755 },
	{ "/run/tmp", "/tmp", 01777 },
	{ "/run/shm", "/dev/shm", 01777 },
	{ "/run/home", NULL, 0755 },		/* by a link */
};

/* One file system, so that one limit covers all of it. */
static int
mount_views(const char *options)
{
	mode_t before;
	int r = 0;

	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	before = umask(0);
	for (size_t i = 0; r == 0 && i < sizeof(views) / sizeof(views[0]); i++)
		if (mkdir(views[i].from, views[i].mode) < 0 ||
		    (views[i].to &&
		     mount(views[i].from, views[i].to, NULL, MS_BIND, NULL) < 0))
			r = -errno;
	umask(before);
	return r;
}

int
mounts_build(const struct msg_strs *paths, bool zero, bool terminals, bool folder,
	     struct msg_strs *missing, const char **what_r)
{
	own_fd int root = -1;
	int r;

	*what_r = "private mounts";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	outside = NULL;
	for (size_t i = 0; !outside && i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (access(hidden[i], F_OK) == 0)
			outside = hidden[i];
	*what_r = "root file system";
	root = new_root();
	if (root < 0)
		return root;
	r = python_chosen()->in_root ? show_own_root(root, what_r) : show_built_in(root, what_r);
	if (r == 0)
		r = show_all_configured(root, paths, missing, what_r);
	if (r == 0)
		r = make_own(root, zero, terminals, folder, what_r);
	if (r < 0)
		return r;
	/* An operator may have configured it to be shown. */
	if (outside && faccessat(root, outside + 1, F_OK, 0) == 0)
		outside = NULL;
	*what_r = "pivot_root";
	r = mounts_pivot(root);
	if (r == 0) {
		*what_r = "read-only root";
		r = lock_root();
	}
	if (r == 0) {
		*what_r = "file system for imports";
		r = mount_views("size=256m,mode=0755");
	}
	return r;
}

int
mounts_settle(void)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (views[i].to && umount2(views[i].to, MNT_DETACH) < 0)
			return -errno;
	if (chdir("/") < 0 || umount2("/run", MNT_DETACH) < 0)
		return -errno;
	return 0;
}

void
mounts_options(uint64_t bytes, uint64_t inodes, char *text, size_t size)
{
	snprintf(text, size, "size=%llu,nr_inodes=%llu,mode=0755",
		 (unsigned long long)bytes, (unsigned long long)inodes);
}

int
mounts_enter(const char *options, uint64_t memory_bytes)
{
	int r = mount_views(options);

	if (r < 0)
		return r;
	r = procfs_mount(memory_bytes);
	if (r < 0)
		return r;
	return chdir("/workspace") < 0 ? -errno : 0;
}

int
mounts_terminals(void)
{
	return mount("devpts", PTS, "devpts", MS_NOSUID | MS_NOEXEC,
		     "newinstance,mode=0600,ptmxmode=0600,max=" TERMINALS_MAX) < 0 ? -errno : 0;
}

const char *
mounts_outside(void)
{
	return outside;
}
