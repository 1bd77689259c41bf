/* SPDX-License-Identifier: Apache-2.0 */
/* serve-fake SOCKET: the whole way from a socket to the tools, over the fake engine, for
 * tests that drive a live server. Ends on SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/loop.h"
#include "base/rota.h"
#include "base/socketfile.h"
#include "base/why.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "policy/config.h"
#include "supervisor/listener.h"
#include "supervisor/stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/toolsets.h"

static void
on_signal(int number, void *arg)
{
	(void)number;
	loop_stop(arg);
}

int
main(int argc, char **argv)
{
	struct loop *loop = loop_new(false);
	struct config *config = config_new();
	struct engine_options engine_options = { .base = loop_base(loop), .config = config };
	struct mcp_options mcp_options = { .base = loop_base(loop), .config = config };
	struct stream_options stream_options = { .loop = loop, .config = config,
						   .rota = rota_new(loop_base(loop)) };
	struct catalog catalog = { 0 };
	struct stream_set *streams;
	struct listener *listener;
	struct socketfile *file;
	struct engine *engine;
	struct why why;
	int fd, r;

	config->mcp.arguments = ARGUMENTS_ALL;	/* what the schema says can be held against it */
	signal(SIGPIPE, SIG_IGN);
	if (argc != 2 || socketfile_open(argv[1], geteuid(), &file, &fd, &why) < 0) {
		fprintf(stderr, "serve-fake: %s\n", argc != 2 ? "SOCKET" : why.text);
		return 1;
	}
	engine_new(&engine_options, &engine);
	mcp_options.engine = stream_options.engine = engine;
	toolsets_add(&catalog, config);
	mcp_options.catalog = &catalog;
	stream_options.mcp = mcp_new(&mcp_options);
	streams = stream_set_new(&stream_options);
	r = listener_new(loop, fd, streams, NULL, &listener);
	if (r == 0)
		r = loop_signal(loop, SIGTERM, on_signal, loop);
	if (r == 0)
		r = loop_run(loop);
	listener_free(listener);
	stream_set_free(streams);
	rota_free(stream_options.rota);
	mcp_free(stream_options.mcp);
	engine_free(engine);
	loop_free(loop);
	socketfile_close(file);
	config_free(config);
	return r < 0;
}
