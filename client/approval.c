/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python approvals.   Owns: nothing.
 * Reads:   texts of tenants, hostile to a terminal. */
#include "client/approval.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/quote.h"
#include "client/admin.h"
#include "client/table.h"
#include "policy/shown.h"

/* Prints until when a refusal is in force. */
static void
print_denied(const json_t *approval)
{
	time_t until = (time_t)json_integer_value(json_object_get(approval, "denied_until"));
	char text[32];
	struct tm tm;

	if (until <= time(NULL) || !gmtime_r(&until, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("  denied until %s", text);
}

/* The user's name and number, the age, and what is asked for. */
static void
print_one(const json_t *approval)
{
	const char *tenant = admin_text(approval, "tenant"), *name = admin_name(tenant);
	const json_t *items = json_object_get(approval, "items");
	double created = admin_number(approval, "created");
	size_t n = json_array_size(items);

	printf("%s  %-8s  ", admin_text(approval, "id"), admin_text(approval, "state"));
	admin_print(stdout, name);
	if (name != tenant)
		printf(" (%s)", tenant);
	if (created > 0)
		printf(", %s ago", figure_time(difftime(time(NULL), (time_t)created)));
	printf("  ");
	admin_print(stdout, n ? json_string_value(json_array_get(items, 0)) : "");
	if (n > 1)
		printf(" and %zu more", n - 1);
	print_denied(approval);
	putchar('\n');
}

/* Prints the first line of a script, if the request has one; otherwise the first item, which for a
 * script would be only its hash. */
static void
print_request(const json_t *approval)
{
	const json_t *items = json_object_get(approval, "items");
	const char *line = admin_text(approval, "first_line");
	size_t n = json_array_size(items);

	if (*line) {
		printf("%s: ", admin_text(approval, "tool"));
		admin_print(stdout, line);
	} else {
		admin_print(stdout, n ? json_string_value(json_array_get(items, 0)) : "");
		if (n > 1)
			printf(" and %zu more", n - 1);
	}
}

static void
approval_print_row(const json_t *approval, time_t now)
{
	time_t made = (time_t)json_integer_value(json_object_get(approval, "created"));

	printf("%s  %-8s  %6s  ", admin_text(approval, "id"), admin_text(approval, "state"),
	       figure_time(difftime(now, made)));
	admin_print(stdout, admin_name(admin_text(approval, "tenant")));
	printf("  ");
	print_request(approval);
	print_denied(approval);
	putchar('\n');
}

void
approval_print_list(const json_t *list)
{
	if (json_array_size(list) == 0)
		puts("No request waits for an approval.");
	else if (isatty(STDOUT_FILENO))
		printf("%-28s  %-8s  %6s  WHO  WHAT\n", "ID", "STATE", "AGE");
	for (size_t i = 0; i < json_array_size(list); i++)
		approval_print_row(json_array_get(list, i), time(NULL));
}

/* First the tenant and the requested action, then the tenant's own words. */
void
approval_print_all(const json_t *approval)
{
	static const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, SIZE_MAX, SIZE_MAX };
	const char *reason = admin_text(approval, "reason");
	const json_t *shown = json_object_get(approval, "shown");
	const json_t *items = json_object_get(approval, "items");

	print_one(approval);
	for (size_t i = 0; i < json_array_size(items); i++) {
		printf("item: ");
		admin_print(stdout, json_string_value(json_array_get(items, i)));
		putchar('\n');
	}
	printf("\nEach line that begins with \"" SHOWN_MARK "\" is the tenant's, but for the sha256, bytes and\n"
	       "begins of files, and not_approved. What they ask for:\n\n");
	shown_write(stdout, shown, &shown_whole);
	if (*reason) {
		printf("\n\ntheir reason:\n");
		quote_block(stdout, &block, reason, strlen(reason));
	}
	putchar('\n');
}
