/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   versions and specifiers from scripts, clients and packages' metadata. */
#include "policy/version.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define DIGITS_MAX 18

/* A text that is read from its beginning. */
struct scan {
	const char *at, *end;
};

/* ---- reading a version ---- */

static int
version_peek(const struct scan *scan, size_t ahead)
{
	return (size_t)(scan->end - scan->at) > ahead ? (unsigned char)scan->at[ahead] : -1;
}

static bool
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool
version_is_alnum(int c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_separator(int c)
{
	return c == '.' || c == '-' || c == '_';
}

static void
version_skip_spaces(struct scan *scan)
{
	while (scan->at < scan->end && memchr(" \t\n\v\f\r", *scan->at, 6))
		scan->at++;
}

/* Takes a number of at least one digit. */
static int
version_take_number(struct scan *scan, uint64_t *number_r)
{
	uint64_t number = 0;
	int digits = 0;

	while (is_digit(version_peek(scan, 0))) {
		number = number * 10 + (uint64_t)(*scan->at++ - '0');
		digits += number != 0;
		if (digits > DIGITS_MAX)
			return -EINVAL;
	}
	*number_r = number;
	return 0;
}

/* Takes one of words (longest first), with or without a separator before it. Its index; -1:
 * none, and the scan stays. */
static int
version_take_word(struct scan *scan, const char *const *words)
{
	const char *at = scan->at + is_separator(version_peek(scan, 0));

	for (int i = 0; words[i]; i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(scan->end - at) >= len && strncasecmp(at, words[i], len) == 0) {
			scan->at = at + len;
			return i;
		}
	}
	return -1;
}

/* Takes the number behind such a word: 0 if there is none. */
static int
take_word_number(struct scan *scan, uint64_t *number_r)
{
	*number_r = 0;
	scan->at += is_separator(version_peek(scan, 0));
	return is_digit(version_peek(scan, 0)) ? version_take_number(scan, number_r) : 0;
}

static int
take_release(struct scan *scan, struct version *v)
{
	bool had_epoch = false;

	if (version_peek(scan, 0) == 'v' || version_peek(scan, 0) == 'V')
		scan->at++;
	for (;;) {
		uint64_t number;

		if (!is_digit(version_peek(scan, 0)) || v->n_release == VERSION_PARTS_MAX ||
		    version_take_number(scan, &number) < 0)
			return -EINVAL;
		if (version_peek(scan, 0) == '!' && v->n_release == 0 && !had_epoch) {
			scan->at++;
			had_epoch = true;
			v->epoch = number;
			continue;
		}
		v->release[v->n_release++] = number;
		if (version_peek(scan, 0) != '.' || !is_digit(version_peek(scan, 1)))
			return 0;
		scan->at++;
	}
}

static int
take_pre_and_post(struct scan *scan, struct version *v)
{
	static const char *const pre[] = { "alpha", "a", "beta", "b", "preview", "pre", "rc",
					   "c", NULL };
	static const char *const post[] = { "post", "rev", "r", NULL };
	static const char letters[] = "aabbrrrr";
	uint64_t number;
	int word = version_take_word(scan, pre);

	if (word >= 0) {
		v->pre = letters[word];
		if (take_word_number(scan, &v->pre_number) < 0)
			return -EINVAL;
	}
	if (version_peek(scan, 0) == '-' && is_digit(version_peek(scan, 1))) {
		scan->at++;
		if (version_take_number(scan, &number) < 0)
			return -EINVAL;
		v->post = (int64_t)number;
	} else if (version_take_word(scan, post) >= 0) {
		if (take_word_number(scan, &number) < 0)
			return -EINVAL;
		v->post = (int64_t)number;
	}
	return 0;
}

static int
take_dev(struct scan *scan, struct version *v)
{
	static const char *const dev[] = { "dev", NULL };
	uint64_t number;

	if (version_take_word(scan, dev) < 0)
		return 0;
	if (take_word_number(scan, &number) < 0)
		return -EINVAL;
	v->dev = (int64_t)number;
	return 0;
}

static int
take_local(struct scan *scan, struct version *v)
{
	size_t len = 0;

	if (version_peek(scan, 0) != '+')
		return 0;
	scan->at++;
	for (;;) {
		if (!version_is_alnum(version_peek(scan, 0)))
			return -EINVAL;
		while (version_is_alnum(version_peek(scan, 0))) {
			if (len + 2 >= sizeof(v->local))
				return -EINVAL;
			v->local[len++] = (char)tolower((unsigned char)*scan->at++);
		}
		if (!is_separator(version_peek(scan, 0)) ||
		    !version_is_alnum(version_peek(scan, 1)))
			break;
		scan->at++;
		v->local[len++] = '.';
	}
	v->local[len] = '\0';
	return 0;
}

