/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor (the configuration) and mcp-python-egress (each connection).
 * Reads:   names from scripts, hostile; names from the administrator.   Owns: nothing. */
#include "policy/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- addresses ---- */

struct block {
	uint8_t byte[16], bits;
	enum network_class which;
};

/* The first match counts; RFC 6890 and IANA's special-purpose registries. */
static const struct block blocks4[] = {
	{ { 169, 254, 169, 254 }, 32, NETWORK_METADATA },
	{ { 168, 63, 129, 16 }, 32, NETWORK_METADATA },
	{ { 100, 100, 100, 200 }, 32, NETWORK_METADATA },
	{ { 192, 0, 0, 192 }, 32, NETWORK_METADATA },
	{ { 0 }, 8, NETWORK_RESERVED },
	{ { 10 }, 8, NETWORK_PRIVATE },
	{ { 100, 64 }, 10, NETWORK_PRIVATE },
	{ { 127 }, 8, NETWORK_LOOPBACK },
	{ { 169, 254 }, 16, NETWORK_LINK_LOCAL },
	{ { 172, 16 }, 12, NETWORK_PRIVATE },
	{ { 192, 0, 0 }, 24, NETWORK_RESERVED },
	{ { 192, 0, 2 }, 24, NETWORK_RESERVED },
	{ { 192, 88, 99 }, 24, NETWORK_RESERVED },
	{ { 192, 168 }, 16, NETWORK_PRIVATE },
	{ { 198, 18 }, 15, NETWORK_RESERVED },
	{ { 198, 51, 100 }, 24, NETWORK_RESERVED },
	{ { 203, 0, 113 }, 24, NETWORK_RESERVED },
	{ { 224 }, 4, NETWORK_MULTICAST },
	{ { 255, 255, 255, 255 }, 32, NETWORK_MULTICAST },
	{ { 240 }, 4, NETWORK_RESERVED },
};

static const struct block blocks6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2, [15] = 0x54, [14] = 0x02 }, 128, NETWORK_METADATA },
	{ { [15] = 1 }, 128, NETWORK_LOOPBACK },
	{ { 0xfc }, 7, NETWORK_PRIVATE },
	{ { 0xfe, 0x80 }, 10, NETWORK_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, NETWORK_PRIVATE },
	{ { 0xff }, 8, NETWORK_MULTICAST },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, NETWORK_RESERVED },
	{ { 0x20, 0x01 }, 23, NETWORK_RESERVED },
	{ { 0x3f, 0xff }, 20, NETWORK_RESERVED },
	/* The only block of public addresses. */
	{ { 0x20 }, 3, NETWORK_PUBLIC },
	{ { 0 }, 0, NETWORK_RESERVED },
};

/* Blocks of IPv6 addresses that contain an IPv4 address, from byte number "at" on. */
static const struct {
	uint8_t byte[16], bits, at;
} carriers[] = {
	{ { [10] = 0xff, [11] = 0xff }, 96, 12 },	/* mapped */
	{ { 0, 0x64, 0xff, 0x9b }, 96, 12 },		/* NAT64 */
	{ { 0x20, 0x02 }, 16, 2 },			/* 6to4 */
};

static bool
network_has_prefix(const uint8_t *byte, const uint8_t *prefix, unsigned int bits)
{
	unsigned int rest = bits % 8;

	if (memcmp(byte, prefix, bits / 8) != 0)
		return false;
	return rest == 0 || ((byte[bits / 8] ^ prefix[bits / 8]) >> (8 - rest)) == 0;
}

static enum network_class
classify4(const uint8_t *byte)
{
	for (size_t i = 0; i < sizeof(blocks4) / sizeof(blocks4[0]); i++)
		if (network_has_prefix(byte, blocks4[i].byte, blocks4[i].bits))
			return blocks4[i].which;
	return NETWORK_PUBLIC;
}

