/* SPDX-License-Identifier: MIT */
/*
 * The thread that answers hook libraries: reads a hello, has the modules planned, makes the area,
 * sends both, and keeps what the results say. Many programs may connect at once; one that says
 * nothing more holds up nobody and is dropped after a while.
 */
#ifndef WEIR_RECORD_HOOKS_SERVER_H
#define WEIR_RECORD_HOOKS_SERVER_H

#include "record/hooks/hooks_internal.h"

/* Lets the thread look around now: at where it listens, and whether it has to end. */
void hook_server_wake(struct hooks *h);

#endif
