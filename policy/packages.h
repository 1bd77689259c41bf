/* SPDX-License-Identifier: Apache-2.0 */
/* Which packages may be installed: a pure decision about what a resolver came up with, by
 * the rules of [packages] and the verdict about the tool. No I/O, no memory of approvals:
 * the caller looks for those when the verdict is POLICY_APPROVE.
 */
#ifndef POLICY_PACKAGES_H
#define POLICY_PACKAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/rules.h"

struct config;
struct requirement;
struct why;

/* One package of a resolved set, dependencies included; all texts borrowed, and hostile. */
struct package {
	const char *name;	/* normalised: requirement_normalise */
	const char *version;	/* PEP 440 */
	const char *hash;	/* "sha256:" and 64 hex digits; NULL: not known */
	const char *index;	/* base URL of the index that it comes from; NULL: none */
	const char *url;	/* of a direct reference (URL, VCS, path); NULL: none */
	uint64_t size;		/* bytes of the file; 0: not known */
	bool built;		/* from source, whose hash and size these are */
};

/* What [packages] build says; in the order of the key's choices. */
enum packages_build { PACKAGES_BUILD_DENY = 1, PACKAGES_BUILD_ALLOW };

/* Does this text, an index or a direct reference, name a single wheel? */
bool packages_is_wheel_url(const char *url);

/* May it be asked for at all, before anything is resolved? Refuses direct references unless
 * allow_urls, and then but for wheels of [packages] file_hosts, by https, and of the indexes'
 * own hosts; and a name that is denied whatever its version. 0, or -EACCES with why_r. */
int packages_check_requirement(const struct config *config,
			       const struct requirement *requirement, struct why *why_r);

/* Does policy let every package in, whatever it is: is there nothing that a list or somebody
 * has to say? What bounds the size of a set holds all the same. */
bool packages_allows_all(const struct config *config);

/* The strictest verdict about any of them; never POLICY_UNSAID. each_r: room for n verdicts,
 * one per package, NULL: not wanted. why_r: which package and rule made it so, with
 * POLICY_DENY and POLICY_APPROVE. Adding a package, or a deny rule, never makes it milder. */
enum policy_verdict packages_decide(const struct config *config,
				    const struct package *package, size_t n,
				    enum policy_verdict *each_r, struct why *why_r);

/* The well-known name that this one could be mistaken for, or NULL; a static string. For a
 * warning to the person who approves. name: normalised. */
const char *packages_look_alike(const char *name);

/* Could this name be mistaken for the known one? Both are normalised. */
bool packages_are_alike(const char *name, const char *known);

/* What policy says about a package whose version is not known yet: POLICY_DENY if no version of
 * it may be installed, POLICY_ALLOW if every one may, else POLICY_APPROVE. Its dependencies are
 * not known either, and may need more. name: normalised. */
enum policy_verdict packages_expect(const struct config *config, const char *name);

#endif
