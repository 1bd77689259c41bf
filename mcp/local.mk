# SPDX-License-Identifier: Apache-2.0
# mcp: from a line of JSON to a run of a tool, and back.
noinst_LIBRARIES += libmcp.a
libmcp_a_SOURCES = \
	mcp/arguments.c mcp/arguments.h \
	mcp/ask.c \
	mcp/call.c mcp/call.h \
	mcp/carrier.h \
	mcp/catalog.h \
	mcp/client_tools.c mcp/client_tools.h \
	mcp/context.c mcp/context.h \
	mcp/conversation.c mcp/conversation.h \
	mcp/conversation_parts.h \
	mcp/cursor.c mcp/cursor.h \
	mcp/dispatch.c \
	mcp/envelope.c mcp/envelope.h \
	mcp/jsonrpc.c mcp/jsonrpc.h \
	mcp/listen.c \
	mcp/lists.c \
	mcp/mcp.c mcp/mcp.h \
	mcp/methods.c mcp/methods.def \
	mcp/outcome.c mcp/outcome.h \
	mcp/parking.c mcp/parking.h \
	mcp/permission.c mcp/permission.h \
	mcp/progress.c mcp/progress.h \
	mcp/question.c mcp/question.h \
	mcp/repeat.c mcp/repeat.h \
	mcp/request.c \
	mcp/revision.c mcp/revision.h \
	mcp/request.c \
	mcp/revision_content.c \
	mcp/run.c mcp/run.h \
	mcp/run_parts.h \
	mcp/run_permission.c \
	mcp/run_questions.c \
	mcp/seal.c mcp/seal.h \
	mcp/start.c \
	mcp/stream.c mcp/stream.h \
	mcp/task.c mcp/task.h \
	mcp/tool.c mcp/tool.h \
	mcp/tool_list.c mcp/tool_list.h
libmcp_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
