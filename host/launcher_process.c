/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the launcher.
 * Owns:    descriptors of the outer namespace and of the programs; the list of processes that it
 * started.
 * Reads:   LAUNCH, ADOPT and LEARN, from the supervisor, which a client may have taken over: they
 * hold numbers, a mask and the name of a profile, and each is checked against the launcher's own
 * tables and the configuration. Any other message ends the launcher. */
#include "host/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/passrights.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "host/fence.h"
#include "host/helper.h"
#include "host/launch.h"
#include "host/programs.h"
#include "host/secret.h"
#include "policy/config.h"
#include "policy/learnable.h"
#include "proto/frame.h"

/* One program of the table. */
struct row {
	struct launch_program program;	/* fd -1: no program */
	struct msg first;		/* sent before the supervisor can send anything */
	const struct config *learned;	/* held, because first borrows its texts; NULL: they are
					 * those of options->config */
	int *alive;			/* pidfds; -1: free */
	size_t alive_max;
};

struct launcher_process {
	const struct launcher_options *options;
	pid_t supervisor;
	int socket;
	struct row zygote[CONFIG_PROFILES_MAX], keeper, egress, tools;
	unsigned int n_zygotes;
	const char *zygote_argv[CONFIG_PROFILES_MAX][7];
};

/* ---- the table ---- */

static const char *const keeper_argv[] = { "mcp-python-keeper", NULL };
static const char *const egress_argv[] = { "mcp-python-egress", NULL };
static const char *const tools_argv[] = { "mcp-python-tools", NULL };

static struct msg_strs
strs_of(const struct config_list *list)
{
	struct msg_strs strs = { xcalloc(list->n + 1, sizeof(*strs.item)), list->n };

	for (size_t i = 0; i < list->n; i++)
		strs.item[i] = msg_str(list->item[i]);
	return strs;
}

static struct msg
launcher_process_configure(const struct launcher_options *options,
			   const struct config_profile *profile)
{
	const struct results_limits *results = &options->config->limits.standard.results;
	struct msg_strs learnable = strs_of(&options->config->pool.learn);

	learnable.n = learnable_count(options->config);
	return (struct msg){ .type = MSG_CONFIGURE, .configure = {
		.profile = msg_str(profile->name),
		.modules = strs_of(&profile->modules),
		.paths = strs_of(&profile->paths),
		.memory_bytes = options->config->limits.standard.memory_bytes,
		.disk_bytes = config_disk_bytes(options->config, profile),
		.disk_inodes = profile->disk_inodes,
		.volume_bytes = options->config->folder.is_writable ? INT64_MAX
			: options->config->workspace.volume
			? options->config->workspace.volume_bytes : 0,
		.folder = options->config->folder.path != NULL,
		.displays = results->displays,
		.picture_pixels = results->picture_pixels,
		.display_bytes = results->display_bytes,
		.left_files = results->files,
		.left_file_bytes = results->file_bytes,
		.left_bytes = results->files_bytes,
		.left_offer_bytes = options->config->files.directory
			? options->config->files.file_bytes : 0,
		.memory_counted = options->memory_counted,
		.terminals = profile->terminals,
		.processors = (options->config->limits.cpu_percent + 99) / 100,
		.learnable = learnable,
	} };
}

/* The words of a command hold no blank. */
static struct msg_str
launcher_joined(const struct config_list *words)
{
	size_t size = 0, len = 0;
	char *text;

	for (size_t i = 0; i < words->n; i++)
		size += strlen(words->item[i]) + 1;
	text = xcalloc(1, size + 1);
	for (size_t i = 0; i < words->n; i++)
		len += (size_t)sprintf(text + len, "%s%s", i > 0 ? " " : "", words->item[i]);
	return (struct msg_str){ text, len };
}

