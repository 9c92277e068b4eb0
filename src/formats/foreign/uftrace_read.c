/* SPDX-License-Identifier: MIT */
/*
 * task.txt says which sessions (programs with what they had mapped) and threads there are; TID.dat has records of 16
 * bytes: the time, and a word of type (2 bits), "more" (1), magic (3), depth (10) and address (48). Behind a record
 * with more are arguments, whose length another file says: they are passed over, to the next whole record.
 */
#include "formats/foreign/uftrace_read.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/uftrace_symbols.h"

#define RECORD_BYTES 16
#define STEP_BYTES   8
#define MAGIC	     5
#define LINE_BYTES   4096
#define GAP_NS_MAX   ((uint64_t)3600 * 1000000000) /* behind arguments, between two records */
#define HEAD	     "Ftrace!"

enum record_type { RECORD_ENTRY = 0, RECORD_EXIT = 1, RECORD_LOST = 2, RECORD_EVENT = 3 };

struct task {
	uint32_t pid, tid;
};

struct uftrace {
	const char *folder;
	struct foreign_trace *trace;
	struct uftrace_symbols symbols;
	VEC(struct task) tasks;
	struct map known;    /* tids */
	struct map owner_of; /* pid -> the process whose session it began with */
	struct map frame_of; /* of the thread being read: address -> frame */
	uint64_t n_arguments, n_events, n_lost, n_missing;
};

struct record {
	uint64_t time_ns, addr;
	enum record_type type;
	uint32_t depth;
	bool has_more, is_right;
};

bool uftrace_is_folder(const char *path)
{
	char *name = mem_printf("%s/info", path), head[sizeof(HEAD) - 1];
	FILE *f = fopen(name, "rbe");
	bool is = f && fread(head, 1, sizeof(head), f) == sizeof(head) &&
		  !memcmp(head, HEAD, sizeof(head));

	if (f)
		fclose(f);
	free(name);
	return is;
}

/* ---- tasks ---- */

/* The number behind "KEY="; 0: there is none. */
static uint64_t number_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* "SECONDS.NANOSECONDS" */
static uint64_t time_of(const char *line)
{
	uint64_t s = 0, ns = 0;
	const char *at = strstr(line, "timestamp=");

	if (at)
		sscanf(at, "timestamp=%" SCNu64 ".%9" SCNu64, &s, &ns);
	return s > UINT64_MAX / 2000000000 ? 0 : s * 1000000000 + ns;
}

static void add_task(struct uftrace *u, uint64_t pid, uint64_t tid)
{
	bool is_new;

	map_ensure(&u->known, tid, &is_new);
	if (is_new && tid)
		vec_push(&u->tasks, ((struct task){(uint32_t)pid, (uint32_t)tid}));
}

static void read_task(struct uftrace *u, const char *line)
{
	uint64_t pid = number_of(line, " pid="), tid = number_of(line, " tid=");

	if (!strncmp(line, "SESS", 4)) {
		const char *sid = strstr(line, "sid=");
		size_t n = sid ? strcspn(sid + 4, " \n") : 0;

		uftrace_symbols_add_session(&u->symbols, (uint32_t)pid, time_of(line),
			(struct span){(const uint8_t *)(sid ? sid + 4 : ""), n});
	} else if (!strncmp(line, "TASK", 4)) {
		add_task(u, pid, tid);
	} else if (!strncmp(line, "FORK", 4)) {
		uint64_t parent = number_of(line, " ppid=");
		const uint64_t *owner = map_find(&u->owner_of, parent);
		uint64_t first = owner ? *owner : parent;

		*map_ensure(&u->owner_of, pid, NULL) = first;
		add_task(u, pid, pid);
	}
}

static int read_tasks(struct uftrace *u, struct err *err)
{
	char *path = mem_printf("%s/task.txt", u->folder), text[LINE_BYTES];
	struct foreign_input *in = NULL;
	struct span line;
	int rc = foreign_input_open(&in, path, path, err);

	while (rc == 0 && foreign_input_line(in, &line)) {
		size_t n = line.n < sizeof(text) - 1 ? line.n : sizeof(text) - 1;

		memcpy(text, line.p, n);
		text[n] = 0;
		read_task(u, text);
	}
	foreign_input_close(in);
	free(path);
	return rc;
}

/* ---- records ---- */

static struct record record_of(struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	uint64_t time = cursor_u64(&c), word = cursor_u64(&c);

	return (struct record){.time_ns = time,
		.addr = word >> 16,
		.type = (enum record_type)(word & 3),
		.depth = (uint32_t)(word >> 6 & 0x3ff),
		.has_more = word & 4,
		.is_right = !c.failed && (word >> 3 & 7) == MAGIC};
}

/* To the next record that may follow this one; arguments have no magic where a record has it, but by chance. */
static void skip_arguments(struct foreign_input *in, const struct record *last)
{
	for (;;) {
		struct span bytes = foreign_input_peek(in, RECORD_BYTES);
		struct record next = record_of(bytes);

		if (bytes.n < RECORD_BYTES || (next.is_right && next.time_ns >= last->time_ns &&
						      next.time_ns - last->time_ns < GAP_NS_MAX))
			return;
		foreign_input_skip(in, STEP_BYTES);
	}
}

