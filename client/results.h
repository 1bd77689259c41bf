/* What a script showed and left: said, and with --save written into a directory. */
#ifndef CLIENT_RESULTS_H
#define CLIENT_RESULTS_H

#include <jansson.h>

struct call_channel;
struct reply;

/* A line on standard error for each picture and each file. */
void results_say(const json_t *outcome);

/* Writes pictures as picture-1.png ... and files under their names, which it asks the service
 * for with this id and those after it. Nothing is overwritten. 0, or negative: what could
 * not be saved was said. */
int results_save(const char *directory, struct call_channel *channel, int id,
		 const struct reply *answer);

#endif
