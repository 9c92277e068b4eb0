/* SPDX-License-Identifier: MIT */
/*
 * The modules that the dynamic loader has, by its list for debuggers; a jump in the function that
 * it calls when the list changes tells of those that come and go.
 */
#include <link.h>
#include <sys/mman.h>

#include "hook.h"

#define MODULES_MAX   4096
#define MESSAGE_BYTES (1u << 20)
#define SPEAKER_WAIT_NS 100000

extern struct r_debug _r_debug __attribute__((weak));

/* Modules that were told to the recorder. Written by the one thread that holds the loader's lock.
 */
static struct module_seen seen[MODULES_MAX];
static uint32_t n_seen;

static bool is_known(const struct link_map *l)
{
	for (uint32_t i = 0; i < n_seen; i++)
		if (seen[i].bias == l->l_addr && seen[i].dynamic == (uintptr_t)l->l_ld)
			return true;
	return false;
}

struct module_list {
	struct module_seen *v;
	uint32_t n;
};

static void take_extent(void *ctx, uintptr_t start, uintptr_t end)
{
	const struct module_list *list = ctx;

	for (uint32_t i = 0; i < list->n; i++)
		if (list->v[i].dynamic - start < end - start) {
			list->v[i].start = start;
			list->v[i].end = end;
		}
}

/* The list's new modules; those without a file (the vdso) and we ourselves have no extent then.
 * What lies at l_addr is not known: it need not even be mapped, when the file was linked for some
 * other address than 0. */
static uint32_t find_modules(struct module_seen *fresh, uint32_t max)
{
	struct module_list list = {.v = fresh};

	for (const struct link_map *l = &_r_debug ? _r_debug.r_map : NULL; l && list.n < max;
		l = l->l_next)
		if (!is_known(l))
			fresh[list.n++] = (struct module_seen){l->l_addr, (uintptr_t)l->l_ld, 0, 0};
	if (list.n)
		maps_each_module(take_extent, &list);
	return list.n;
}

static const struct link_map *module_of(const struct module_seen *m)
{
	const struct link_map *l = _r_debug.r_map;

	while (l && (l->l_addr != m->bias || (uintptr_t)l->l_ld != m->dynamic))
		l = l->l_next;
	return l;
}

/* Adds those that are new to the message; their places in `fresh`. */
static uint32_t add_modules(
	uint8_t *message, size_t *n_bytes, struct module_seen *fresh, uint32_t max)
{
	uint32_t n_found = find_modules(fresh, max), n = 0;

	for (uint32_t i = 0; i < n_found; i++) {
		struct module_seen m = fresh[i];
		const struct link_map *l = module_of(&m);
		bool is_main = l == _r_debug.r_map;
		size_t path_bytes = is_main ? 0 : text_length(l->l_name);
		struct hook_module wire = {.bias = m.bias,
			.start = m.start,
			.end = m.end,
			.path_bytes = (uint32_t)path_bytes};

		if (!m.end || (!is_main && !path_bytes) ||
			(uintptr_t)weir_region - m.start < m.end - m.start)
			continue;
		if (*n_bytes + sizeof(wire) + path_bytes > MESSAGE_BYTES)
			break;
		bytes_copy(message + *n_bytes, &wire, sizeof(wire));
		bytes_copy(message + *n_bytes + sizeof(wire), l->l_name, path_bytes);
		*n_bytes += sizeof(wire) + path_bytes;
		fresh[n++] = m;
	}
	return n;
}

static void forget_gone(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_seen; i++)
		if (module_of(&seen[i]))
			seen[n++] = seen[i];
		else
			patch_forget(seen[i].start, seen[i].end);
	n_seen = n;
}

static struct hook_hello hello_of(enum hook_hello_kind kind, uint32_t n_modules)
{
	return (struct hook_hello){
		.magic = HOOK_ABI_MAGIC,
		.version = HOOK_ABI_VERSION,
		.kind = kind,
		.bits = HOOK_BITS,
		.pid = raw_pid(),
		.tid = raw_tid(),
		.n_modules = n_modules,
		.region_start = (uintptr_t)weir_region,
		.region_bytes = REGION_BYTES,
	};
}