static struct version
no_version(void)
{
	return (struct version){ .post = -1, .dev = -1 };
}

int
version_read(const char *text, size_t len, struct version *version_r)
{
	struct scan scan = { text, text + len };
	struct version v = no_version();

	if (len > VERSION_MAX)
		return -EINVAL;
	version_skip_spaces(&scan);
	if (take_release(&scan, &v) < 0 || take_pre_and_post(&scan, &v) < 0 ||
	    take_dev(&scan, &v) < 0 || take_local(&scan, &v) < 0)
		return -EINVAL;
	version_skip_spaces(&scan);
	if (scan.at < scan.end)
		return -EINVAL;
	*version_r = v;
	return 0;
}

/* ---- order ---- */

static int
version_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static uint64_t
release_part(const struct version *v, size_t i)
{
	return i < v->n_release ? v->release[i] : 0;
}

static int
compare_release(const struct version *a, const struct version *b)
{
	size_t n = a->n_release > b->n_release ? a->n_release : b->n_release;
	int r = version_order(a->epoch, b->epoch);

	for (size_t i = 0; i < n && r == 0; i++)
		r = version_order(release_part(a, i), release_part(b, i));
	return r;
}

/* The rank of a version among those of its release: 1.dev1 before 1a1, 1 after 1rc1. */
static int
pre_rank(const struct version *v)
{
	if (v->pre)
		return v->pre;
	return v->post < 0 && v->dev >= 0 ? 0 : 'z';
}

/* Numbers come after letters, and are compared by value (leading zeros were removed). */
static int
compare_labels(const char *a, size_t a_len, const char *b, size_t b_len)
{
	bool a_number = strspn(a, "0123456789") >= a_len;
	bool b_number = strspn(b, "0123456789") >= b_len;
	int r;

	if (a_number != b_number)
		return a_number ? 1 : -1;
	if (a_number) {
		for (; a_len > 1 && *a == '0'; a_len--)
			a++;
		for (; b_len > 1 && *b == '0'; b_len--)
			b++;
		if (a_len != b_len)
			return version_order(a_len, b_len);
	}
	r = memcmp(a, b, a_len < b_len ? a_len : b_len);
	return r ? r : version_order(a_len, b_len);
}

static int
compare_local(const char *a, const char *b)
{
	int r = 0;

	while (*a && *b && r == 0) {
		size_t a_len = strcspn(a, "."), b_len = strcspn(b, ".");

		r = compare_labels(a, a_len, b, b_len);
		a += a_len + (a[a_len] == '.');
		b += b_len + (b[b_len] == '.');
	}
	return r ? r : (*a != '\0') - (*b != '\0');
}

static int
compare_public(const struct version *a, const struct version *b)
{
	int r = compare_release(a, b);

	if (r == 0)
		r = version_order((uint64_t)pre_rank(a), (uint64_t)pre_rank(b));
	if (r == 0)
		r = version_order(a->pre_number, b->pre_number);
	if (r == 0)
		r = version_order((uint64_t)(a->post + 1), (uint64_t)(b->post + 1));
	if (r == 0)	/* no label sorts last, not first */
		r = version_order((uint64_t)a->dev, (uint64_t)b->dev);
	return r;
}

int
version_compare(const struct version *a, const struct version *b)
{
	int r = compare_public(a, b);

	return r ? r : compare_local(a->local, b->local);
}

bool
version_is(const char *text, size_t len, const char *expected)
{
	struct version a, b;

	return version_read(text, len, &a) == 0 &&
	       version_read(expected, strlen(expected), &b) == 0 &&
	       version_compare(&a, &b) == 0;
}

/* ---- specifiers ---- */

enum operator { OP_ARBITRARY, OP_COMPATIBLE, OP_EQUAL, OP_NOT_EQUAL, OP_AT_MOST, OP_AT_LEAST,
		OP_BELOW, OP_ABOVE, OP_COUNT };

static const char *const operators[OP_COUNT + 1] = { "===", "~=", "==", "!=", "<=", ">=", "<",
						     ">", NULL };

/* Takes the version of a specifier; wildcard: it ended with ".*". A wildcard that the operator
 * does not allow is not taken; the caller fails on it. */
static int
take_version(struct scan *scan, enum operator op, struct version *v, bool *wildcard_r)
{
	const char *begin = scan->at;
	bool equal = op == OP_EQUAL || op == OP_NOT_EQUAL;

	*v = no_version();
	*wildcard_r = false;
	if (take_release(scan, v) < 0)
		return -EINVAL;
	if (equal && version_peek(scan, 0) == '.' && version_peek(scan, 1) == '*') {
		*wildcard_r = true;
		scan->at += 2;
	} else if (take_pre_and_post(scan, v) < 0 || take_dev(scan, v) < 0 ||
		   (equal && take_local(scan, v) < 0)) {
		return -EINVAL;
	}
	if (op == OP_COMPATIBLE && v->n_release < 2)
		return -EINVAL;
	return scan->at - begin > VERSION_MAX ? -EINVAL : 0;
}

