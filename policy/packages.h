/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which packages may be installed, by the rules of [packages] and the verdict about the
 * tool. The decision is about the result of a resolver. Pure: no I/O. Approvals are not looked for
 * here: the caller does this if the verdict is POLICY_APPROVE.
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

/* One package of a resolved set; the set includes dependencies. All texts are borrowed, and
 * hostile. */
struct package {
	const char *name;	/* normalised: requirement_normalise */
	const char *version;	/* PEP 440 */
	const char *hash;	/* "sha256:" and 64 hex digits; NULL: not known */
	const char *index;	/* base URL of its index; NULL: none */
	const char *url;	/* of a direct reference (URL, VCS, path); NULL: none */
	uint64_t size;		/* bytes of the file; 0: not known */
	bool built;		/* it is built from source: hash and size are those of the source */
};

/* The values of [packages] build, in the order of the key's choices. */
enum packages_build { PACKAGES_BUILD_DENY = 1, PACKAGES_BUILD_ALLOW };

/* Is this URL, of an index or a direct reference, that of a single wheel? */
bool packages_is_wheel_url(const char *url);

/* May a requirement be requested? This is checked before it is resolved. It is refused if [policy]
 * install_package is deny, or if [packages] deny has every version of the package. A direct
 * reference needs [packages] allow_urls, and must be the URL of a wheel. This URL must have the
 * scheme, host and port of an index, or be an https URL on a host of [packages] file_hosts. 0, or
 * -EACCES with why_r. */
int packages_check_requirement(const struct config *config,
			       const struct requirement *requirement, struct why *why_r);

/* Do the lists and verdicts allow every package without an approval? False if [packages] deny has
 * any word, or advisories_deny is set. The other rules, such as those about hashes and the size of
 * a set, still apply. */
bool packages_allows_all(const struct config *config);

/* The strictest of the verdicts about the packages; never POLICY_UNSAID. each_r: room for n
 * verdicts, one for each package; may be NULL. why_r: with POLICY_DENY and POLICY_APPROVE, the
 * package and the rule that decided. A further package or deny rule never makes the verdict less
 * strict. */
enum policy_verdict packages_decide(const struct config *config,
				    const struct package *package, size_t n,
				    enum policy_verdict *each_r, struct why *why_r);

/* The well-known name that this name could be mistaken for, static; NULL: none. It is used for a
 * warning to approvers. name: normalised. */
const char *packages_look_alike(const char *name);

/* Is it the name of a package that everybody knows? name: normalised. */
bool packages_is_well_known(const char *name);

/* Does [packages] allow name this package, with versions or without? name: normalised. */
bool packages_allows(const struct config *config, const char *name);

/* Could this name be mistaken for the known one? Both are normalised. */
bool packages_are_alike(const char *name, const char *known);

/* The verdict about a package whose version is not known yet: POLICY_DENY if no version of it is
 * allowed, POLICY_ALLOW if every version is, otherwise POLICY_APPROVE. Its dependencies, which are
 * not known either, may have a stricter verdict. name: normalised. */
enum policy_verdict packages_expect(const struct config *config, const char *name);

#endif
