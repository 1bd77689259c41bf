/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a client. The first two bytes are the sizes of the pieces in which it comes; the
 * rest is the stream. If the low three bits of the second byte are set, a byte 1 of the stream
 * stands for so many blanks that its line must wait for its turn. That is slow, so it is rare. The
 * target asserts:
 *
 * - The client gets the same bytes as when each line is handed to mcp_stream_line().
 * - A line that is too long ends the stream; nothing after it is read.
 * - A first line that brings a file is refused in one line, since no files are kept here.
 * - Nothing of the stream remains. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/rota.h"
#include "mcp/catalog.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"
#include "mcp/stream.h"
#include "policy/config.h"
#include "proto/codec.h"
#include "supervisor/stream.h"
#include "tests/unit/tools/fake_engine.h"

#define BLANKS JSONRPC_LONG
#define LINE_MAX_BYTES (BLANKS + 400)
#define STREAM_MAX 16384
#define LONG_LINES 2		/* of them in one stream */
#define QUIET_TURNS 6		/* without a byte: all answers have come */

static struct {
	struct config *config;
	struct loop *loop;
	struct engine *engine;
	struct mcp *mcp;
	struct rota *rota;
	struct stream_set *set;
} rig;

static void
set_up(void)
{
	static const struct catalog nothing;
	struct engine_options engine;
	struct mcp_options mcp;
	struct stream_options streams;

	log_init(LOG_CRIT);
	rig.config = config_new();
	rig.config->service.line_max = LINE_MAX_BYTES;
	rig.loop = loop_new(false);
	engine = (struct engine_options){ .base = loop_base(rig.loop), .config = rig.config };
	MUST(engine_new(&engine, &rig.engine) == 0);
	mcp = (struct mcp_options){ .base = loop_base(rig.loop), .engine = rig.engine,
				    .config = rig.config, .catalog = &nothing };
	rig.mcp = mcp_new(&mcp);
	rig.rota = rota_new(loop_base(rig.loop));
	streams = (struct stream_options){ .loop = rig.loop, .mcp = rig.mcp,
					     .engine = rig.engine, .config = rig.config,
					     .rota = rig.rota };
	rig.set = stream_set_new(&streams);
}

static void
add(struct codec_buffer *to, const void *bytes, size_t len)
{
	to->at = realloc(to->at, to->len + len + 1);
	MUST(to->at);
	memcpy(to->at + to->len, bytes, len);
	to->len += len;
}

static void
put_blanks(struct rest rest, unsigned int most, struct codec_buffer *stream)
{
	static char blanks[BLANKS];
	unsigned int n = 0;

	memset(blanks, ' ', sizeof(blanks));
	for (; rest.len > 0; (void)rest_byte(&rest))
		if (*rest.at == 1 && n++ < most)
			add(stream, blanks, sizeof(blanks));
		else
			add(stream, rest.at, 1);
}

/* ---- line by line ---- */

static void
on_send(void *arg, char *line, size_t len, bool may_drop)
{
	(void)may_drop;
	add(arg, line, len);
	free(line);
}

static void
on_idle(void *arg)
{
	(void)arg;
}

static bool
on_hold(void *arg, size_t bytes)
{
	(void)arg;
	return bytes > 0;
}

static void
on_let_go(void *arg, size_t bytes)
{
	(void)arg;
	(void)bytes;
}

static void
hand_over(struct rest rest, struct codec_buffer *answers)
{
	const struct mcp_stream_watcher watcher = { on_send, on_idle, on_hold, on_let_go, answers };
	struct tenant *tenant = engine_tenant(rig.engine, 1000);
	struct mcp_stream *stream = mcp_stream_new(rig.mcp, tenant, &watcher);
	char text[96];

	while (rest.len > 0) {
		struct rest line = rest_line(&rest);

		if (line.len > LINE_MAX_BYTES) {
			snprintf(text, sizeof(text), "a line is longer than %d bytes",
				 LINE_MAX_BYTES);
			mcp_stream_refuse(stream, text);
			break;
		}
		if (line.len > 0 && line.at[line.len - 1] == '\r')
			line.len--;
		mcp_stream_line(stream, (const char *)line.at, line.len);
	}
	for (int i = 0; i < QUIET_TURNS; i++)
		event_base_loop(loop_base(rig.loop), EVLOOP_NONBLOCK);
	mcp_stream_free(stream);
	tenant_release(tenant);
}

/* ---- in pieces ---- */

static bool
hear(int fd, struct codec_buffer *answers)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0)
		add(answers, bytes, (size_t)n);
	return n > 0;
}

static void
hear_all(int fd, struct codec_buffer *answers)
{
	for (int quiet = 0; quiet < QUIET_TURNS;) {
		event_base_loop(loop_base(rig.loop), EVLOOP_NONBLOCK);
		quiet = hear(fd, answers) ? 0 : quiet + 1;
	}
}

/* The socket of a refused client is closed. */
static void
write_all(int fd, struct rest piece, struct codec_buffer *answers)
{
	while (piece.len > 0) {
		ssize_t n = send(fd, piece.at, piece.len, MSG_NOSIGNAL);

		MUST(n >= 0 || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
		(void)rest_take(&piece, n >= 0 ? (size_t)n : errno == EAGAIN ? 0 : piece.len);
		event_base_loop(loop_base(rig.loop), EVLOOP_NONBLOCK);
		(void)hear(fd, answers);
	}
}

static void
send_in_pieces(struct rest rest, uint8_t most, uint8_t step, struct codec_buffer *answers)
{
	size_t scale = 1 + rest.len / 128;
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(stream_open(rig.set, pair[0], pair[0], false, 1000) == 0);
	for (size_t i = 0; rest.len > 0; i++) {
		size_t len = most ? 1 + (i * step + most) * scale % (most * scale) : rest.len;
		struct rest piece = rest_take(&rest, len);

		write_all(pair[1], piece, answers);
	}
	shutdown(pair[1], SHUT_WR);
	hear_all(pair[1], answers);
	close(pair[1]);
	for (int i = 0; i < 100 && stream_set_count(rig.set) > 0; i++)
		event_base_loop(loop_base(rig.loop), EVLOOP_NONBLOCK);
	MUST(stream_set_count(rig.set) == 0);
}

static bool
begins(const struct codec_buffer *text, const char *with)
{
	return text->len >= strlen(with) && memcmp(text->at, with, strlen(with)) == 0;
}

static bool
is_one_refusal(const struct codec_buffer *got)
{
	return begins(got, "{\"error\":\"") &&
	       memchr(got->at, '\n', got->len) == got->at + got->len - 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec_buffer stream = { 0 }, want = { 0 }, got = { 0 };
	struct rest rest = { data, size };
	uint8_t most = rest_byte(&rest), step = rest_byte(&rest);

	if (size > STREAM_MAX)
		return 0;
	if (!rig.set)
		set_up();
	put_blanks(rest, step % 8 == 7 ? LONG_LINES : 0, &stream);
	rest = (struct rest){ stream.at, stream.len };
	hand_over(rest, &want);
	send_in_pieces(rest, most, step, &got);
	MUST((want.len == got.len && (want.len == 0 || memcmp(want.at, got.at, want.len) == 0)) ||
	     (begins(&stream, "PUT ") && is_one_refusal(&got)));
	MUST(want.len == 0 || want.at[want.len - 1] == '\n');
	MUST(fake_engine_record()->tenants_held == 0);
	free(stream.at);
	free(want.at);
	free(got.at);
	return 0;
}
