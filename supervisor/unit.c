/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start; mcp-pythond --sweep.   Owns: nothing.
 * Reads:   variables that systemd sets: systemd.exec(5). */
#include "supervisor/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-login.h>

#include "base/log.h"
#include "base/own.h"
#include "host/privilege.h"
#include "host/startup.h"

bool
unit_is_system_service(void)
{
	own_mem char *unit = NULL;
	bool by_user_manager;

	if (!privilege_may_map() || !startup_is_unit())
		return false;
	by_user_manager = sd_pid_get_user_unit(0, &unit) >= 0;
	return !by_user_manager;
}

enum exit_code
unit_sweep(void)
{
	const char *result = getenv("SERVICE_RESULT"), *status = getenv("EXIT_STATUS");
	const bool hands_over = status && strtol(status, NULL, 10) == EXIT_AGAIN;
	int r;

	if (!result) {
		fputs("mcp-pythond: --sweep is for ExecStopPost= of a unit\n", stderr);
		return EXIT_USAGE;
	}
	r = strcmp(result, "success") == 0 || hands_over ? 0 : cgroup_end_service();
	if (r < 0)
		log_line(LOG_ERR, "sweep-failed", "err=%s", strerrorname_np(-r));
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}
