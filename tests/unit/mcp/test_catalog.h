/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog for tests: small tools that give each kind of answer.
 *
 *   ask       asks "name" (a form with the required string name), then says "hello NAME",
 *             "declined" or "cancelled"; "refused" when the client cannot be asked
 *   ask2      asks "a" (form) and "b" (roots) at once, then "more" (form, state "s2");
 *             says both answers and the state
 *   insist    like ask, but fails with FAIL_CLIENT_LACKS when it cannot ask
 *   content   one block of each kind
 *   talk      progress 0/100, 50/100, 50/100 and 100/100, log lines debug and error, "done"
 *   fail      fails with -1234, "broken" and data
 *   hang      never ends
 *   job       must be a task; ends by itself soon
 *   job_ask   must be a task; asks like ask
 *   once      takes {"key": ...}: ends when told by test_catalog_finish
 */
#ifndef TESTS_UNIT_MCP_TEST_CATALOG_H
#define TESTS_UNIT_MCP_TEST_CATALOG_H

struct catalog;

struct test_catalog_record {
	unsigned int started, cancelled, alive;
};

extern const struct catalog test_catalog;

/* Of all runs since the last call of test_catalog_reset. */
const struct test_catalog_record *test_catalog_record(void);
void test_catalog_reset(void);

/* Ends the runs of hang and once that are alive, each with the text "finished". */
void test_catalog_finish(void);

#endif
