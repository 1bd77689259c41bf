/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a script displays. They are sent to the supervisor at once, so that they are not
 * lost if the script crashes later. worker/rich.py chooses the forms and limits their size; the
 * supervisor checks both.
 */
#ifndef WORKER_DISPLAY_H
#define WORKER_DISPLAY_H

#include <Python.h>

#include <stdint.h>

/* The function send_display(object, kind, data: bytes) -> bool, which sends one form of an object.
 * Objects are numbered from 0. It returns False if the form could not be sent, and in processes
 * that the script has made. A new reference, or NULL with an exception set. */
PyObject *display_sender(void);

/* From now on objects that this process displays belong to the run of this id. */
void display_begin(uint64_t id);

#endif
