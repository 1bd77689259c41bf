/* SPDX-License-Identifier: Apache-2.0 */
/* Network rules of the configuration, targets that scripts name, and classes of addresses. Pure: no
 * name is looked up here.
 *
 *   rule     HOST[:PORT]       one name, or one address (an IPv6 address in [...])
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

/* An IP address. family 4: only the first four bytes count; 6: all bytes; 0: no address. */
struct network_address {
	uint8_t family;
	uint8_t byte[16];
};

/* The class of an address. All except NETWORK_PUBLIC are refused, unless a range of the
 * configuration has the address. */
enum network_class {
	NETWORK_PUBLIC,
	NETWORK_LOOPBACK,
	NETWORK_PRIVATE,	/* also site-local addresses, and shared ones (of carriers) */
	NETWORK_LINK_LOCAL,
	NETWORK_METADATA,	/* services of clouds that give a machine its secrets */
	NETWORK_MULTICAST,	/* also broadcast */
	NETWORK_RESERVED,	/* unspecified, documentation, tunnels, unassigned */
	NETWORK_CLASS_COUNT
};

/* The class of an address. An IPv6 address that contains an IPv4 address (mapped, NAT64, 6to4) has
 * the class of that IPv4 address. */
enum network_class network_classify(const struct network_address *address);

/* Parses a numeric address, as inet_pton(3) does, without brackets. 0 or -EINVAL. */
int network_address_parse(const char *text, size_t len, struct network_address *address_r);
void network_address_print(const struct network_address *address,
			   char text_r[NETWORK_ADDRESS_TEXT]);

struct network_range {
	struct network_address address;
	uint8_t bits;
};

/* Parses a range. 0; or -EINVAL, also if a bit of the address after the first "bits" is set. */
int network_range_parse(const char *text, size_t len, struct network_range *range_r);

/* Is an address in a range? A mapped IPv6 address is in the range of its IPv4 address. */
bool network_range_has(const struct network_range *range,
		       const struct network_address *address);

enum network_rule_kind { NETWORK_RULE_HOST, NETWORK_RULE_SUFFIX, NETWORK_RULE_ANY };

struct network_rule {
	enum network_rule_kind kind;
	char host[NETWORK_HOST_MAX + 1];	/* in lower case; a suffix without its first dot */
	struct network_address address;		/* if HOST is an address; otherwise family 0 */
	uint16_t port;				/* 0: 80 and 443 */
	bool any_port;
};

int network_rule_parse(const char *text, size_t len, struct network_rule *rule_r);

/* The host and port that a script wants to connect to. */
struct network_target {
	char host[NETWORK_HOST_MAX + 1];	/* in lower case, without a final dot */
	struct network_address address;		/* if host is an address; otherwise family 0 */
	uint16_t port;
};

/* Parses HOST:PORT, or HOST if default_port is not 0. 0 or -EINVAL. Names that other programs could
 * read as numbers ("127.1", "0x7f000001") are refused. */
int network_target_parse(const char *text, size_t len, uint16_t default_port,
			 struct network_target *target_r);

bool network_rule_allows(const struct network_rule *rule,
			 const struct network_target *target);

#endif
