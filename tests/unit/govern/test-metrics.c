/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and their text: what is counted where, how bounded, and how it is written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/execution.h"
#include "engine/observer.h"
#include "engine/tenant.h"
#include "govern/metrics.h"
#include "govern/openmetrics.h"

/* ---- text ---- */

static char *
written(void (*write)(FILE *out, const void *arg), const void *arg)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	write(out, arg);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
write_samples(FILE *out, const void *arg)
{
	struct openmetrics to = { .out = out };

	(void)arg;
	openmetrics_family(&to, "x_seconds", "counter", "seconds", "Some time.");
	openmetrics_real(&to, 1.5, NULL);
	openmetrics_family(&to, "y", "info", NULL, "What.");
	openmetrics_uint(&to, UINT64_MAX, "a", "1", "b", "say \"\\\" \n\t\x7f\xc3\xa9", NULL);
	openmetrics_one(&to, "z", "gauge", NULL, "One.", 7);
	openmetrics_end(&to);
}

static void
samples_are_one_line_each(void **state)
{
	char *text = written(write_samples, NULL);

	(void)state;
	assert_string_equal(text, "# TYPE mcp_python_x_seconds counter\n"
			    "# UNIT mcp_python_x_seconds seconds\n"
			    "# HELP mcp_python_x_seconds Some time.\n"
			    "mcp_python_x_seconds_total 1.500000\n"
			    "# TYPE mcp_python_y info\n# HELP mcp_python_y What.\n"
			    "mcp_python_y_info{a=\"1\",b=\"say \\\"\\\\\\\" ?????\"} 18446744073709551615\n"
			    "# TYPE mcp_python_z gauge\n# HELP mcp_python_z One.\nmcp_python_z 7\n"
			    "# EOF\n");
	free(text);
}

static void
write_histogram(FILE *out, const void *arg)
{
	const struct openmetrics to = { .out = out, .name = "h" };

	openmetrics_histogram(&to, arg, "k", "v");
	openmetrics_histogram(&to, arg, NULL, NULL);
}

