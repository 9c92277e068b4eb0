/* SPDX-License-Identifier: MIT */
/* Between calltree.c and thread.c: how the events of a thread change nodes. */
#ifndef WEIR_CALLTREE_THREAD_H
#define WEIR_CALLTREE_THREAD_H

#include "calltree/calltree.h"

/* Valid until the next node is created. */
struct calltree_node *calltree_edit(struct calltree *t, uint32_t node);
/* An event entered the node: counts the call. */
void calltree_mark_entered(struct calltree *t, uint32_t node);

#endif