enum network_class
network_classify(const struct network_address *address)
{
	if (address->family == 4)
		return classify4(address->byte);
	if (address->family != 6)
		return NETWORK_RESERVED;
	for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
		if (network_has_prefix(address->byte, carriers[i].byte, carriers[i].bits))
			return classify4(address->byte + carriers[i].at);
	for (size_t i = 0; i < sizeof(blocks6) / sizeof(blocks6[0]); i++)
		if (network_has_prefix(address->byte, blocks6[i].byte, blocks6[i].bits))
			return blocks6[i].which;
	return NETWORK_RESERVED;
}

int
network_address_parse(const char *text, size_t len, struct network_address *address_r)
{
	struct network_address address = { 0 };
	char copy[INET6_ADDRSTRLEN + 1];

	if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, address.byte) == 1)
		address.family = 4;
	else if (inet_pton(AF_INET6, copy, address.byte) == 1)
		address.family = 6;
	else
		return -EINVAL;
	*address_r = address;
	return 0;
}

void
network_address_print(const struct network_address *address,
		      char text_r[NETWORK_ADDRESS_TEXT])
{
	if (address->family == 0 ||
	    !inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->byte, text_r,
		       NETWORK_ADDRESS_TEXT))
		text_r[0] = '\0';
}

/* ---- ranges ---- */

/* Digits only, from least to most. */
static int
network_parse_number(const char *text, size_t len, unsigned int least, unsigned int most,
		     unsigned int *number_r)
{
	unsigned int number = 0;

	if (len == 0 || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -EINVAL;
		number = number * 10 + (unsigned int)(text[i] - '0');
	}
	if (number < least || number > most)
		return -EINVAL;
	*number_r = number;
	return 0;
}

int
network_range_parse(const char *text, size_t len, struct network_range *range_r)
{
	const char *slash = memchr(text, '/', len);
	size_t address_len = slash ? (size_t)(slash - text) : len;
	struct network_range range = { 0 };
	unsigned int most, bits;

	if (network_address_parse(text, address_len, &range.address) < 0)
		return -EINVAL;
	bits = most = range.address.family == 4 ? 32 : 128;
	if (slash && network_parse_number(slash + 1, len - address_len - 1, 0, most, &bits) < 0)
		return -EINVAL;
	for (unsigned int i = bits; i < most; i++)
		if (range.address.byte[i / 8] & (0x80 >> i % 8))
			return -EINVAL;
	range.bits = (uint8_t)bits;
	*range_r = range;
	return 0;
}

bool
network_range_has(const struct network_range *range, const struct network_address *address)
{
	const uint8_t *byte = address->byte;
	uint8_t family = address->family;

	if (family == 6 && range->address.family == 4 &&
	    network_has_prefix(byte, carriers[0].byte, carriers[0].bits)) {
		byte += carriers[0].at;
		family = 4;
	}
	return family == range->address.family &&
	       network_has_prefix(byte, range->address.byte, range->bits);
}

/* ---- names ---- */

/* Does the last label look like a number to a resolver of the C library? */
static bool
ends_in_number(const char *host, size_t len)
{
	const char *dot = memrchr(host, '.', len), *label = dot ? dot + 1 : host;
	size_t n = len - (size_t)(label - host);

	if (n > 2 && label[0] == '0' && label[1] == 'x') {
		label += 2;
		n -= 2;
	} else {
		for (size_t i = 0; i < n; i++)
			if (!isdigit((unsigned char)label[i]))
				return false;
		return true;
	}
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)label[i]))
			return false;
	return true;
}

/* Lower case, without a final dot; letters, digits, "-" and "_" in labels of 1 to 63. */
static int
network_normalise(const char *text, size_t len, char host_r[NETWORK_HOST_MAX + 1])
{
	size_t label = 0;

	if (len > 1 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > NETWORK_HOST_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '.' ? label == 0 : !isalnum(c) && c != '-' && c != '_')
			return -EINVAL;
		label = c == '.' ? 0 : label + 1;
		if (label > 63)
			return -EINVAL;
		host_r[i] = (char)tolower(c);
	}
	host_r[len] = '\0';
	return label == 0 || ends_in_number(host_r, len) ? -EINVAL : 0;
}

