/* Who may call us from where: the Host and Origin rules that keep web pages of strangers
 * from a server on the same machine (DNS rebinding), and addresses to listen at.
 */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include <stdbool.h>

struct config_list;
struct sockaddr_storage;

/* Is host, NAME or NAME:PORT as in a Host header, a name of this service? These are the names of
 * the loopback device with any port, own (an address, NULL: none) with any port, and what
 * allowed has: NAME with any port, NAME:PORT with that one. */
bool http_host_is_ours(const char *host, const char *own, const struct config_list *allowed);

/* May a page of this origin call us? Pages of the loopback device may, and those in allowed.
 * "null" never. */
bool http_origin_is_allowed(const char *origin, const struct config_list *allowed);

/* text: 127.0.0.1:80 or [::1]:80, numbers only. False: it is not of that form. */
bool http_address_read(const char *text, struct sockaddr_storage *address_r);

/* The same way back, malloc'd; *host_r, when not NULL: without the port, as in a Host header. */
char *http_address_text(const struct sockaddr_storage *address, char **host_r);

bool http_address_is_loopback(const struct sockaddr_storage *address);

#endif
