/* SPDX-License-Identifier: MIT */
/* Start, fork and exit of a counted program. */
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "runtime.h"

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE (1 << 1)
#endif
#define RESERVE_PART	64 /* of the address space, where it is limited, for one reservation */
#define OWN_STACK_BYTES (32u << 10)
#define LOCK_WAIT_NS	10000000
#define LOCK_TRIES	10000

struct library count_library;

static uint8_t own_stack[OWN_STACK_BYTES] __attribute__((aligned(16))); /* whoever has the lock */
static uint32_t first_lock;

/* 0 free, 1 taken, 2 taken and somebody may be waiting. */
static void lock(void)
{
	uint32_t *l = count_library.lock, seen = 0;

	if (__atomic_compare_exchange_n(l, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	/* Whoever has it may no longer be able to wake others. */
	while (__atomic_exchange_n(l, 2, __ATOMIC_ACQUIRE))
		futex_wait(l, 2, FUTEX_PRIVATE_FLAG, LOCK_WAIT_NS);
}

/* Without a system call. It may be this very thread's, which a handler has interrupted. */
static bool lock_or_not(void)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		uint32_t seen = 0;

		if (__atomic_compare_exchange_n(count_library.lock, &seen, 1, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__asm__ volatile("pause");
	}
	return false;
}

static void unlock(void)
{
	if (__atomic_exchange_n(count_library.lock, 0, __ATOMIC_RELEASE) == 2)
		futex_wake_one(count_library.lock, FUTEX_PRIVATE_FLAG);
}

bool count_apart(void (*f)(void *), void *arg)
{
	uint64_t before;

	if (count_library.is_confined) {
		if (!lock_or_not())
			return false;
		weir_count_switch_stack(f, arg, own_stack + sizeof(own_stack));
		__atomic_store_n(count_library.lock, 0, __ATOMIC_RELEASE);
		return true;
	}
	signals_block(&before);
	lock();
	weir_count_switch_stack(f, arg, own_stack + sizeof(own_stack));
	unlock();
	signals_unblock(&before);
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec t = {0};

	raw_call(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- the file's beginning ------------------------------------------------------------------ */

static void fill_times(struct count_header *h)
{
	h->version = COUNT_FILE_VERSION;
	h->header_bytes = sizeof(*h);
	h->pid = count_library.pid;
	h->parent = (uint32_t)raw_call(SYS_getppid, 0);
	h->start_ns = now_ns();
	h->start_ticks = count_ticks();
}

static void fill_command(struct count_header *h, int argc, char **argv)
{
	struct text t = {h->command, 0, sizeof(h->command)};

	for (int i = 0; i < argc; i++) {
		text_add(&t, argv[i]);
		if (i + 1 < argc)
			text_add_char(&t, ' ');
	}
}

/* The units' flags say what was asked for when the objects were made. */
static uint32_t unit_flags(const struct image *image)
{
	uint64_t at = 0;
	uint32_t flags = 0;

	while (image->units_bytes - at >= sizeof(struct count_unit)) {
		const struct count_unit *u = (const struct count_unit *)(image->units + at);

		if (u->magic != COUNT_UNIT_MAGIC || u->bytes < sizeof(*u) ||
			u->bytes > image->units_bytes - at)
			break;
		flags |= u->flags & COUNT_UNIT_CYCLES ? COUNT_FILE_CYCLES : 0;
		flags |= u->flags & COUNT_UNIT_TREE ? COUNT_FILE_TREE : 0;
		at += u->bytes;
	}
	return flags;
}

static void fill_header(const struct image *image, int argc, char **argv)
{
	struct count_header *h = count_library.header;

	fill_times(h);
	h->flags = unit_flags(image) | (count_library.site_mask ? COUNT_FILE_SITES : 0);
	h->base = image->base;
	h->counters_start = (uint64_t)__start_weir_counters;
	h->counters_end = (uint64_t)__stop_weir_counters;
	h->exe_size = image->size;
	h->exe_mtime_ns = image->mtime_ns;
	h->exe_inode = image->inode;
	h->build_id_bytes = image->build_id_bytes;
	bytes_copy(h->build_id, image->build_id, image->build_id_bytes);
	bytes_copy(h->exe, image->path, sizeof(h->exe));
	fill_command(h, argc, argv);
}

static long add_units(const void *units, uint64_t bytes, uint64_t address)
{
	uint64_t offset, room = PAGE_UP(bytes);
	uint8_t *at;
	bool is_made;

	if (!bytes)
		return 0;
	at = raw_memory(NULL, room, PROT_NONE, MAP_NORESERVE);
	if (!at)
		return -ENOSPC;
	is_made = count_file_extend(at, room, &offset);
	if (is_made)
		bytes_copy(at, units, bytes);
	raw_call(SYS_munmap, at, room);
	if (!is_made)
		return -ENOSPC;
	count_file_add_area(COUNT_AREA_UNITS, 0, offset, bytes, address);
	count_library.units = (uint64_t)units;
	count_library.units_bytes = bytes;
	return 0;
}

/* --- start --------------------------------------------------------------------------------- */

struct start {
	int argc;
	char **argv, **environment;
	uint64_t sp;
	struct image image;
};

/* The pages that a thread has copies of. */
static void find_pages(void)
{
	struct library *l = &count_library;
	uint64_t state = (uint64_t)&weir_count_state, end = state + sizeof(struct state);
	uint64_t counters = PAGE_DOWN(__start_weir_counters);
	uint64_t counters_end = PAGE_UP(__stop_weir_counters);

	l->copy_start = state;
	if (counters_end > counters) {
		l->counters = counters;
		l->counters_bytes = counters_end - counters;
		l->copy_start = counters < state ? counters : state;
		end = counters_end > end ? counters_end : end;
	}
	l->copy_bytes = end - l->copy_start;
}

static bool allocate(void)
{
	struct library *l = &count_library;
	uint64_t bytes = PAGE_UP(COUNT_FILE_AREAS / 3 * sizeof(*l->slots));
	uint32_t *page = raw_memory(NULL, COUNT_PAGE, PROT_READ | PROT_WRITE, 0);

	if (page && raw_call(SYS_madvise, page, COUNT_PAGE, MADV_WIPEONFORK) == 0) {
		*page = *l->lock;
		l->lock = page;
	}
	l->slots = raw_memory(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	return l->slots;
}

static void read_auxv(const struct start *start, const char **execfn, bool *is_secure)
{
	char **p = start->environment;
	const Elf64_auxv_t *a;

	while (*p)
		p++;
	for (a = (const Elf64_auxv_t *)(p + 1); a->a_type != AT_NULL; a++) {
		if (a->a_type == AT_HWCAP2)
			count_library.has_fsgsbase = a->a_un.a_val & HWCAP2_FSGSBASE;
		else if (a->a_type == AT_EXECFN)
			*execfn = (const char *)a->a_un.a_val;
		else if (a->a_type == AT_SECURE)
			*is_secure = a->a_un.a_val != 0;
	}
}

/* The file is made, and has its first thread, unless `rc` says why not: then its name. */
static long finish_file(long rc, bool is_child)
{
	if (rc < 0) {
		raw_call(SYS_unlink, count_library.path);
		return rc;
	}
	bytes_copy(count_library.header->magic, COUNT_FILE_MAGIC, sizeof(count_library.header->magic));
	return count_name_take(is_child);
}

static long begin(const struct start *start)
{
	const struct image *image = &start->image;
	long rc = count_name_look();

	if (rc == 0)
		rc = count_name_create();
	if (rc < 0)
		return rc;
	fill_header(image, start->argc, start->argv);
	rc = add_units((const void *)image->units, image->units_bytes, image->units);
	if (rc == 0)
		rc = count_thread_first(start->sp);
	return finish_file(rc, false);
}

static void start_apart(void *arg)
{
	struct start *start = arg;
	struct library *l = &count_library;
	const char *execfn = NULL, *sites = environment_find(start->environment, "WEIR_SITES");
	uint64_t limit[2] = {UINT64_MAX, 0};
	bool is_secure = false;
	long error;

	l->pid = raw_pid();
	l->main_stack = start->sp;
	read_auxv(start, &execfn, &is_secure);
	find_pages();
	if (!allocate())
		return;
	raw_call(SYS_prlimit64, 0, RLIMIT_AS, 0, limit);
	l->reserve_max = limit[0] / RESERVE_PART;
	l->site_mask = sites && sites[0] == '1' ? UINT64_MAX : 0;
	count_image_read(&start->image, execfn);
	count_name_set(is_secure ? NULL : environment_find(start->environment, "WEIR_OUT"),
		start->image.path);
	/* With another user's rights nothing is written where this one says. */
	error = is_secure ? -EPERM : begin(start);
	l->is_ready = error == 0;
	if (error < 0)
		count_name_complain(error);
}

static void before_fork(void);
static void in_parent(void);
static void in_child(void);

static void at_start(int argc, char **argv, char **environment)
{
	struct start start;

	start.argc = argc;
	start.argv = argv;
	start.environment = environment;
	start.sp = (uint64_t)__builtin_frame_address(0);
	count_library.lock = &first_lock;
	count_apart(start_apart, &start);
	if (count_library.is_ready && __register_atfork)
		__register_atfork(before_fork, in_parent, in_child, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const start_entry)(
	int, char **, char **) = at_start;

/* --- fork ---------------------------------------------------------------------------------- */

static long begin_child(uint64_t sp)
{
	const struct count_header *parent = count_library.header;
	struct count_header *h;
	long rc = count_name_create();

	if (rc < 0)
		return rc;
	h = count_library.header;
	bytes_copy(h, parent, offsetof(struct count_header, areas));
	h->magic[0] = 0;
	h->end_ns = h->end_ticks = h->calls_lost = h->n_threads_lost = 0;
	h->flags &= ~(COUNT_FILE_ENDED | COUNT_FILE_CHILD_FAILED);
	fill_times(h);
	rc = add_units(
		(const void *)count_library.units, count_library.units_bytes, count_library.units);
	if (rc == 0)
		rc = count_thread_forked(sp);
	rc = finish_file(rc, true);
	if (rc == 0)
		raw_call(SYS_munmap, parent, COUNT_HEADER_BYTES);
	return rc;
}

void count_forked(uint64_t sp)
{
	uint32_t pid = raw_pid();
	struct count_header *parent = count_library.header;
	long rc;

	if (pid == count_library.pid)
		return;
	count_library.pid = pid;
	rc = begin_child(sp);
	if (rc == 0)
		return;
	/* Away from the parent's counters. */
	count_library.is_ready = false;
	count_gs_set(0);
	__atomic_fetch_or(&parent->flags, COUNT_FILE_CHILD_FAILED, __ATOMIC_RELAXED);
	count_name_complain(rc);
}

static void child_apart(void *sp)
{
	count_forked((uint64_t)sp);
}

static void in_child(void)
{
	/* Before Linux 4.14 it is not in a page that is wiped. */
	if (count_library.lock == &first_lock)
		first_lock = 0;
	if (count_library.is_ready && count_library.is_confined)
		count_child_is_lost();
	if (count_library.is_ready && count_gs_get())
		count_apart(child_apart, __builtin_frame_address(0));
}

static void before_fork(void)
{
	if (count_library.is_ready && !count_library.is_confined && count_gs_get())
		count_thread_note_top(true);
}

static void in_parent(void)
{
	if (count_library.is_ready && !count_library.is_confined && count_gs_get())
		count_thread_note_top(false);
}

/* --- exit ---------------------------------------------------------------------------------- */

/* libc's: 0 once there has been a second thread. Static programs may be without it, but then have
 * pthread_create only when they use it. */
extern const char __libc_single_threaded __attribute__((weak));
extern int pthread_create(void) __attribute__((weak));

static bool had_threads(void)
{
	return &__libc_single_threaded ? !__libc_single_threaded : pthread_create != NULL;
}

static void end_apart(void *arg)
{
	(void)arg;
	count_left_at_end();
}

static void at_end(void)
{
	struct count_header *h = count_library.header;

	if (!count_library.is_ready)
		return;
	if (h->flags & COUNT_FILE_TREE)
		count_apart(end_apart, NULL);
	/* The time is not to be known without a system call. */
	if (!count_library.is_confined) {
		h->end_ns = now_ns();
		h->end_ticks = count_ticks();
	}
	/* Their counters are plain additions to the same memory. */
	if (!(h->flags & COUNT_FILE_TREE) && had_threads())
		h->flags |= COUNT_FILE_THREADS;
	h->flags |= COUNT_FILE_ENDED;
}

__attribute__((section(".fini_array"), used)) static void (*const end_entry)(void) = at_end;