static bool
version_has_prefix(const struct version *v, const struct version *prefix)
{
	if (v->epoch != prefix->epoch)
		return false;
	for (size_t i = 0; i < prefix->n_release; i++)
		if (release_part(v, i) != prefix->release[i])
			return false;
	return true;
}

static bool
is_equal(const struct version *v, const struct version *wanted, bool wildcard)
{
	if (wildcard)
		return version_has_prefix(v, wanted);
	return *wanted->local ? version_compare(v, wanted) == 0
			      : compare_public(v, wanted) == 0;
}

static bool
is_compatible(const struct version *v, const struct version *wanted)
{
	struct version prefix = no_version();

	prefix.epoch = wanted->epoch;
	prefix.n_release = wanted->n_release - 1;
	memcpy(prefix.release, wanted->release, sizeof(prefix.release));
	return compare_public(v, wanted) >= 0 && version_has_prefix(v, &prefix);
}

/* "<1.0" does not contain pre-releases of 1.0. ">1.0" contains neither post-releases nor local
 * versions of 1.0. */
static bool
is_contained(enum operator op, const struct version *v, const struct version *wanted,
	     bool wildcard)
{
	bool is_pre = v->pre || v->dev >= 0, wants_pre = wanted->pre || wanted->dev >= 0;
	bool same = compare_release(v, wanted) == 0;

	switch (op) {
	case OP_COMPATIBLE:
		return is_compatible(v, wanted);
	case OP_EQUAL:
		return is_equal(v, wanted, wildcard);
	case OP_NOT_EQUAL:
		return !is_equal(v, wanted, wildcard);
	case OP_AT_MOST:
		return compare_public(v, wanted) <= 0;
	case OP_AT_LEAST:
		return compare_public(v, wanted) >= 0;
	case OP_BELOW:
		return version_compare(v, wanted) < 0 && !(same && is_pre && !wants_pre);
	case OP_ABOVE:
		return version_compare(v, wanted) > 0 &&
		       !(same && ((v->post >= 0 && wanted->post < 0) || *v->local));
	case OP_ARBITRARY:
	case OP_COUNT:
		break;
	}
	return false;
}

/* Takes the text behind "===", up to a character that cannot belong to it. */
static int
take_arbitrary(struct scan *scan, const char *version, bool *contained_r)
{
	const char *begin = scan->at;
	size_t len;

	while (scan->at < scan->end && !memchr(" \t\n\v\f\r;),", *scan->at, 9))
		scan->at++;
	len = (size_t)(scan->at - begin);
	if (len == 0)
		return -EINVAL;
	*contained_r = !version ||
		       (strlen(version) == len && strncasecmp(version, begin, len) == 0);
	return 0;
}

int
specifier_take(const char **at, const char *end, const char *version, bool *contained_r)
{
	struct scan scan = { *at, end };
	struct version wanted, v;
	bool wildcard;
	int op = 0, r;

	while (op < OP_COUNT && ((size_t)(end - *at) < strlen(operators[op]) ||
				 memcmp(*at, operators[op], strlen(operators[op])) != 0))
		op++;
	if (op == OP_COUNT)
		return -EINVAL;
	scan.at += strlen(operators[op]);
	version_skip_spaces(&scan);
	if (op == OP_ARBITRARY) {
		r = take_arbitrary(&scan, version, contained_r);
	} else {
		r = take_version(&scan, (enum operator)op, &wanted, &wildcard);
		if (r == 0)
			*contained_r = !version ||
				       (version_read(version, strlen(version), &v) == 0 &&
					is_contained((enum operator)op, &v, &wanted, wildcard));
	}
	*at = scan.at;
	return r;
}

int
specifiers_check(const char *text, size_t len, const char *version, bool *contained_r)
{
	struct scan scan = { text, text + len };
	bool all = true;

	while (scan.at < scan.end) {
		const char *comma = memchr(scan.at, ',', (size_t)(scan.end - scan.at));
		struct scan one = { scan.at, comma ? comma : scan.end };
		bool contained = true;

		version_skip_spaces(&one);
		if (one.at < one.end &&
		    specifier_take(&one.at, one.end, version, &contained) < 0)
			return -EINVAL;
		version_skip_spaces(&one);
		if (one.at < one.end)
			return -EINVAL;
		all = all && contained;
		scan.at = comma ? comma + 1 : scan.end;
	}
	*contained_r = all;
	return 0;
}
