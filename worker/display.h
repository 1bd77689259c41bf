/* What a script shows goes to the supervisor when it is shown, so that it is there whatever
 * becomes of the script afterwards. What is shown, and how much of it, worker/rich.py decides;
 * the supervisor believes neither.
 */
#ifndef WORKER_DISPLAY_H
#define WORKER_DISPLAY_H

#include <Python.h>

#include <stdint.h>

/* send_display(object, kind, data: bytes) -> bool: one form of an object, numbered from 0.
 * False when it could not be sent, and in processes that the script made. A new
 * reference, or NULL with an exception set. */
PyObject *display_sender(void);

/* From now on what this process shows belongs to the run of that id. */
void display_begin(uint64_t id);

#endif