static void
histograms_are_cumulative(void **state)
{
	static const struct {
		uint64_t us;
		const char *line;	/* the first bucket that has it, and those below it */
	} cases[] = {
		{ 0, "mcp_python_h_bucket{le=\"0.001\"} 1\n" },
		{ 1000, "mcp_python_h_bucket{le=\"0.001\"} 1\n" },
		{ 1001, "mcp_python_h_bucket{le=\"0.001\"} 0\nmcp_python_h_bucket{le=\"0.0025\"} 1\n" },
		{ 1000000, "mcp_python_h_bucket{le=\"0.25\"} 0\nmcp_python_h_bucket{le=\"1.0\"} 1\n" },
		{ 3600000000, "mcp_python_h_bucket{le=\"300.0\"} 0\nmcp_python_h_bucket{le=\"3600.0\"} 1\n" },
		{ 3600000001, "mcp_python_h_bucket{le=\"3600.0\"} 0\nmcp_python_h_bucket{le=\"+Inf\"} 1\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct histogram histogram = { .sum_us = 0 };
		char *text;

		histogram_add(&histogram, cases[i].us);
		assert_int_equal(histogram_count(&histogram), 1);
		text = written(write_histogram, &histogram);
		assert_non_null(strstr(text, cases[i].line));
		assert_non_null(strstr(text, "mcp_python_h_bucket{k=\"v\",le=\"+Inf\"} 1\nmcp_python_h_count{k=\"v\"} 1\n"));
		free(text);
	}
}

static void
sums_are_exact(void **state)
{
	struct histogram histogram = { .sum_us = 0 };
	char *text;

	(void)state;
	for (int i = 0; i < 3; i++)
		histogram_add(&histogram, 1000001);
	text = written(write_histogram, &histogram);
	assert_non_null(strstr(text, "mcp_python_h_sum 3.000003\n"));
	free(text);
}

/* ---- counters ---- */

struct heard {
	unsigned int started, ended, answered, cpu_ms, connections, questions, calls;
	int verdict;		/* of on_start */
};

static int
hear_start(void *arg, const struct engine_event *event, struct why *why_r)
{
	struct heard *heard = arg;

	(void)event;
	(void)why_r;
	heard->started++;
	return heard->verdict;
}

static void
hear_end(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	(void)event;
	(void)outcome;
	((struct heard *)arg)->ended++;
}

static void
hear_answered(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	(void)event;
	(void)outcome;
	((struct heard *)arg)->answered++;
}

static uint64_t
hear_cpu(void *arg, const struct tenant *tenant, uint64_t cpu_ms)
{
	struct heard *heard = arg;

	(void)tenant;
	heard->cpu_ms += cpu_ms;
	return heard->cpu_ms < 3000 ? 3000 - heard->cpu_ms : 0;
}

static void
hear_connection(void *arg, const struct engine_connection *connection)
{
	(void)connection;
	((struct heard *)arg)->connections++;
}

static void
hear_input(void *arg, enum engine_input what)
{
	(void)what;
	((struct heard *)arg)->questions++;
}

static void
hear_tool_call(void *arg, const struct engine_tool_call *call)
{
	(void)call;
	((struct heard *)arg)->calls++;
}

struct rig {
	struct metrics *metrics;
	const struct engine_observer *front;
	struct engine_observer next;
	struct heard heard;
};

static void
set_up(struct rig *rig)
{
	*rig = (struct rig){ .metrics = metrics_new() };
	rig->next = (struct engine_observer){ hear_start, hear_end, hear_answered,
					      hear_cpu, hear_connection, hear_input,
					      hear_tool_call, &rig->heard };
	rig->front = metrics_observer(rig->metrics, &rig->next);
}

static void
run(const struct rig *rig, const char *principal, enum outcome_status status, uint64_t cpu_ms)
{
	struct tenant tenant = { .principal = (char *)principal };
	const struct engine_event event = { .tenant = &tenant, .waited_us = 10, .ran_us = 20 };
	const struct outcome outcome = { .status = status, .cpu_ms = cpu_ms };

	if (rig->front->on_start(rig->front->arg, &event, NULL) < 0)
		return;
	rig->front->on_cpu(rig->front->arg, &tenant, cpu_ms);
	rig->front->on_end(rig->front->arg, &event, &outcome);
	rig->front->on_answered(rig->front->arg, &event, &outcome);
}

static void
write_all(FILE *out, const void *arg)
{
	metrics_write(arg, true, &(struct openmetrics){ .out = out });
}

static void
assert_says(const struct rig *rig, const char *line)
{
	char *text = written(write_all, rig->metrics);

	if (!strstr(text, line))
		fail_msg("\"%s\" is not in:\n%s", line, text);
	free(text);
}

static void
everything_is_passed_on_and_counted(void **state)
{
	struct metrics_sum sum;
	struct rig rig;

	(void)state;
	set_up(&rig);
	run(&rig, "uid:1", OUTCOME_OK, 1500);
	run(&rig, "uid:1", OUTCOME_MEMORY_LIMIT, 500);
	rig.heard.verdict = -EDQUOT;
	run(&rig, "uid:1", OUTCOME_OK, 0);
	rig.heard.verdict = -EACCES;
	run(&rig, "uid:1", OUTCOME_OK, 0);
	assert_int_equal(rig.heard.started, 4);
	assert_int_equal(rig.heard.ended, 2);
	assert_int_equal(rig.heard.answered, 2);
	metrics_sum(rig.metrics, &sum);
	assert_int_equal(sum.executions, 2);
	assert_int_equal(sum.limits_hit, 1);
	assert_int_equal(sum.refused, 2);
	assert_says(&rig, "mcp_python_executions_refused_total{why=\"quota\"} 1\n");
	assert_says(&rig, "mcp_python_executions_refused_total{why=\"other\"} 1\n");
	assert_says(&rig, "mcp_python_limits_hit_total{limit=\"memory_limit\"} 1\n");
	assert_says(&rig, "mcp_python_tenant_cpu_seconds_total{tenant=\"uid:1\"} 2.000000\n");
	metrics_free(rig.metrics);
}

/* While something runs, and between cells. */
static void
processor_time_counts_when_it_is_charged(void **state)
{
	struct tenant tenant = { .principal = (char *)"uid:1" };
	struct rig rig;

	(void)state;
	set_up(&rig);
	run(&rig, "uid:1", OUTCOME_OK, 500);
	assert_int_equal(rig.front->on_cpu(rig.front->arg, &tenant, 2400), 100);
	assert_int_equal(rig.front->on_cpu(rig.front->arg, &tenant, 100), 0);
	assert_int_equal(rig.heard.cpu_ms, 3000);
	assert_says(&rig, "mcp_python_tenant_cpu_seconds_total{tenant=\"uid:1\"} 3.000000\n");
	metrics_free(rig.metrics);
}

/* Names of servers and tools have a bounded number of labels; what has no room is still counted. */
static void
calls_of_tools_are_counted(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig);
	for (int i = 0; i < METRICS_TOOLS + 20; i++) {
		char name[16];
		const struct engine_tool_call call = { "s", i ? name : NULL,
						       i ? TOOL_RETURNED : TOOL_REFUSED, 250, 7 };

		snprintf(name, sizeof(name), "t%d", i);
		rig.front->on_tool_call(rig.front->arg, &call);
		rig.front->on_tool_call(rig.front->arg, &call);
	}
	assert_int_equal(rig.heard.calls, 2 * (METRICS_TOOLS + 20));
	assert_says(&rig, "calls_total{server=\"s\",tool=\"other\",status=\"refused\"} 2\n");
	assert_says(&rig, "calls_total{server=\"s\",tool=\"t1\",status=\"ok\"} 2\n");
	assert_says(&rig, "calls_total{server=\"other\",tool=\"other\",status=\"ok\"} 40\n");
	assert_says(&rig, "call_seconds_total{server=\"s\",tool=\"t127\"} 0.500000\n");
	assert_says(&rig, "call_bytes_total{server=\"other\",tool=\"other\"} 280.000000\n");
	metrics_free(rig.metrics);
}

