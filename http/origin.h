/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for Host and Origin, which keep web pages of strangers from a server on the same
 * machine (DNS rebinding); and addresses of listening sockets.
 */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <stdbool.h>

struct config_list;
struct sockaddr_storage;

/* Whether host, NAME or NAME:PORT as in a Host header, is a name of this service: a name of the
 * loopback device with any port, own (an address, NULL: none) with any port, or an entry of
 * allowed, which is NAME (any port) or NAME:PORT. */
bool http_host_is_ours(const char *host, const char *own, const struct config_list *allowed);

/* Whether a page of this origin may call the service: pages of the loopback device, and origins in
 * allowed. "null" never. */
bool http_origin_is_allowed(const char *origin, const struct config_list *allowed);

/* text: 127.0.0.1:80 or [::1]:80, numbers only. False: it is not of that form. */
bool http_address_read(const char *text, struct sockaddr_storage *address_r);

/* The text of an address, malloc'd. *host_r, if not NULL: the same without the port, as in a Host
 * header. */
char *http_address_text(const struct sockaddr_storage *address, char **host_r);

bool http_address_is_loopback(const struct sockaddr_storage *address);

#endif
