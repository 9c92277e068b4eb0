/* SPDX-License-Identifier: MIT */
/*
 * The thread that answers hook libraries: reads a hello, has the modules planned, makes the area,
 * sends both, and keeps what the results say. Many programs may connect at once; one that says
 * nothing more holds up nobody and is dropped after a while.
 */
#ifndef WEIR_RECORD_HOOKS_SERVER_H
#define WEIR_RECORD_HOOKS_SERVER_H

#include "record/hooks/hooks_internal.h"

/* Makes the folder (0700) and the socket in it. */
int hook_server_listen(struct hooks *h, struct err *err);
void hook_server_unlisten(struct hooks *h);

#endif
