/* SPDX-License-Identifier: Apache-2.0 */
/* Icons of the server and its tools, for clients that show them.
 */
#ifndef MCP_ICON_H
#define MCP_ICON_H

enum icon {
	ICON_NONE,
	ICON_SERVER,
	ICON_RUN,		/* runs a script */
	ICON_SESSION,		/* runs a cell in a session */
	ICON_CHECK,		/* checks a script without running it */
	ICON_PACKAGE,
	ICON_ENVIRONMENT,	/* lists what exists */
	ICON_JOB,		/* for jobs that run in the background */
	ICON_COUNT
};

#define ICON_TYPE "image/svg+xml"

/* An SVG document, static; NULL for ICON_NONE. As a URI an icon has less than 400 bytes, because
 * lists of tools are sent often. */
const char *icon_svg(enum icon icon);

#endif
