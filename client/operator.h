/* What operators type: mcp-python approvals, approve, deny and audit. Their arguments are read
 * here, because no other command has them.
 */
#ifndef CLIENT_OPERATOR_H
#define CLIENT_OPERATOR_H

#include <stdbool.h>

/* Is it one of theirs? */
bool operator_is_command(const char *name);

/* argv[0]: the command. An exit code. */
int operator_command(int argc, char **argv);

/* mcp-python audit. Likewise. */
int audit_command(int argc, char **argv);

#endif