/* A name or an address. An address is printed again, so it has one form. */
static int
parse_host(const char *text, size_t len, char host_r[NETWORK_HOST_MAX + 1],
	   struct network_address *address_r)
{
	char printed[NETWORK_ADDRESS_TEXT];
	bool bracket = len > 2 && text[0] == '[' && text[len - 1] == ']';
	int r;

	address_r->family = 0;
	r = bracket ? network_address_parse(text + 1, len - 2, address_r)
		    : network_address_parse(text, len, address_r);
	if (r < 0)
		return bracket ? r : network_normalise(text, len, host_r);
	if (bracket != (address_r->family == 6))
		return -EINVAL;
	network_address_print(address_r, printed);
	strcpy(host_r, printed);
	return 0;
}

/* The port, behind its colon; text + len: there is no port. */
static const char *
find_port(const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len);
	const char *bracket = memrchr(text, ']', len);

	if (!colon || (bracket && colon < bracket))
		return text + len;
	return colon + 1;
}

static int
parse_port(const char *text, size_t len, uint16_t *port_r)
{
	unsigned int number;

	if (network_parse_number(text, len, 1, UINT16_MAX, &number) < 0)
		return -EINVAL;
	*port_r = (uint16_t)number;
	return 0;
}

/* ---- rules and targets ---- */

int
network_rule_parse(const char *text, size_t len, struct network_rule *rule_r)
{
	struct network_rule rule = { 0 };
	const char *port = find_port(text, len);
	size_t host_len = (size_t)(port - text), port_len = len - host_len;
	int r = 0;

	if (host_len > 0 && port[-1] == ':') {
		host_len--;
		rule.any_port = port_len == 1 && *port == '*';
		if (!rule.any_port)
			r = parse_port(port, port_len, &rule.port);
	}
	if (r < 0 || host_len == 0)
		return -EINVAL;
	if (host_len == 1 && text[0] == '*') {
		rule.kind = NETWORK_RULE_ANY;
	} else if (text[0] == '.') {
		rule.kind = NETWORK_RULE_SUFFIX;
		r = network_normalise(text + 1, host_len - 1, rule.host);
	} else {
		rule.kind = NETWORK_RULE_HOST;
		r = parse_host(text, host_len, rule.host, &rule.address);
	}
	if (r == 0)
		*rule_r = rule;
	return r;
}

int
network_target_parse(const char *text, size_t len, uint16_t default_port,
		     struct network_target *target_r)
{
	struct network_target target = { .port = default_port };
	const char *port = find_port(text, len);
	size_t host_len = (size_t)(port - text);

	if (host_len > 0 && port[-1] == ':') {
		/* "host:" means the default port (RFC 3986). */
		if ((port != text + len || default_port == 0) &&
		    parse_port(port, len - host_len, &target.port) < 0)
			return -EINVAL;
		host_len--;
	}
	if (target.port == 0 ||
	    parse_host(text, host_len, target.host, &target.address) < 0)
		return -EINVAL;
	*target_r = target;
	return 0;
}

static bool
is_below(const char *host, const char *suffix)
{
	size_t len = strlen(host), n = strlen(suffix);

	return len > n + 1 && host[len - n - 1] == '.' && strcmp(host + len - n, suffix) == 0;
}

bool
network_rule_allows(const struct network_rule *rule, const struct network_target *target)
{
	bool number = target->address.family != 0;

	if (!rule->any_port && target->port != rule->port &&
	    !(rule->port == 0 && (target->port == 80 || target->port == 443)))
		return false;
	switch (rule->kind) {
	case NETWORK_RULE_ANY:
		return true;
	case NETWORK_RULE_SUFFIX:
		return !number && is_below(target->host, rule->host);
	case NETWORK_RULE_HOST:
		break;
	}
	return number == (rule->address.family != 0) &&
	       strcmp(target->host, rule->host) == 0;
}
