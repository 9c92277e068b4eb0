/* SPDX-License-Identifier: MIT */
/*
 * One thread of the process is held still for the moment in which it makes a thread of ours, which then does all: so
 * none of the program's own threads calls the JVM for us, and none waits.
 */
#include "record/hooks/inject_java.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

#define START	   "weir_java_start"
#define PATIENCE_S 20u
#define SECOND_NS  1000000000u
#define NAP_NS	   5000000

/* A number of the library's in the process; 0 = there is none. */
static uint64_t read_number(const struct remote_caller *c, const char *library, const char *name)
{
	const struct remote_thread t = {.memory_fd = c->memory_fd};
	uint64_t bytes = 0, number = 0;
	uint64_t addr = remote_symbols_find_object(c->symbols, library, name, &bytes);

	if (!addr || bytes > sizeof(number) || !remote_read(&t, addr, &number, bytes))
		return 0;
	return number;
}

static int start_thread(struct remote_caller *c, const char *library, const char *place)
{
	struct remote_call call = {.name = START,
		.function = remote_symbols_find(c->symbols, library, START),
		.text = place,
		.late = REMOTE_CALL_LATE_GOES_ON};
	struct moments *moments = moments_new(c->symbols);
	uint64_t result = 0;
	int rc = remote_caller_stop(c, moments);

	moments_free(moments);
	if (rc == 0)
		rc = remote_caller_call(c, call, &result, c->err);
	remote_caller_let_go(c);
	if (rc == 0 && (int32_t)(uint32_t)result < 0)
		rc = err_set(c->err, ERR_FAILED,
			"process %d: no thread can be made in it for its Java classes (error %d)",
			c->pid, -(int32_t)(uint32_t)result);
	return rc;
}

static int wait_for_thread(const struct remote_caller *c, const char *library)
{
	uint64_t until = clock_mono_ns() + (uint64_t)PATIENCE_S * SECOND_NS;

	while (read_number(c, library, "weir_java_state")) {
		if (clock_mono_ns() > until)
			return err_set(c->err, ERR_FAILED,
				"process %d: its JVM has not changed its Java classes within %u seconds",
				c->pid, PATIENCE_S);
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
	}
	return 0;
}

int inject_java(struct remote_caller *c, const char *library, const char *place)
{
	int rc;

	remote_caller_let_go(c);
	if (!read_number(c, library, "weir_java_jvms"))
		return 0;
	rc = start_thread(c, library, place);
	return rc == 0 ? wait_for_thread(c, library) : rc;
}
