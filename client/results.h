/* What a script showed and left: said, and with --save written into a directory. */
#ifndef CLIENT_RESULTS_H
#define CLIENT_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

struct call_channel;
struct reply;

/* A line on standard error for each picture and each file. saves: results_save comes next, so only
 * those are said that it cannot have. */
void results_say(const json_t *outcome, bool saves);

/* Writes pictures as picture-1.png ... and files under their names, which it asks the service
 * for with this id and those after it, and says where each one is. Without force no file is
 * replaced. 0, or negative: what could not be saved was said. */
int results_save(const char *directory, bool force, struct call_channel *channel, int id,
		 const struct reply *answer);

/* Saves one file, of a resource that the request id reads, as results_save does without force. */
int results_save_one(const char *directory, struct call_channel *channel, int id, const char *path,
		     const char *uri);

#endif
