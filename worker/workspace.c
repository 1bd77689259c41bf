/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process before and after the script; init, if the script's process did not
 * end by itself.
 * Owns:    the state of the directory when it was empty.
 * Reads:   a tree that the script made, and may still be changing. */
#include "worker/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/quote.h"
#include "proto/frame.h"

#define TICK_LOOKS_MAX 200	/* of half a millisecond, or more */
#define DEPTH_MAX 32			/* levels of nested directories */
#define ENTRIES_MAX 20000		/* entries examined */
#define HASH_BYTES_MAX (64 << 20)	/* bytes read of all files together */
#define CHUNK (64 * 1024)
#define MANY 10				/* files that differ by a number; more are a series */

struct workspace_bounds workspace_bounds;

/* ---- before ---- */

/* The files that the caller has sent, as they were before the script ran. */
static struct input_file {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec written;
} input_file[INPUTS_MAX];
static size_t n_input_files;

/* A write sets a file's time to a tick of the clock, so a write within the tick in which the file
 * was made would not be noticed. Therefore the file gets a time between two ticks. */
static void
note_input(int fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if (n_input_files == INPUTS_MAX || clock_gettime(CLOCK_REALTIME, &times[1]) < 0)
		return;
	times[1].tv_nsec |= 1;
	if (futimens(fd, times) < 0 || fstat(fd, &st) < 0)
		return;
	input_file[n_input_files++] =
		(struct input_file){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
}

static bool
is_input(const struct stat *st)
{
	for (size_t i = 0; i < n_input_files; i++)
		if (input_file[i].ino == st->st_ino && input_file[i].dev == st->st_dev &&
		    input_file[i].size == st->st_size &&
		    input_file[i].written.tv_sec == st->st_mtim.tv_sec &&
		    input_file[i].written.tv_nsec == st->st_mtim.tv_nsec)
			return true;
	return false;
}

void
workspace_forget_inputs(void)
{
	n_input_files = 0;
}

static struct stat empty;	/* st_nlink 0: not recorded */

void
workspace_note(const char *root)
{
	if (lstat(root, &empty) < 0)
		empty.st_nlink = 0;
}

static struct timespec written;		/* real time of the last workspace_written */

void
workspace_written(void)
{
	clock_gettime(CLOCK_REALTIME, &written);
}

void
workspace_begin(struct timespec *since_r)
{
	static const struct timespec pause = { .tv_nsec = 500000 };

	/* If the clock was set back, nothing is waited for. */
	for (int i = 0; i < TICK_LOOKS_MAX; i++) {
		clock_gettime(CLOCK_REALTIME_COARSE, since_r);
		if (since_r->tv_sec > written.tv_sec ||
		    (since_r->tv_sec == written.tv_sec && since_r->tv_nsec > written.tv_nsec))
			return;
		nanosleep(&pause, NULL);
	}
}

int
workspace_script_new(void)
{
	own_fd int fd = open(WORKSPACE_SCRIPT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	/* Its first page is there before the script is. */
	if (fd < 0 || write(fd, "\n", 1) != 1)
		return -errno;
	return give_fd(fd);
}

int
workspace_script_write(int fd, const struct msg_bin *script, struct stat *st_r)
{
	own_fd int own = fd;
	size_t at = 0;

	while (at < script->len) {
		ssize_t n = pwrite(own, script->at + at, script->len - at, (off_t)at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	if (script->len == 0 && ftruncate(own, 0) < 0)
		return -errno;
	return fstat(own, st_r) < 0 ? -errno : 0;
}

void
workspace_script_remove(void)
{
	unlink(WORKSPACE_SCRIPT);
}

struct input_path {
	char text[sizeof(WORKSPACE) + 1 + PATH_TEXT_MAX + 1];
};

/* Writes the path, makes the directories above it, and with replace makes room. 0 or -errno. */
static int
prepare_path(const struct msg_str *path, bool replace, struct input_path *path_r)
{
	char *text = path_r->text;

	snprintf(text, sizeof(path_r->text), WORKSPACE "/%.*s", (int)path->len, path->at);
	for (char *slash = text + sizeof(WORKSPACE); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(text, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (replace || strcmp(text, WORKSPACE_SCRIPT) == 0)
		unlink(text);
	return 0;
}

/* A place without a mount is an empty entry of the jail's own file system. */
static bool
is_mounted(const char *place)
{
	struct stat own, there;

	return stat(FILE_PLACES_DIRECTORY, &own) == 0 && stat(place, &there) == 0 &&
	       own.st_dev != there.st_dev;
}

int
workspace_has_mount(const char *place)
{
	struct stat there;

	if (stat(place, &there) < 0)
		return -errno;
	return is_mounted(place) ? 0 : -ENXIO;
}

int
workspace_link(const struct msg_link *link, bool replace)
{
	char target[sizeof(FILE_PLACES_DIRECTORY) + 16];
	struct input_path path;
	int r;

	snprintf(target, sizeof(target), FILE_PLACES_DIRECTORY "/%02u", link->place);
	/* An earlier cell was told why. */
	if (!is_mounted(target))
		return -ENXIO;
	r = prepare_path(&link->path, replace, &path);
	return r == 0 && symlink(target, path.text) < 0 ? -errno : r;
}

int
workspace_put(const struct msg_input *input, bool replace)
{
	struct input_path path;
	own_fd int fd = -1;
	size_t at = 0;
	int r = prepare_path(&input->path, replace, &path);

	if (r < 0)
		return r;
	fd = open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	while (at < input->data.len) {
		ssize_t n = write(fd, input->data.at + at, input->data.len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	note_input(fd);
	return 0;
}

/* ---- after ---- */

/* A file that is to be reported. */
struct found {
	char *path;			/* from the root */
	struct stat st;
	unsigned int depth;
	uint32_t series;		/* the same for names that differ in numbers only */
	bool is_one_of_many;
};

struct walk {
	int control, error;
	struct timespec since;		/* files that have not changed since are left out */
	const struct stat *script;	/* and so is this file as it was, if not NULL */
	uint32_t told, more;
	unsigned int entries;
	bool may_offer;
	size_t kept, hashed;		/* bytes */
	char *content;			/* the content for the report, and a buffer */
	struct found *found;
	size_t n_found;
	size_t path_len;
	char path[PATH_TEXT_MAX + 1];	/* while it is searched as it is, then as it is reported */
};

/* Writes a path in the form for people (base/quote.h). False: it gets too long. */
static bool
quote_path(struct walk *w, const char *name)
{
	size_t len = strlen(name);

	w->path_len = 0;
	while (len > 0) {
		char piece[QUOTE_PIECE];
		size_t piece_len, n = quote_next(name, len, piece, &piece_len);

		if (PATH_TEXT_MAX - w->path_len < piece_len)
			return false;
		memcpy(w->path + w->path_len, piece, piece_len);
		w->path_len += piece_len;
		name += n;
		len -= n;
	}
	return true;
}

/* Reads a file, and computes its hash. w->content then holds the part for the report; *size_io is
 * the number of bytes read. False: it cannot be read, or is too large. */
static bool
workspace_read_file(struct walk *w, int dir, const char *name, uint64_t *size_io,
		    unsigned char digest_r[SHA256_DIGEST_LENGTH])
{
	/* Without waiting, in case it became a pipe meanwhile. */
	own_fd int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const size_t most = workspace_bounds.file_bytes;
	SHA2_CTX sum;
	struct stat st;
	uint64_t size = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (!w->content)
		w->content = malloc(most + CHUNK);
	if (!w->content)
		return false;
	SHA256Init(&sum);
	for (;;) {
		char *to = w->content + (size < most ? size : most);
		ssize_t n = w->hashed < HASH_BYTES_MAX ? read(fd, to, CHUNK) : -1;

		if (n < 0)
			return false;
		if (n == 0)
			break;
		SHA256Update(&sum, (const uint8_t *)to, (size_t)n);
		size += (uint64_t)n;
		w->hashed += (size_t)n;
	}
	SHA256Final(digest_r, &sum);
	*size_io = size;
	return true;
}

/* ---- files that are offered ---- */

/* Waits for a message of this type. 0 or -errno. Answers to questions that were given up may come
 * first. */
static int
await_message(int control, enum msg_type type, struct frame *frame_r)
{
	struct frame_reader reader;
	int r;

	frame_reader_init(&reader, FROM_SUPERVISOR);
	do {
		frame_done(frame_r);
		r = frame_reader_read(&reader, control, frame_r);
	} while (r == 0 || (r > 0 && (frame_r->msg.type == MSG_ANSWER ||
				      frame_r->msg.type == MSG_MODULE_ANSWER)));
	frame_reader_done(&reader);
	if (r > 0 && frame_r->msg.type != type)
		r = -EBADMSG;
	return r < 0 ? r : 0;
}

/* Writes size bytes of the file, unless it has become shorter or the reader ends; then fewer come
 * than were offered, and the file is not kept. */
static void
workspace_pour(int fd, uint64_t size, int pipe)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	char chunk[CHUNK];

	sigaction(SIGPIPE, &ignore, &before);
	while (size > 0) {
		ssize_t n = read(fd, chunk, size < CHUNK ? size : CHUNK), done = 0, m;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		while (done < n && ((m = write(pipe, chunk + done, (size_t)(n - done))) >= 0 ||
				    errno == EINTR))
			done += m > 0 ? m : 0;
		if (done < n)
			break;
		size -= (uint64_t)n;
	}
	sigaction(SIGPIPE, &before, NULL);
}

/* False: the file cannot be offered, and nothing was sent. */
static bool
offer_file(struct walk *w, int dir, const char *name)
{
	own_fd int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* Reserves a descriptor for the pipe: the script may have used up all others. */
	own_fd int spare = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), pipe = -1;
	struct msg msg = { .type = MSG_OFFER, .offer.path = { w->path, w->path_len } };
	struct frame answer = { 0 };
	struct stat st;

	if (spare < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > workspace_bounds.offer_bytes)
		return false;
	close(give_fd(spare));
	msg.offer.size = (uint64_t)st.st_size;
	w->told++;
	w->error = frame_send(w->control, &msg, NULL, 0);
	if (w->error == 0)
		w->error = await_message(w->control, MSG_PULL, &answer);
	if (w->error == 0 && answer.msg.pull.wanted) {
		pipe = frame_take_fd(&answer, 0);
		if (pipe >= 0)
			workspace_pour(fd, msg.offer.size, pipe);
		own_fd_close(&pipe);
		w->error = await_message(w->control, MSG_PULLED, &answer);
	}
	frame_done(&answer);
	return true;
}

static bool
is_older(const struct walk *w, const struct stat *st)
{
	return st->st_ctim.tv_sec < w->since.tv_sec ||
	       (st->st_ctim.tv_sec == w->since.tv_sec &&
		st->st_ctim.tv_nsec < w->since.tv_nsec);
}

static bool
workspace_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void
tell_file(struct walk *w, int dir, const char *name, const struct stat *st)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct msg msg = { .type = MSG_LEFT,
			   .left = { .path = { w->path, w->path_len },
				     .size = (uint64_t)st->st_size,
				     .has_given = is_input(st), .given = is_input(st),
				     .sha256 = { (const char *)digest, sizeof(digest) } } };

	if (w->may_offer && !msg.left.given &&
	    ((uint64_t)st->st_size > workspace_bounds.file_bytes ||
	     (uint64_t)st->st_size > workspace_bounds.bytes - w->kept) &&
	    offer_file(w, dir, name))
		return;
	if ((uint64_t)st->st_size <= HASH_BYTES_MAX - w->hashed)
		msg.left.has_sha256 = workspace_read_file(w, dir, name, &msg.left.size, digest);
	if (msg.left.has_sha256 && msg.left.size <= workspace_bounds.file_bytes &&
	    msg.left.size <= workspace_bounds.bytes - w->kept) {
		msg.left.has_data = true;
		msg.left.data = (struct msg_bin){ w->content, msg.left.size };
		w->kept += msg.left.size;
	}
	w->error = frame_send(w->control, &msg, NULL, 0);
	w->told++;
}

/* FNV-1a of the path with each number as one character. */
static uint32_t
series_of(const char *path)
{
	uint32_t hash = 2166136261U;

	for (const char *at = path; *at; at++) {
		bool digit = *at >= '0' && *at <= '9';

		if (digit && at > path && at[-1] >= '0' && at[-1] <= '9')
			continue;
		hash = (hash ^ (unsigned char)(digit ? '#' : *at)) * 16777619U;
	}
	return hash;
}

/* Notes the file at w->path. Without memory it is only counted. */
static void
add_found(struct walk *w, const struct stat *st, unsigned int depth)
{
	struct found *found = w->found;

	if ((w->n_found & (w->n_found - 1)) == 0)
		found = reallocarray(w->found, w->n_found ? 2 * w->n_found : 1, sizeof(*found));
	if (!found) {
		w->more++;
		return;
	}
	w->found = found;
	found[w->n_found] = (struct found){ .path = strdup(w->path), .st = *st, .depth = depth,
					    .series = series_of(w->path) };
	if (found[w->n_found].path)
		w->n_found++;
	else
		w->more++;
}

static bool
is_wanted(const struct walk *w, const struct stat *st)
{
	return S_ISREG(st->st_mode) && !is_older(w, st) &&
	       !(w->script && workspace_is_same(st, w->script));
}

static void walk_directory(struct walk *w, int dir, unsigned int depth);

static void
walk_entry(struct walk *w, int dir, const char *name, unsigned int depth, bool folders)
{
	size_t path_len = w->path_len, len = strlen(name);
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (folders ? !S_ISDIR(st.st_mode) || depth >= DEPTH_MAX : !is_wanted(w, &st)))
		return;
	if (path_len + 1 + len > PATH_TEXT_MAX) {
		w->more++;
		return;
	}
	if (path_len > 0)
		w->path[w->path_len++] = '/';
	memcpy(w->path + w->path_len, name, len + 1);
	w->path_len += len;
	if (folders) {
		own_fd int below =
			openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below >= 0)
			walk_directory(w, below, depth + 1);
	} else {
		add_found(w, &st, depth);
	}
	w->path[w->path_len = path_len] = '\0';
}

/* One pass over the entries of a directory: its files, or its folders. dir is borrowed. */
static void
walk_entries(struct walk *w, int dir, unsigned int depth, bool folders)
{
	struct entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char list[4096];
	long n;

	while ((n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (char *at = list; at < list + n; at += ((struct entry *)(void *)at)->len) {
			if (!folders && ++w->entries > ENTRIES_MAX)
				return;
			walk_entry(w, dir, ((struct entry *)(void *)at)->name, depth, folders);
		}
}

/* A directory's files come before those of its folders, in case there are too many. */
static void
walk_directory(struct walk *w, int dir, unsigned int depth)
{
	walk_entries(w, dir, depth, false);
	if (w->entries <= ENTRIES_MAX && lseek(dir, 0, SEEK_SET) == 0)
		walk_entries(w, dir, depth, true);
}

static int
compare_series(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	return a->series != b->series ? (a->series > b->series) - (a->series < b->series)
				      : strcmp(a->path, b->path);
}

/* What is likely to matter comes first: what the caller has not sent, what is not one of many that
 * differ by a number, what lies near the root, what is small enough to be sent, and what is new. */
static int
compare_found(const void *left, const void *right)
{
	const struct found *a = left, *b = right;
	const off_t small = (off_t)workspace_bounds.file_bytes;

	if (is_input(&a->st) != is_input(&b->st))
		return is_input(&a->st) ? 1 : -1;
	if (a->is_one_of_many != b->is_one_of_many)
		return a->is_one_of_many ? 1 : -1;
	if (a->depth != b->depth)
		return a->depth > b->depth ? 1 : -1;
	if ((a->st.st_size > small) != (b->st.st_size > small))
		return a->st.st_size > small ? 1 : -1;
	if (a->is_one_of_many)
		return strcmp(a->path, b->path);
	if (a->st.st_mtim.tv_sec != b->st.st_mtim.tv_sec)
		return a->st.st_mtim.tv_sec < b->st.st_mtim.tv_sec ? 1 : -1;
	if (a->st.st_mtim.tv_nsec != b->st.st_mtim.tv_nsec)
		return a->st.st_mtim.tv_nsec < b->st.st_mtim.tv_nsec ? 1 : -1;
	return strcmp(a->path, b->path);
}

static void
sort_found(struct walk *w)
{
	if (w->n_found == 0)	/* found may be NULL, which qsort must not get */
		return;
	qsort(w->found, w->n_found, sizeof(*w->found), compare_series);
	for (size_t i = 0, n; i < w->n_found; i += n) {
		for (n = 1; i + n < w->n_found && w->found[i + n].series == w->found[i].series;)
			n++;
		for (size_t k = i; k < i + n; k++)
			w->found[k].is_one_of_many = n > MANY;
	}
	qsort(w->found, w->n_found, sizeof(*w->found), compare_found);
}

/* Reports a file that was found. The folders above it are opened one by one, because one of them
 * may have become a link meanwhile. root is borrowed. */
static void
tell_found(struct walk *w, int root, const struct found *found)
{
	own_fd int below = -1;
	char *name = found->path, *slash;
	int dir = root;

	if (w->told == workspace_bounds.files || !quote_path(w, found->path)) {
		w->more++;
		return;
	}
	for (; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		dir = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		own_fd_close(&below);
		below = dir;
	}
	tell_file(w, dir, name, &found->st);
}

/* Making a name in a directory changes its times and, in a tmpfs, its size. Two changes within
 * one tick of the clock still change the size. */
static bool
is_untouched(const char *root, const struct stat *script)
{
	struct stat now;

	if (script && (lstat(WORKSPACE_SCRIPT, &now) < 0 || !workspace_is_same(&now, script)))
		return false;
	return empty.st_nlink > 0 && lstat(root, &now) == 0 && workspace_is_same(&now, &empty);
}

int
workspace_tell(const char *root, int control, const struct timespec *since,
	       const struct stat *script, bool may_offer)
{
	struct walk w = { .control = control, .script = script,
			  .may_offer = may_offer && workspace_bounds.offer_bytes > 0 };
	own_fd int dir = -1;

	if (is_untouched(root, script))
		return 0;
	dir = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return 0;
	if (since != NULL)
		w.since = *since;
	walk_directory(&w, dir, 0);
	sort_found(&w);
	for (size_t i = 0; i < w.n_found; i++) {
		if (w.error == 0)
			tell_found(&w, dir, &w.found[i]);
		free(w.found[i].path);
	}
	free(w.found);
	free(w.content);
	if (w.told > 0)
		workspace_written();
	if (w.error == 0 && (w.more > 0 || w.entries > ENTRIES_MAX)) {
		struct msg msg = { .type = MSG_LEFT_MORE,
				   .left_more.more = w.more > 0 ? w.more : 1 };

		w.error = frame_send(control, &msg, NULL, 0);
	}
	return w.error;
}
