/* SPDX-License-Identifier: Apache-2.0 */
/* Where scripts may connect to: rules of the configuration, targets that a script names,
 * and what kind of address a number is. Pure: no name is looked up here.
 *
 *   rule     HOST[:PORT]       one name, or one address ([...] around version 6)
 *            .SUFFIX[:PORT]    every name below SUFFIX, not SUFFIX itself
 *            *[:PORT]          every name and address
 *            without a port: 80 and 443; with the port "*": every port
 *   range    ADDRESS[/BITS]
 */
#ifndef POLICY_NETWORK_H
#define POLICY_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_HOST_MAX 253		/* bytes of a name */
#define NETWORK_ADDRESS_TEXT 48		/* of an address as text, NUL included */

/* family 4: the first four bytes; 6: all; 0: none. */
struct network_address {
	uint8_t family;
	uint8_t byte[16];
};

/* What an address is good for. Everything but NETWORK_PUBLIC is refused unless a range of
 * the configuration has it. */
enum network_class {
	NETWORK_PUBLIC,
	NETWORK_LOOPBACK,
	NETWORK_PRIVATE,	/* and shared, of a site, of a carrier */
	NETWORK_LINK_LOCAL,
	NETWORK_METADATA,	/* where clouds tell a machine its secrets */
	NETWORK_MULTICAST,	/* and broadcast */
	NETWORK_RESERVED,	/* unspecified, documentation, tunnels, not given out */
	NETWORK_CLASS_COUNT
};

/* Addresses of version 6 that carry one of version 4 (mapped, NAT64, 6to4) are what that
 * one is. */
enum network_class network_classify(const struct network_address *address);
const char *network_class_name(enum network_class which);	/* "public", "loopback" ... */

/* Numbers only, as inet_pton(3) takes them; no brackets. 0 or -EINVAL. */
int network_address_parse(const char *text, size_t len, struct network_address *address_r);
void network_address_print(const struct network_address *address,
			   char text_r[NETWORK_ADDRESS_TEXT]);

struct network_range {
	struct network_address address;
	uint8_t bits;
};

/* 0 or -EINVAL: also when bits of the address behind the prefix are set. */
int network_range_parse(const char *text, size_t len, struct network_range *range_r);

/* A mapped address of version 6 is in the range of version 4 that has what it carries. */
bool network_range_has(const struct network_range *range,
		       const struct network_address *address);

enum network_rule_kind { NETWORK_RULE_HOST, NETWORK_RULE_SUFFIX, NETWORK_RULE_ANY };

struct network_rule {
	enum network_rule_kind kind;
	char host[NETWORK_HOST_MAX + 1];	/* in lower case; a suffix without its dot */
	struct network_address address;		/* of a HOST that is one; else family 0 */
	uint16_t port;				/* 0: 80 and 443 */
	bool any_port;
};

int network_rule_parse(const char *text, size_t len, struct network_rule *rule_r);

/* What a script wants to reach. */
struct network_target {
	char host[NETWORK_HOST_MAX + 1];	/* in lower case, without a final dot */
	struct network_address address;		/* when it is a number; else family 0 */
	uint16_t port;
};

/* HOST:PORT, or HOST where default_port is not 0. 0 or -EINVAL: none of our own names has an odd
 * form. Names that other programs would take for numbers ("127.1", "0x7f000001") are refused. */
int network_target_parse(const char *text, size_t len, uint16_t default_port,
			 struct network_target *target_r);

bool network_rule_allows(const struct network_rule *rule,
			 const struct network_target *target);

#endif
