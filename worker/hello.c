/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote, and the program that starts it.   Owns: whether HELLO was sent. */
#include "worker/hello.h"

#include <stdbool.h>
#include <stddef.h>

#include "proto/frame.h"
#include "worker/zygote.h"

static bool said_hello;

int
hello_send(void)
{
	struct msg msg = { .type = MSG_HELLO, .hello.build = msg_str(PROTO_BUILD) };

	if (said_hello)
		return 0;
	said_hello = true;
	return frame_send(ZYGOTE_CONTROL, &msg, NULL, 0);
}

void
hello_fail(const char *what, int error)
{
	struct msg msg = { .type = MSG_ZYGOTE_FAILED, .zygote_failed = {
		.what = msg_str(what), .error = (uint32_t)error } };

	if (hello_send() == 0)
		frame_send(ZYGOTE_CONTROL, &msg, NULL, 0);
}