static struct msg
configure_tools(const struct config *config)
{
	const size_t n = config->n_tools + 1, size = sizeof(struct msg_str);
	struct msg_strs names = { xcalloc(n, size), 0 }, commands = { xcalloc(n, size), 0 };
	struct msg_strs urls = { xcalloc(n, size), 0 }, ca_files = { xcalloc(n, size), 0 };
	struct msg_strs headers = { xcalloc(n, size), 0 }, token_urls = { xcalloc(n, size), 0 };
	struct msg_strs client_ids = { xcalloc(n, size), 0 }, scopes = { xcalloc(n, size), 0 };

	for (size_t i = 0; i < config->n_tools; i++) {
		const struct config_tools *tools = &config->tools[i];

		names.item[names.n++] = msg_str(tools->name);
		commands.item[commands.n++] = launcher_joined(&tools->command);
		urls.item[urls.n++] = msg_str(tools->url ? tools->url : "");
		ca_files.item[ca_files.n++] = msg_str(tools->ca_file ? tools->ca_file : "");
		headers.item[headers.n++] =
			msg_str(tools->credential_header ? tools->credential_header : "");
		token_urls.item[token_urls.n++] =
			msg_str(tools->oauth_token_url ? tools->oauth_token_url : "");
		client_ids.item[client_ids.n++] =
			msg_str(tools->oauth_client_id ? tools->oauth_client_id : "");
		scopes.item[scopes.n++] = launcher_joined(&tools->oauth_scope);
	}
	return (struct msg){ .type = MSG_TOOLS_CONFIGURE, .tools_configure = {
		.names = names, .commands = commands, .urls = urls, .ca_files = ca_files,
		.headers = headers, .token_urls = token_urls, .client_ids = client_ids,
		.scopes = scopes } };
}

static struct msg
configure_egress(const struct config *config)
{
	const size_t n = config->n_secrets + 1, size = sizeof(struct msg_str);
	struct msg_strs names = { xcalloc(n, size), 0 }, hosts = { xcalloc(n, size), 0 };
	struct msg_strs headers = { xcalloc(n, size), 0 }, ca_files = { xcalloc(n, size), 0 };
	const char *nameserver = config->network.nameserver;

	for (size_t i = 0; i < config->n_secrets; i++) {
		const struct config_secret *secret = &config->secret[i];

		names.item[names.n++] = msg_str(secret->name);
		hosts.item[hosts.n++] = msg_str(secret->host);
		headers.item[headers.n++] = msg_str(secret->header);
		ca_files.item[ca_files.n++] = msg_str(secret->ca_file ? secret->ca_file : "");
	}
	return (struct msg){ .type = MSG_EGRESS_CONFIGURE, .egress_configure = {
		.has_nameserver = nameserver != NULL, .nameserver = msg_str(nameserver),
		.names = names, .hosts = hosts, .headers = headers, .ca_files = ca_files } };
}

/* users: how many processes of the program may be in use at the same time. */
static void
fill_row(struct row *row, int fd, const char *const *argv, enum launch_as as,
	 const struct msg *first, size_t users)
{
	*row = (struct row){ .program = { fd, argv, as }, .first = *first,
			     .alive_max = users * LAUNCHER_ALIVE_MAX };
	row->alive = xcalloc(row->alive_max, sizeof(*row->alive));
	for (size_t i = 0; i < row->alive_max; i++)
		row->alive[i] = -1;
}

/* fd: of the profile's own worker; -1: it has none. */
static void
fill_zygote(struct launcher_process *l, unsigned int i, const struct config *config,
	    const struct config_profile *profile, int fd)
{
	const struct launcher_options *options = l->options;
	const struct msg first = launcher_process_configure(options, profile);
	const struct config_interpreter *interpreter = config_interpreter_of(config, profile);
	const bool learns = !profile->zygote_per_tenant && learnable_count(options->config) > 0;
	const char **argv = l->zygote_argv[i];

	*argv++ = "mcp-python-worker";
	*argv++ = "--zygote";
	if (interpreter != NULL && interpreter->root != NULL) {
		*argv++ = "--root";
		*argv++ = interpreter->root;
	}
	if (interpreter != NULL && interpreter->program != NULL) {
		*argv++ = "--program";
		*argv++ = interpreter->program;
	}
	*argv = NULL;
	fill_row(&l->zygote[i], fd >= 0 ? fd : options->worker_fd, l->zygote_argv[i],
		 LAUNCH_ROOT_OF_OUTER, &first,
		 1 + learns +
			 (profile->zygote_per_tenant
				  ? options->config->pool.tenant_zygotes_max : 0));
}