static int apply_plan(struct exchange *x, const struct module_seen *fresh)
{
	size_t bytes = x->reply.n_plans * sizeof(struct hook_result);
	struct hook_result *results;

	if (!x->reply.n_plans) {
		exchange_results(x, NULL, 0);
		return 0;
	}
	results = raw_memory(NULL, bytes, PROT_READ | PROT_WRITE, 0);
	if (!results)
		return -ENOMEM;
	patch_apply(x->plans, x->reply.n_plans, fresh, results);
	exchange_results(x, results, x->reply.n_plans);
	raw_call(SYS_munmap, results, bytes);
	return 0;
}

/* There is not even memory for a list of modules. */
static int say_no_memory(enum hook_hello_kind kind)
{
	struct hook_hello hello = hello_of(kind, 0);
	struct exchange x = {.fd = -1, .area_fd = -1, .family_fd = -1};

	if (kind != HOOK_HELLO_START ||
		(exchange_open(&x, &hello, NULL, 0) == 0 && !x.reply.status))
		exchange_give_up(&x, kind, -ENOMEM);
	exchange_close(&x);
	return -ENOMEM;
}

static int say_modules(enum hook_hello_kind kind)
{
	size_t scratch_bytes = MESSAGE_BYTES + MODULES_MAX * sizeof(struct module_seen);
	uint8_t *message = raw_memory(NULL, scratch_bytes, PROT_READ | PROT_WRITE, 0);
	struct module_seen *fresh = (struct module_seen *)(message + MESSAGE_BYTES);
	size_t n_bytes = 0;
	struct exchange x;
	struct hook_hello hello;
	uint32_t n;
	int rc;

	if (!message)
		return say_no_memory(kind);
	n = add_modules(message, &n_bytes, fresh, MODULES_MAX - n_seen);
	if (!n && kind == HOOK_HELLO_MODULES) {
		raw_call(SYS_munmap, message, scratch_bytes);
		return 0;
	}
	hello = hello_of(kind, n);
	rc = exchange_open(&x, &hello, message, n_bytes);
	if (rc == 0 && !x.reply.status) {
		if (kind == HOOK_HELLO_START)
			rc = library_open_area(&x);
		exchange_close_area(&x); /* patching opens files, of which few may be allowed */
		for (uint32_t i = 0; rc == 0 && i < n; i++)
			seen[n_seen++] = fresh[i];
		if (rc == 0)
			rc = apply_plan(&x, fresh);
		if (rc < 0)
			exchange_give_up(&x, kind, rc);
	} else if (rc == 0) {
		rc = -1;
	}
	exchange_close(&x);
	raw_call(SYS_munmap, message, scratch_bytes);
	return rc;
}

int modules_start(enum hook_refusal refusal)
{
	struct hook_hello hello;
	struct exchange x;
	int rc;

	n_seen = 0;
	if (!refusal)
		return say_modules(HOOK_HELLO_START);
	hello = hello_of(HOOK_HELLO_START, 0);
	hello.refusal = refusal;
	rc = exchange_open(&x, &hello, NULL, 0);
	exchange_close(&x);
	return rc < 0 ? rc : -1;
}

static int say_forked(void)
{
	struct hook_hello hello = hello_of(HOOK_HELLO_FORK, 0);
	struct exchange x;
	int rc;

	if (!library_is_copy())
		return -1; /* vfork: the parent's memory, and the parent's hooks */
	hello.parent_serial = library.serial;
	library.is_forked = true;
	rc = exchange_open(&x, &hello, NULL, 0);
	if (rc == 0 && x.reply.status) {
		rc = -1;
	} else if (rc == 0) {
		rc = library_open_area(&x);
		if (rc < 0)
			exchange_give_up(&x, HOOK_HELLO_FORK, rc);
	}
	exchange_close(&x);
	if (rc < 0)
		library_stop();
	library.session++;
	return rc;
}

