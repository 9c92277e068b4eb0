/* SPDX-License-Identifier: MIT */
/* Questions about classes: each is one connection to the recorder, with a limit to how long its answer may take. */
#ifdef __x86_64__
#include "java.h"

/* A recorder that answers takes a millisecond. One that did not is asked on, for those that come, without much
 * waiting. */
#define PATIENCE_MS	 5000
#define PATIENCE_LATE_MS 50

static uint32_t is_late; /* any thread: the last question had no answer */

/* The head and what belongs to it, in one piece. */
static uint8_t *message_new(size_t n, uint32_t flags, uint32_t n_names)
{
	struct hook_classes *head = raw_memory(NULL, sizeof(*head) + n, PROT_READ | PROT_WRITE, 0);

	if (head)
		*head = (struct hook_classes){(uint32_t)n, flags, n_names, 0};
	return (uint8_t *)head;
}

/* True when the recorder has answered with something. */
static bool ask(
	struct exchange *x, const uint8_t *bytes, size_t n, uint32_t flags, uint32_t n_names)
{
	uint8_t *message = n <= HOOK_CLASSES_BYTES_MAX ? message_new(n, flags, n_names) : NULL;
	struct hook_hello hello = {.magic = HOOK_ABI_MAGIC,
		.version = HOOK_ABI_VERSION,
		.kind = HOOK_HELLO_CLASSES,
		.bits = HOOK_BITS,
		.pid = raw_pid(),
		.tid = raw_tid()};
	int rc;

	if (!message) {
		java_count_classes(1);
		return false;
	}
	bytes_copy(message + sizeof(struct hook_classes), bytes, n);
	rc = exchange_open_for(x, &hello, message, sizeof(struct hook_classes) + n,
		is_late ? PATIENCE_LATE_MS : PATIENCE_MS);
	raw_call(SYS_munmap, message, sizeof(struct hook_classes) + n);
	is_late = rc == -EIO || rc == -EAGAIN;
	if (rc < 0) { /* which is counted */
		if (!exchange_recorder_lives())
			library_stop();
		return false;
	}
	if (!x->reply.status && x->plans)
		return true;
	exchange_close(x);
	return false;
}

bool classes_ask(struct exchange *x, const uint8_t *class, size_t n, bool is_library)
{
	return ask(x, class, n, is_library ? HOOK_CLASS_OF_LIBRARY : 0, 0);
}

bool classes_ask_names(struct exchange *x, const uint8_t *names, size_t n, uint32_t n_names)
{
	if (!ask(x, names, n, HOOK_CLASS_NAMES, n_names))
		return false;
	if (x->plan_bytes == n_names)
		return true;
	exchange_close(x);
	return false;
}
#endif