static void
fill_table(struct launcher_process *l)
{
	const struct launcher_options *options = l->options;
	const struct config *config = options->config;
	const char *store = config->packages.store, *files = config->files.directory;
	const char *folder = config->folder.path;
	const char *volumes = config->workspace.volume ? config->workspace.directory : NULL;
	const struct msg keep = { .type = MSG_KEEP, .keep = {
		.has_store = store != NULL, .store = msg_str(store),
		.has_files = files != NULL, .files = msg_str(files),
		.has_volumes = volumes != NULL, .volumes = msg_str(volumes),
		.has_folder = folder != NULL, .folder = msg_str(folder),
		.folder_writable = config->folder.is_writable } };
	const struct msg network = configure_egress(config);
	const struct msg tools = configure_tools(config);

	for (l->n_zygotes = 0; l->n_zygotes < config->n_profiles; l->n_zygotes++)
		fill_zygote(l, l->n_zygotes, config, &config->profile[l->n_zygotes],
			    options->interpreter_fd ? options->interpreter_fd[l->n_zygotes] : -1);
	fill_row(&l->keeper, options->keeper_fd, keeper_argv,
		 LAUNCH_ROOT_OF_OUTER, &keep, 1);
	fill_row(&l->egress, options->egress_fd, egress_argv, LAUNCH_STRANGER, &network, 1);
	fill_row(&l->tools, options->tools_fd, tools_argv, LAUNCH_SECOND_STRANGER, &tools, 1);
}

/* NULL: no such program. */
static struct row *
launcher_process_find_row(struct launcher_process *l, const struct msg_launch *asked)
{
	uint32_t profiles = asked->kind == LAUNCH_ZYGOTE ? l->n_zygotes : 1;
	struct row *row = NULL;

	if (asked->profile >= profiles)
		return NULL;
	switch ((enum launch_kind)asked->kind) {
	case LAUNCH_ZYGOTE:
		row = &l->zygote[asked->profile];
		break;
	case LAUNCH_KEEPER:
		row = &l->keeper;
		break;
	case LAUNCH_EGRESS:
		row = &l->egress;
		break;
	case LAUNCH_TOOLS:
		row = &l->tools;
		break;
	case LAUNCH_KIND_COUNT:
		break;
	}
	return row != NULL && row->program.fd >= 0 ? row : NULL;
}

/* A free slot, or NULL when too many processes live. */
static int *
launcher_process_find_place(struct row *row)
{
	for (size_t i = 0; i < row->alive_max; i++) {
		struct pollfd ended = { .fd = row->alive[i], .events = POLLIN };

		/* The pidfd of a process that has ended is readable. */
		if (row->alive[i] >= 0 && poll(&ended, 1, 0) == 1) {
			close(row->alive[i]);
			row->alive[i] = -1;
		}
		if (row->alive[i] < 0)
			return &row->alive[i];
	}
	return NULL;
}

/* ---- LAUNCH ---- */

#define TROUBLE_MAX 160		/* bytes of a sentence why a secret cannot be used */

/* A setting that names the file of a secret. */
struct secret_file {
	const char *event;		/* of the log */
	const char *kind, *name, *key;	/* [kind name] key */
	const char *path;		/* NULL: there is none */
	const char *so;			/* what does not happen without it */
};

/* Reads the secret. If that fails, the log names the file; trouble does not, because scripts can
 * read it. */
