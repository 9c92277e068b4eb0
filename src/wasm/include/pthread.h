/* SPDX-License-Identifier: MIT */
/* In a page there is one thread: none other can be made, and nothing has to be locked. */
#ifndef WEIR_WASM_INCLUDE_PTHREAD_H
#define WEIR_WASM_INCLUDE_PTHREAD_H

#include <errno.h>

typedef int pthread_t, pthread_mutex_t, pthread_cond_t;

#define pthread_create(thread, attributes, run, context) ((void)(run), (void)(context), EAGAIN)
#define pthread_join(thread, result)			 ((void)(thread), 0)
#define pthread_mutex_init(lock, attributes)		 ((void)(lock), 0)
#define pthread_mutex_destroy(lock)			 ((void)(lock), 0)
#define pthread_mutex_lock(lock)			 ((void)(lock), 0)
#define pthread_mutex_unlock(lock)			 ((void)(lock), 0)
#define pthread_cond_init(cond, attributes)		 ((void)(cond), 0)
#define pthread_cond_destroy(cond)			 ((void)(cond), 0)
#define pthread_cond_wait(cond, lock)			 ((void)(cond), (void)(lock), 0)
#define pthread_cond_signal(cond)			 ((void)(cond), 0)

#endif