static void
what_never_ran_has_no_time(void **state)
{
	struct tenant tenant = { .principal = (char *)"uid:1" };
	const struct engine_event event = { .tenant = &tenant };
	const struct outcome outcome = { .status = OUTCOME_OVERLOADED };
	struct rig rig;

	(void)state;
	set_up(&rig);
	rig.front->on_end(rig.front->arg, &event, &outcome);
	assert_says(&rig, "mcp_python_executions_total{status=\"overloaded\"} 1\n");
	assert_says(&rig, "mcp_python_queue_wait_seconds_count 0\n");
	metrics_free(rig.metrics);
}

static void
refused_imports_are_counted_once_per_execution(void **state)
{
	static const char *const names[] = { "os", "ctypes" };
	struct tenant tenant = { .principal = (char *)"uid:1" };
	const struct engine_event event = { .tenant = &tenant };
	const struct outcome outcome = { .status = OUTCOME_ERROR, .refused_import = names,
					 .n_refused_imports = 2 };
	struct rig rig;

	(void)state;
	set_up(&rig);
	rig.front->on_end(rig.front->arg, &event, &outcome);
	run(&rig, "uid:1", OUTCOME_OK, 0);
	assert_says(&rig, "mcp_python_imports_refused_total 1\n");
	assert_says(&rig, "mcp_python_tenant_imports_refused_total{tenant=\"uid:1\"} 1\n");
	metrics_free(rig.metrics);
}