static void
read_secret(const struct secret_file *file, char *secret, char *trouble)
{
	struct log_quoted quoted;
	int r;

	*secret = *trouble = '\0';
	if (!file->path)
		return;
	r = secret_read(file->path, secret);
	if (r == 0)
		return;
	snprintf(trouble, TROUBLE_MAX, "its %s cannot be used: %s", file->key, strerror(-r));
	log_line(LOG_ERR, file->event, "section=\"%s %s\" key=%s file=%s err=%s text=\"%s\"",
		 file->kind, file->name, file->key,
		 log_quote(&quoted, file->path, strlen(file->path)), strerrorname_np(-r),
		 file->so);
}

/* The credentials are read for each start, and not kept. */
static int
send_with_credentials(const struct config *config, const struct msg *first, int socket)
{
	static char secret[CONFIG_TOOLS_MAX][SECRET_MAX + 1];
	char trouble[CONFIG_TOOLS_MAX][TROUBLE_MAX];
	struct msg_str credential[CONFIG_TOOLS_MAX], why[CONFIG_TOOLS_MAX];
	struct msg msg = *first;
	int r;

	for (size_t i = 0; i < config->n_tools; i++) {
		const struct config_tools *tools = &config->tools[i];
		const bool is_oauth = tools->oauth_token_url != NULL;
		const struct secret_file file = { "tools-credential", "tools", tools->name,
			is_oauth ? "oauth_client_secret_file" : "credential_file",
			is_oauth ? tools->oauth_client_secret_file : tools->credential_file,
			"this server is not started" };

		read_secret(&file, secret[i], trouble[i]);
		credential[i] = msg_str(secret[i]);
		why[i] = msg_str(trouble[i]);
	}
	msg.tools_configure.credentials = (struct msg_strs){ credential, config->n_tools };
	msg.tools_configure.troubles = (struct msg_strs){ why, config->n_tools };
	r = frame_send_secret(socket, &msg);
	explicit_bzero(secret, sizeof(secret));
	return r;
}

/* Sends the first message of the egress proxy, with its secrets. 0 or -errno. */
static int
send_with_secrets(const struct config *config, const struct msg *first, int socket)
{
	static char secret[CONFIG_SECRETS_MAX][SECRET_MAX + 1];
	char trouble[CONFIG_SECRETS_MAX][TROUBLE_MAX];
	struct msg_str value[CONFIG_SECRETS_MAX], why[CONFIG_SECRETS_MAX];
	struct msg msg = *first;
	int r;

	for (size_t i = 0; i < config->n_secrets; i++) {
		const struct secret_file file = { "egress-secret", "secret",
			config->secret[i].name, "value_file", config->secret[i].value_file,
			"requests that ask for this secret are refused" };

		read_secret(&file, secret[i], trouble[i]);
		value[i] = msg_str(secret[i]);
		why[i] = msg_str(trouble[i]);
	}
	msg.egress_configure.values = (struct msg_strs){ value, config->n_secrets };
	msg.egress_configure.troubles = (struct msg_strs){ why, config->n_secrets };
	r = frame_send_secret(socket, &msg);
	explicit_bzero(secret, sizeof(secret));
	return r;
}

/* Puts the first message into the socket before the supervisor has its end. */
static int
say_first(const struct launcher_process *l, const struct row *row, uint64_t learned, int socket)
{
	struct msg first = row->first;
	int room = (int)codec_shape(row->first.type)->body_max + 65536;

	setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (row == &l->tools)
		return send_with_credentials(l->options->config, &row->first, socket);
	if (row == &l->egress)
		return send_with_secrets(l->options->config, &row->first, socket);
	/* Names come from the configuration alone. */
	if (first.type == MSG_CONFIGURE) {
		first.configure.bare = learned == LEARNABLE_BARE;
		first.configure.learned = learned & (first.configure.bare ? 0 : UINT64_MAX);
		first.configure.modules.n *= !first.configure.bare;
	}
	return frame_send(socket, &first, NULL, 0);
}

