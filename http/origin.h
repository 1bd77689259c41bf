/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for the headers Host and Origin. They keep web pages in a browser on this machine from
 * calling the service (DNS rebinding). Also functions for addresses of listening sockets.
 */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <stdbool.h>

struct config_list;
struct sockaddr_storage;

/* Is host, the value of a Host header, a name of this service? host: NAME or NAME:PORT. Accepted
 * are the names of the loopback device and own (an address; NULL: none), with any port; and the
 * entries of allowed: NAME, with any port, or NAME:PORT. */
bool http_host_is_ours(const char *host, const char *own, const struct config_list *allowed);

/* May a page of this origin call the service? True for pages of the loopback device, and for
 * origins in allowed. "null" is never allowed. */
bool http_origin_is_allowed(const char *origin, const struct config_list *allowed);

/* Reads an address, 127.0.0.1:80 or [::1]:80, with numbers only. False: text is not of this form.
 */
bool http_address_read(const char *text, struct sockaddr_storage *address_r);

/* The text of an address, malloc'd. *host_r (host_r may be NULL): the address without the port, as
 * in a Host header. */
char *http_address_text(const struct sockaddr_storage *address, char **host_r);

bool http_address_is_loopback(const struct sockaddr_storage *address);

#endif
