/* SPDX-License-Identifier: MIT */
/* How the library begins and ends its work: by the environment, or by a call from the recorder. */
#include <sys/mman.h>

#include "hook.h"

#define ARCH_SHSTK_STATUS 0x5005

struct library library;
char weir_place[HOOK_PLACE_BYTES];
uint8_t weir_call_stack[CALL_STACK_BYTES] __attribute__((aligned(64)));

/* A forked child has its parent's, which is the same. Without it only counting suffers. */
static void open_family(int fd)
{
	struct hook_family *family;

	if (library.is_forked || fd < 0)
		return;
	family = raw_mmap(NULL, HOOK_FAMILY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	if (raw_failed(family))
		return;
	if (library.family) /* of a recording before */
		raw_call(SYS_munmap, library.family, HOOK_FAMILY_BYTES);
	library.family = family;
}

/* The threads of this process; those of the area before stay: one of theirs may still look at its own. */
static struct thread *open_threads(uint32_t n)
{
	size_t bytes = PAGE_UP((n + 1) * sizeof(struct thread));
	struct thread *threads = raw_memory(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);

	if (!threads || raw_call(SYS_madvise, threads, bytes, MADV_WIPEONFORK) < 0)
		return NULL;
	return threads;
}

int library_open_area(const struct exchange *x)
{
	uint64_t bytes = x->reply.area_bytes;
	struct hook_control *control;
	struct thread *threads;
	int rc = 0;

	if (x->area_fd < 0)
		return -EMFILE; /* the kernel drops descriptors that the program may not have */
	if (bytes < sizeof(*control) || bytes > SIZE_MAX / 2)
		return -EINVAL;
	control = slabs_open(x->area_fd, bytes);
	if (!control)
		return -ENOMEM;
	threads = open_threads(control->n_threads);
	if (!threads)
		rc = -ENOMEM;
	else if (control->magic != HOOK_ABI_MAGIC || control->version != HOOK_ABI_VERSION ||
		 !slabs_begin(control, bytes))
		rc = -EINVAL;
	if (rc < 0) {
		raw_call(SYS_munmap, control, (size_t)bytes);
		return rc;
	}
	open_family(x->family_fd);
	library.threads = threads;
	library.serial = control->serial;
	threads[control->n_threads].session = 1;
	library.is_same_memory = &threads[control->n_threads].session;
	library.area = (uintptr_t)control;
	library.area_bytes = bytes;
	library.ring_bytes = control->ring_bytes;
	library.pid = raw_pid();
	library.control = control;
	if (!library.is_forked)
		chains_disown();
	return 0;
}

/* Return addresses may not be replaced where the processor keeps its own copy of them. */
static bool has_shadow_stack(void)
{
#ifdef __x86_64__
	uint64_t features = 0;

	return raw_call(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features) == 0 && (features & 1);
#else
	return false;
#endif
}

/* glibc before 2.35 does not keep the alignment of segments. */
static enum hook_refusal refusal(void)
{
	if (has_shadow_stack())
		return HOOK_REFUSAL_SHADOW_STACK;
	if ((uintptr_t)weir_region % HOOK_BLOCK_BYTES)
		return HOOK_REFUSAL_REGION;
	return HOOK_REFUSAL_NONE;
}

/* What an earlier recording had to leave in the code: nobody is in the way now. */
static bool take_rest_out(void)
{
	if (!patch_lock(1))
		return false;
	patch_remove_all(PATCH_OTHERS_STOPPED);
	patch_give_back();
	patch_unlock();
	return true;
}

/*
 * A handler that has interrupted a hook may fork: in the child, the hook goes on with what it took of
 * its parent's area, which the child does not have. It gets memory of its own there, for nobody to
 * read. A fork that does not tell (_Fork, a bare system call) has no such help.
 */
static void child_begins(void)
{
	void *area = (void *)library.area;

	if (!library.control || !library_is_copy() || !chains_have_interrupted())
		return;
	if (raw_memory(area, (size_t)library.area_bytes, PROT_READ | PROT_WRITE,
		    MAP_NORESERVE | MAP_FIXED_NOREPLACE) == area &&
		slabs_fill())
		chains_empty_trees(library.ring_bytes);
}

/* The library stays from here on, so the function does. */
static void watch_forks(void)
{
	static bool is_done;

	if (!is_done && __register_atfork)
		is_done = __register_atfork(NULL, NULL, child_begins, NULL) == 0;
}

static int begin(const char *place, bool is_attached)
{
	int rc;

	if (library.control && !library.is_off)
		return -EBUSY; /* another recording */
	if (is_attached && !take_rest_out())
		return -EAGAIN;
	text_copy(weir_place, sizeof(weir_place), place);
	library.is_off = false;
	library.is_attached = is_attached;
	library.session++;
	rc = modules_start(refusal());
	if (rc == 0) {
		modules_watch();
		watch_forks();
	} else {
		library.is_off = true;
	}
	return rc;
}

int weir_attach(const char *place)
{
	return begin(place, true);
}

bool library_is_copy(void)
{
	return library.is_same_memory && !*library.is_same_memory;
}

static void stop(enum patch_others others)
{
	if (library_is_copy())
		library.control = NULL; /* the area is the parent's, and not mapped here */
	thread_stop_all();
	patch_remove_all(others);
	modules_unwatch();
	patch_give_back();
}

void library_stop(void)
{
	if (__atomic_exchange_n(&library.is_off, true, __ATOMIC_SEQ_CST) || !patch_lock(LOCK_TRIES))
		return;
	stop(PATCH_OTHERS_RUN);
	patch_unlock();
}

int weir_detach(const char *place, int others_stopped)
{
	if (!text_equals(place, weir_place))
		return -ESRCH;
	if (!patch_lock(others_stopped ? 1 : LOCK_TRIES))
		return -EAGAIN;
	library.is_off = true;
	stop(others_stopped ? PATCH_OTHERS_STOPPED : PATCH_OTHERS_RUN);
	patch_unlock();
	return 0;
}

/* --- calls of the program that matter to us ------------------------------------------------ */

#define PRCTL_SET_SECCOMP 22

static bool installs_filter(enum hook_own own, const uintptr_t *args)
{
	if (own == HOOK_OWN_PRCTL)
		return (int)args[0] == PRCTL_SET_SECCOMP;
	if (own != HOOK_OWN_SYSCALL)
		return false;
	/* The operations of seccomp(2) beyond 1 are questions. */
	return (args[0] == SYS_seccomp && (unsigned)args[1] <= 1) ||
	       (args[0] == SYS_prctl && (int)args[1] == PRCTL_SET_SECCOMP);
}

/* Address, bytes and protection of a call of mprotect, or NULL. */
static const uintptr_t *protection_args(enum hook_own own, const uintptr_t *args)
{
	if (own == HOOK_OWN_MPROTECT)
		return args;
	if (own == HOOK_OWN_SYSCALL && (args[0] == SYS_mprotect || args[0] == SYS_pkey_mprotect))
		return args + 1;
	return NULL;
}

void library_note_call(enum hook_own own, const uintptr_t args[HOOK_NOTE_ARGS], uintptr_t sp)
{
	const uintptr_t *protection = protection_args(own, args);
	uint64_t old;

#ifdef __x86_64__
	if (own == HOOK_OWN_CREATE_JVM)
		java_note_create(args[2]);
#endif
	if (protection)
		patch_note_protection(
			protection[0], protection[0] + protection[1], (int)protection[2]);
	if (!installs_filter(own, args))
		return;
	/* From the filter on, a system call of ours may end the program: so this is the moment to
	 * make the last ones. A child says hello first, so that the recorder is told of it, too. */
	signals_block(&old);
	thread_ensure(sp);
	if (library.control && !library.is_off && !library_is_copy())
		library.control->stop_reason = HOOK_STOP_FILTER;
	library_stop();
	signals_unblock(&old);
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
	const char *place = environment_find(environment, HOOK_ENV);

	(void)argc;
	(void)argv;
	/* The loader has just opened and read files, so that this is permitted, too. More filters than
	 * the recorder's were installed before this program was executed. */
	if (place && filters_count() <= text_number(environment_find(environment, HOOK_ENV_FILTERS)))
		begin(place, false);
}