/* fd: pidfd, the supervisor's end of the control socket, the reading end of a pipe. The pid, or
 * -errno and *what_r. */
static pid_t
launcher_launch(const struct launcher_process *l, struct row *row, uint64_t learned, int fd[3],
		const char **what_r)
{
	own_fd int own = -1, child_end = -1, told = -1, tell = -1;
	int pair[2], *place = launcher_process_find_place(row);
	pid_t pid;
	int r;

	*what_r = "start more of them than may live at once";
	if (place == NULL)
		return -EBUSY;
	*what_r = OUTER_MAKE;
	if (l->options->outer->error < 0)
		return l->options->outer->error;
	*what_r = "make its sockets";
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	own = pair[0];
	child_end = pair[1];
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	told = pair[0];
	tell = pair[1];
	if (fcntl(own, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	*what_r = "tell it its configuration";
	r = say_first(l, row, learned, own);
	if (r < 0)
		return r;
	*what_r = "clone it";
	pid = launch_start(l->options->outer, &row->program, l->supervisor, child_end, tell,
			   &fd[0]);
	if (pid < 0)
		return pid;
	*place = fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
	fd[1] = give_fd(own);
	fd[2] = give_fd(told);
	return pid;
}

static int
on_launch(struct launcher_process *l, const struct msg_launch *asked)
{
	struct msg msg = { .type = MSG_LAUNCHED };
	struct row *row = launcher_process_find_row(l, asked);
	const char *what = "find such a program";
	int fd[3] = { -1, -1, -1 }, r;
	pid_t pid = row != NULL ? launcher_launch(l, row, asked->learned, fd, &what) : -ENOENT;

	msg.launched.error = pid < 0 ? (uint32_t)-pid : 0;
	msg.launched.pid = pid < 0 ? 0 : (uint32_t)pid;
	msg.launched.what = msg_str(pid < 0 ? what : "");
	r = frame_send(l->socket, &msg, fd, pid < 0 ? 0 : 3);
	for (size_t i = 0; i < 3; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return r;
}

/* ---- LEARN ---- */

static bool
is_text(const struct msg_str *text, const char *other)
{
	return text->len == strlen(other) && memcmp(text->at, other, text->len) == 0;
}

static unsigned int
find_zygote(const struct launcher_process *l, const char *profile)
{
	unsigned int i = 0;

	while (i < l->n_zygotes && !is_text(&l->zygote[i].first.configure.profile, profile))
		i++;
	return i;
}

static void
forget_first(struct row *row, const struct launcher_options *options)
{
	free(row->first.configure.modules.item);
	free(row->first.configure.paths.item);
	free(row->first.configure.learnable.item);
	if (row->program.fd != options->worker_fd)
		close(row->program.fd);
	config_free(row->learned);
}

/* Replaces or adds a row. Existing processes of a replaced row still count. */
static void
take_zygote(struct launcher_process *l, unsigned int i, const struct config *config,
	    const struct config_profile *profile, int fd)
{
	struct row old = l->zygote[i], *row = &l->zygote[i];

	fill_zygote(l, i, config, profile, fd);
	row->learned = config;
	if (i == l->n_zygotes) {
		l->n_zygotes++;
		return;
	}
	free(row->alive);
	row->alive = old.alive;
	row->alive_max = old.alive_max;
	forget_first(&old, l->options);
}

/* The profile's number, or -errno with why_r. */
static int
launcher_learn_profile(struct launcher_process *l, const struct msg_str *name, struct why *why_r)
{
	const struct launcher_options *options = l->options;
	const struct config *config = options->read ? options->read(options->read_arg) : NULL;
	const struct config_profile *profile = NULL;
	unsigned int place;
	int fd = -1;

	if (config == NULL)
		return why_say(why_r, -EINVAL, "", "the configuration cannot be read again");
	for (size_t i = 0; i < config->n_profiles && profile == NULL; i++)
		if (is_text(name, config->profile[i].name))
			profile = &config->profile[i];
	place = profile ? find_zygote(l, profile->name) : CONFIG_PROFILES_MAX;
	if (place == CONFIG_PROFILES_MAX) {
		config_free(config);
		return why_say(why_r, profile ? -ENOSPC : -ENOENT, "",
			       profile ? "there can be no more profiles until the next restart"
				       : "the configuration has no such profile");
	}
	if (profile->interpreter != NULL) {
		fd = programs_of_profile(config, profile, why_r);
		if (fd < 0) {
			config_free(config);
			return fd;
		}
	}
	take_zygote(l, place, config, profile, fd);
	return (int)place;
}

static int
on_learn(struct launcher_process *l, const struct msg_learn *asked)
{
	struct why why = { .text = "" };
	int place = launcher_learn_profile(l, &asked->profile, &why);
	struct msg msg = { .type = MSG_LEARNED, .learned = {
		.profile = place < 0 ? 0 : (uint32_t)place,
		.error = place < 0 ? (uint32_t)-place : 0,
		.why = msg_str(why.text) } };

	return frame_send(l->socket, &msg, NULL, 0);
}

/* ---- ADOPT ---- */

/* The parent of a process, or 0. */
static pid_t
parent_of(pid_t pid)
{
	char path[64], text[1024];
	own_fd int fd = -1;
	const char *end;
	ssize_t n;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The text before it is a name that the process has chosen. */
	end = strrchr(text, ')');
	return end != NULL && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* The pidfd is opened before the parent is looked up, and its process must be alive afterwards. So
 * pid was not used again for another process in between. */
static int
launcher_process_adopt(const struct launcher_process *l, pid_t pid)
{
	own_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return -errno;
	if (pid == getpid() || parent_of(pid) != l->supervisor)
		return -ECHILD;
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
		return -errno;
	return give_fd(pidfd);
}

static int
launcher_process_on_adopt(const struct launcher_process *l, const struct msg_adopt *asked)
{
	own_fd int pidfd = launcher_process_adopt(l, (pid_t)asked->pid);
	struct msg msg = { .type = MSG_ADOPTED,
			   .adopted.error = pidfd < 0 ? (uint32_t)-pidfd : 0 };

	return frame_send(l->socket, &msg, &pidfd, pidfd < 0 ? 0 : 1);
}

/* ---- life ---- */

/* Closes listening sockets, files and clients, which are the supervisor's alone. */
static int
keep_only_own(const struct launcher_process *l)
{
	int keep[LAUNCHER_DESCRIPTORS + 1];
	size_t n = launcher_descriptors(l->options, keep);

	keep[n++] = l->socket;
	return helper_keep(keep, n);
}

static int
launcher_process_serve(struct launcher_process *l, const struct msg *msg)
{
	if (msg->type == MSG_LAUNCH)
		return on_launch(l, &msg->launch);
	if (msg->type == MSG_ADOPT)
		return launcher_process_on_adopt(l, &msg->adopt);
	if (msg->type == MSG_LEARN)
		return on_learn(l, &msg->learn);
	return -EBADMSG;
}

void
launcher_live(const void *options, int socket, pid_t supervisor)
{
	struct launcher_process l = { .options = options, .supervisor = supervisor,
				      .socket = socket };
	struct frame_reader reader;
	struct frame frame = { 0 };
	int r = helper_settle("mcp-launcher", supervisor);

	if (r == 0)
		r = keep_only_own(&l);
	if (r == 0)
		r = fence_family();
	/* No message to the launcher may carry descriptors; an older kernel lets them arrive. */
	if (r == 0)
		passrights_set(socket, false);
	fill_table(&l);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (r == 0) {
		r = frame_reader_read(&reader, socket, &frame);
		if (r == 1)
			r = launcher_process_serve(&l, &frame.msg);
		frame_done(&frame);
	}
	helper_exit("launcher-ends", r);
}