static uint32_t frame_of(struct uftrace *u, const struct task *task, const struct record *record)
{
	const uint64_t *owner = map_find(&u->owner_of, task->pid);
	struct foreign_level level = {.line = 0};
	struct foreign_frame frame = {.kind = FRAME_KIND_NATIVE, .addr = record->addr};
	const struct uftrace_file *file;
	uint32_t name = 0;

	file = uftrace_symbols_find(&u->symbols, task->pid, record->time_ns, &frame.addr, &name);
	if (!file && owner)
		file = uftrace_symbols_find(
			&u->symbols, (uint32_t)*owner, record->time_ns, &frame.addr, &name);
	if (file)
		frame.image = (struct span){(const uint8_t *)file->path, strlen(file->path)};
	if (name) {
		const struct intern_item *text = &u->symbols.texts.items[name - 1];

		level.name = (struct span){(const uint8_t *)text->p, text->n};
		frame.levels = &level;
		frame.n_levels = 1;
	}
	return foreign_trace_frame(u->trace, &frame);
}

static void put_record(
	struct uftrace *u, const struct task *task, uint32_t thread, const struct record *record)
{
	bool is_new;
	uint64_t *frame;

	switch (record->type) {
	case RECORD_LOST:
		u->n_lost += record->addr;
		return;
	case RECORD_EVENT:
		u->n_events++;
		return;
	case RECORD_ENTRY:
	case RECORD_EXIT:
		break;
	}
	frame = map_ensure(&u->frame_of, record->addr, &is_new);
	if (is_new)
		*frame = frame_of(u, task, record);
	foreign_trace_routine(
		u->trace, thread, record->time_ns, (uint32_t)*frame, record->type == RECORD_EXIT);
}

static int read_records(
	struct uftrace *u, const struct task *task, struct foreign_input *in, struct err *err)
{
	uint32_t thread = foreign_trace_thread(u->trace, task->pid, task->tid, (struct span){0});

	while (!foreign_input_is_at_end(in)) {
		struct span bytes = foreign_input_peek(in, RECORD_BYTES);
		struct record record = record_of(bytes);

		if (!record.is_right)
			return foreign_input_wrong(in, err,
				bytes.n < RECORD_BYTES ? "ends in the midst of a record"
						       : "is no record");
		foreign_input_skip(in, RECORD_BYTES);
		if (record.has_more) {
			u->n_arguments++;
			skip_arguments(in, &record);
		}
		put_record(u, task, thread, &record);
	}
	return foreign_input_failure(in, err);
}

static int read_thread(struct uftrace *u, const struct task *task, struct err *err)
{
	char *path = mem_printf("%s/%" PRIu32 ".dat", u->folder, task->tid);
	struct foreign_input *in = NULL;
	int rc = 0;

	map_reset(&u->frame_of);
	if (foreign_input_open(&in, path, path, NULL) < 0)
		u->n_missing++; /* a thread that called nothing has no file */
	else
		rc = read_records(u, task, in, err);
	foreign_input_close(in);
	free(path);
	return rc;
}

/* Those that have something in them: what the kernel recorded beside. */
static uint64_t n_cpu_files(const struct uftrace *u)
{
	DIR *folder = opendir(u->folder);
	const struct dirent *e;
	struct stat st;
	uint64_t n = 0;

	while (folder && (e = readdir(folder)))
		if ((!strncmp(e->d_name, "perf-cpu", 8) || !strncmp(e->d_name, "kernel-cpu", 10)) &&
			fstatat(dirfd(folder), e->d_name, &st, 0) == 0 && st.st_size > 0)
			n++;
	if (folder)
		closedir(folder);
	return n;
}

static void tell_imperfections(struct uftrace *u)
{
	if (u->n_lost)
		foreign_trace_lost_events(u->trace, u->n_lost, "uftrace lost records");
	if (u->n_arguments)
		foreign_trace_note(u->trace, u->n_arguments,
			"calls with arguments or results, which are not shown");
	if (u->n_events)
		foreign_trace_note(
			u->trace, u->n_events, "events of uftrace that are no calls are not shown");
	if (u->n_missing)
		foreign_trace_note(u->trace, u->n_missing, "threads without records");
	if (n_cpu_files(u))
		foreign_trace_note(u->trace, n_cpu_files(u),
			"files with scheduling or kernel records are not read");
}

int uftrace_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct uftrace u = {.folder = path, .symbols = {.folder = path}};
	int rc;

	(void)in;
	(void)options;
	u.trace = foreign_trace_new(w, "uftrace");
	rc = read_tasks(&u, err);
	for (size_t i = 0; rc == 0 && i < u.tasks.n; i++)
		rc = read_thread(&u, &u.tasks.v[i], err);
	if (rc == 0)
		tell_imperfections(&u);
	foreign_trace_free(u.trace);
	uftrace_symbols_release(&u.symbols);
	vec_release(&u.tasks);
	map_release(&u.known);
	map_release(&u.owner_of);
	map_release(&u.frame_of);
	return rc;
}