/* The process of which a thread says hello as a forked child; 0 = none. In a child of that one the
 * thread may not be there any more: so whose it is is compared. */
static uint32_t speaker;

bool library_is_own(void)
{
	uint32_t own = raw_pid(), other = 0;

	while (library.pid != own || __atomic_load_n(&speaker, __ATOMIC_ACQUIRE) == own) {
		if (library.is_off)
			return false;
		other = __atomic_load_n(&speaker, __ATOMIC_ACQUIRE);
		if (other == own) {
			wait_ns(SPEAKER_WAIT_NS);
		} else if (__atomic_compare_exchange_n(&speaker, &other, own, false,
				   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			bool is_heard = library.pid == own || say_forked() >= 0;

			__atomic_store_n(&speaker, 0, __ATOMIC_RELEASE);
			return is_heard;
		}
	}
	return true;
}

/* The loader holds its lock, and is between two states or has reached a new one. */
void modules_changed(void)
{
	uint64_t old;
	bool is_own;

	if (!library.control || library.is_off || _r_debug.r_state != RT_CONSISTENT)
		return;
	/* A forked child may not have called anything hooked yet. A handler must not come while it
	 * says hello: it would wait for itself. */
	signals_block(&old);
	is_own = library_is_own();
	signals_unblock(&old);
	if (!is_own)
		return;
	forget_gone();
	if (say_modules(HOOK_HELLO_MODULES) < 0 && !exchange_recorder_lives())
		library_stop(); /* a program that calls nothing hooked would not find out */
}

/* Bytes of the instructions that assemblers fill up with: nop, and in 32 bit lea 0(%esi),%esi. */
static bool is_padding(uint8_t byte)
{
	static const uint8_t known[] = {0x90, 0xcc, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x8d,
#ifndef __x86_64__
		0x26, 0x3e, 0x74, 0x76, 0xb4, 0xb6,
#endif
	};

	for (unsigned i = 0; i < sizeof(known); i++)
		if (byte == known[i])
			return true;
	return false;
}

/* The loader's function is empty: a return, and padding up to the next function. */
static bool is_empty_function(const uint8_t *p)
{
	unsigned n = 0;

	if (bytes_equal(p, "\xf3\x0f\x1e", 3))
		n = 4;
	if (p[n] == 0xf3)
		n++;
	if (p[n++] != 0xc3)
		return false;
	for (; n < 5; n++)
		if (!is_padding(p[n]))
			return false;
	return true;
}

/* The loader's function; 0 = it is not watched. */
static uintptr_t watched;
static uint8_t watched_original[8];

static uintptr_t put_far_jump(uintptr_t brk)
{
	uintptr_t near = patch_near(brk, 32);
	uint8_t *p = (uint8_t *)near;

	if (!near)
		return 0;
	p[0] = 0xff; /* jmp *address behind it */
	p[1] = 0x25;
#ifdef __x86_64__
	bytes_copy(p + 2, &(int32_t){2}, 4);
#else
	bytes_copy(p + 2, &(uintptr_t){near + 8}, 4);
#endif
	bytes_copy(p + 8, &(uintptr_t){(uintptr_t)weir_debug_stub}, sizeof(uintptr_t));
	raw_call(SYS_mprotect, PAGE_DOWN(near), PAGE_BYTES, PROT_READ | PROT_EXEC);
	return near;
}

void modules_watch(void)
{
	static uintptr_t near; /* stays: a thread may be in it */
	uintptr_t brk = &_r_debug ? (uintptr_t)_r_debug.r_brk : 0;

	if (watched || !brk || !is_empty_function((const uint8_t *)brk))
		return;
	if (!near)
		near = put_far_jump(brk);
	if (near && patch_jump(brk, near, watched_original))
		watched = brk;
}

void modules_unwatch(void)
{
	if (watched)
		patch_unjump(watched, watched_original);
	watched = 0;
}
