/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   a client's Host and Origin: any bytes but NUL. */
#include "http/origin.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "policy/config.h"

/* The length of NAME, if host is "NAME" or "NAME:PORT"; else 0. */
static size_t
name_length(const char *host)
{
	const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
	size_t len = *host == '[' ? (bracket ? (size_t)(bracket - host) + 1 : 0)
				  : strcspn(host, ":");
	size_t digits;

	if (host[len] == '\0')
		return len;
	if (host[len] != ':')
		return 0;
	digits = strspn(host + len + 1, "0123456789");
	return digits >= 1 && digits <= 5 && host[len + 1 + digits] == '\0' ? len : 0;
}

static bool
origin_is_name(const char *host, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

static bool
is_loopback_name(const char *host, size_t len)
{
	return origin_is_name(host, len, "localhost") || origin_is_name(host, len, "127.0.0.1") ||
	       origin_is_name(host, len, "[::1]");
}

bool
http_host_is_ours(const char *host, const char *own, const struct config_list *allowed)
{
	size_t len = name_length(host);

	if (len == 0)
		return false;
	if (is_loopback_name(host, len) || (own && origin_is_name(host, len, own)))
		return true;
	for (size_t i = 0; i < allowed->n; i++)
		if (origin_is_name(host, len, allowed->item[i]) ||
		    strcasecmp(host, allowed->item[i]) == 0)
			return true;
	return false;
}

bool
http_origin_is_allowed(const char *origin, const struct config_list *allowed)
{
	const char *host = strncasecmp(origin, "http://", 7) == 0 ? origin + 7 :
			   strncasecmp(origin, "https://", 8) == 0 ? origin + 8 : NULL;
	size_t len = host ? name_length(host) : 0;

	if (len == 0)
		return false;
	if (is_loopback_name(host, len))
		return true;
	for (size_t i = 0; i < allowed->n; i++)
		if (strcasecmp(origin, allowed->item[i]) == 0)
			return true;
	return false;
}

/* ---- addresses ---- */

bool
http_address_read(const char *text, struct sockaddr_storage *address_r)
{
	struct sockaddr_in *four = (struct sockaddr_in *)address_r;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address_r;
	char host[INET6_ADDRSTRLEN + 2];
	size_t len = name_length(text);
	unsigned long port;

	if (len == 0 || len >= sizeof(host) || text[len] != ':')
		return false;
	port = strtoul(text + len + 1, NULL, 10);
	memcpy(host, text, len);
	host[len] = '\0';
	memset(address_r, 0, sizeof(*address_r));
	if (port > UINT16_MAX)
		return false;
	if (host[0] == '[') {
		host[len - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1;
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &four->sin_addr) == 1;
}

char *
http_address_text(const struct sockaddr_storage *address, char **host_r)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	bool is_six = address->ss_family == AF_INET6;
	char number[INET6_ADDRSTRLEN] = "?", host[INET6_ADDRSTRLEN + 2];
	char *text;

	inet_ntop(address->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr,
		  number, sizeof(number));
	snprintf(host, sizeof(host), is_six ? "[%s]" : "%s", number);
	text = xasprintf("%s:%u", host,
			 ntohs(is_six ? six->sin6_port : four->sin_port));
	if (host_r)
		*host_r = xstrdup(host);
	return text;
}

bool
http_address_is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}