/* However many there are, labels are few, and nothing is lost. */
static void
labels_are_bounded(void **state)
{
	struct metrics_tenant tenant;
	char principal[32], *text;
	struct rig rig;
	size_t labels = 0;

	(void)state;
	set_up(&rig);
	for (unsigned int i = 0; i < METRICS_TENANTS + 50; i++) {
		snprintf(principal, sizeof(principal), "uid:%u", i);
		run(&rig, principal, OUTCOME_OK, 1000);
		run(&rig, principal, OUTCOME_TIMEOUT, 0);
	}
	text = written(write_all, rig.metrics);
	for (const char *at = text; (at = strstr(at, "mcp_python_tenant_executions_total{")); at++)
		labels++;
	assert_int_equal(labels, METRICS_TENANTS + 1);
	free(text);
	assert_says(&rig, "mcp_python_tenant_executions_total{tenant=\"other\"} 100\n");
	assert_says(&rig, "mcp_python_tenant_cpu_seconds_total{tenant=\"other\"} 50.000000\n");
	assert_says(&rig, "mcp_python_tenant_limits_hit_total{tenant=\"other\"} 50\n");
	assert_true(metrics_tenant(rig.metrics, "uid:0", &tenant));
	assert_int_equal(tenant.executions, 2);
	assert_false(metrics_tenant(rig.metrics, "uid:177", &tenant));
	assert_int_equal(tenant.executions, 0);
	metrics_free(rig.metrics);
}

static void
connections_are_counted(void **state)
{
	struct engine_connection connection = { .verdict = "carried", .connected = true,
						.sent = 10, .received = 20 };
	struct rig rig;

	(void)state;
	set_up(&rig);
	rig.front->on_connection(rig.front->arg, &connection);
	rig.front->on_connection(rig.front->arg, &connection);
	connection.verdict = "denied-by-rule";
	rig.front->on_connection(rig.front->arg, &connection);
	assert_int_equal(rig.heard.connections, 3);
	assert_says(&rig, "mcp_python_egress_connections_total{verdict=\"carried\"} 2\n");
	assert_says(&rig, "mcp_python_egress_connections_total{verdict=\"denied-by-rule\"} 1\n");
	assert_says(&rig, "mcp_python_egress_bytes_total{direction=\"received\"} 60\n");
	metrics_free(rig.metrics);
}

static void
questions_are_counted(void **state)
{
	static const enum engine_input told[] = { INPUT_ASKED, INPUT_LINE, INPUT_ASKED,
						  INPUT_NOBODY, INPUT_ASKED };
	struct rig rig;

	(void)state;
	set_up(&rig);
	assert_says(&rig, "mcp_python_input_asked_total 0\n");
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		rig.front->on_input(rig.front->arg, told[i]);
	assert_int_equal(rig.heard.questions, 5);
	assert_says(&rig, "mcp_python_input_asked_total 3\n");
	assert_says(&rig, "mcp_python_input_ended_total{result=\"line\"} 1\n");
	assert_says(&rig, "mcp_python_input_ended_total{result=\"nobody\"} 1\n");
	assert_says(&rig, "mcp_python_input_ended_total{result=\"declined\"} 0\n");
	rig.next.on_input = NULL;
	rig.front->on_input(rig.front->arg, INPUT_UNANSWERED);
	assert_says(&rig, "mcp_python_input_ended_total{result=\"unanswered\"} 1\n");
	metrics_free(rig.metrics);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_one_line_each),
		cmocka_unit_test(histograms_are_cumulative),
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(everything_is_passed_on_and_counted),
		cmocka_unit_test(processor_time_counts_when_it_is_charged),
		cmocka_unit_test(calls_of_tools_are_counted),
		cmocka_unit_test(what_never_ran_has_no_time),
		cmocka_unit_test(refused_imports_are_counted_once_per_execution),
		cmocka_unit_test(labels_are_bounded),
		cmocka_unit_test(connections_are_counted),
		cmocka_unit_test(questions_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
