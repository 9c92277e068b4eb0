/* SPDX-License-Identifier: MIT */
#include "steps/read/step_mark_words.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "process/syscall_names.h"

#define ERRNO_MAX     4095 /* results from -ERRNO_MAX to -1 are errors */
#define RESTART_FIRST 512  /* errors that the kernel turns into a restart of the call */

static const char *const kind_names[STEP_N_MARKS] = {
	[STEP_MARK_SYSCALL] = "syscall",
	[STEP_MARK_SIGNAL] = "signal",
	[STEP_MARK_MAP] = "map",
	[STEP_MARK_FORK] = "fork",
	[STEP_MARK_EXEC] = "exec",
	[STEP_MARK_EXIT] = "exit",
	[STEP_MARK_RESUME] = "resume",
	[STEP_MARK_PAUSE] = "pause",
	[STEP_MARK_LOST] = "lost",
};

static const char *const whys[] = {
	[STEP_WHY_START] = "start",
	[STEP_WHY_REGION] = "region",
	[STEP_WHY_BURST] = "burst",
	[STEP_WHY_USER] = "user code",
	[STEP_WHY_MAX] = "max",
	[STEP_WHY_END] = "end of the recording",
	[STEP_WHY_ENGINE] = "engine",
};

static const char *const map_changes[] = {
	[STEP_MAP_ADDED] = "added", [STEP_MAP_REMOVED] = "removed", [STEP_MAP_CHANGED] = "changed"};

/* A number from the trace may be anything. */
static const char *name_in(const char *const *names, size_t n, int64_t i)
{
	return i >= 0 && (uint64_t)i < n ? names[i] : NULL;
}
#define NAME_IN(names, i) name_in(names, sizeof(names) / sizeof((names)[0]), i)

/* ---- names ---- */

static const char *errno_name(int64_t result)
{
	static const char *const restarts[] = {
		"ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", NULL, "ERESTART_RESTARTBLOCK"};

	if (result >= 0 || result < -ERRNO_MAX)
		return NULL;
	return -result < RESTART_FIRST ? strerrorname_np((int)-result)
				       : NAME_IN(restarts, -result - RESTART_FIRST);
}

static void put_signal(struct buf *to, int64_t signal)
{
	const char *name = signal > 0 && signal < 32 ? sigabbrev_np((int)signal) : NULL;

	if (name)
		buf_printf(to, "SIG%s", name);
	else
		buf_printf(to, "signal %" PRId64, signal);
}

struct code_name {
	int signal, code; /* signal 0: any */
	const char *name;
};

#define CODE(signal, code)                                                                         \
	{                                                                                          \
		signal, code, #code                                                                \
	}

static const struct code_name code_names[] = {
	CODE(SIGSEGV, SEGV_MAPERR),
	CODE(SIGSEGV, SEGV_ACCERR),
	CODE(SIGSEGV, SEGV_BNDERR),
	CODE(SIGSEGV, SEGV_PKUERR),
	CODE(SIGBUS, BUS_ADRALN),
	CODE(SIGBUS, BUS_ADRERR),
	CODE(SIGBUS, BUS_OBJERR),
	CODE(SIGILL, ILL_ILLOPC),
	CODE(SIGILL, ILL_ILLOPN),
	CODE(SIGILL, ILL_ILLADR),
	CODE(SIGILL, ILL_ILLTRP),
	CODE(SIGILL, ILL_PRVOPC),
	CODE(SIGFPE, FPE_INTDIV),
	CODE(SIGFPE, FPE_INTOVF),
	CODE(SIGFPE, FPE_FLTDIV),
	CODE(SIGFPE, FPE_FLTOVF),
	CODE(SIGFPE, FPE_FLTUND),
	CODE(SIGFPE, FPE_FLTRES),
	CODE(SIGFPE, FPE_FLTINV),
	CODE(SIGTRAP, TRAP_BRKPT),
	CODE(SIGTRAP, TRAP_TRACE),
	CODE(SIGTRAP, TRAP_BRANCH),
	CODE(SIGTRAP, TRAP_HWBKPT),
	CODE(SIGCHLD, CLD_EXITED),
	CODE(SIGCHLD, CLD_KILLED),
	CODE(SIGCHLD, CLD_DUMPED),
	CODE(SIGCHLD, CLD_TRAPPED),
	CODE(SIGCHLD, CLD_STOPPED),
	CODE(SIGCHLD, CLD_CONTINUED),
	CODE(0, SI_USER),
	CODE(0, SI_KERNEL),
	CODE(0, SI_QUEUE),
	CODE(0, SI_TIMER),
	CODE(0, SI_MESGQ),
	CODE(0, SI_ASYNCIO),
	CODE(0, SI_SIGIO),
	CODE(0, SI_TKILL),
};

static const char *code_name(int64_t signal, int64_t code)
{
	for (size_t i = 0; i < sizeof(code_names) / sizeof(code_names[0]); i++)
		if (code_names[i].code == code &&
			(!code_names[i].signal || code_names[i].signal == signal))
			return code_names[i].name;
	return NULL;
}

/* Whether the signal says at which address something went wrong. */
static bool has_address(const struct step_mark *m)
{
	return m->b > 0 && m->b != SI_KERNEL &&
	       (m->a == SIGSEGV || m->a == SIGBUS || m->a == SIGILL || m->a == SIGFPE ||
		       m->a == SIGTRAP);
}

/* These do not come back to the instruction that made them: they have no result. */
static bool has_result(const char *name, const struct step_mark *m)
{
	if (m->c & STEP_CALL_NO_RETURN)
		return false;
	return !name ||
	       (strcmp(name, "exit") != 0 && strcmp(name, "exit_group") != 0 &&
		       strcmp(name, "rt_sigreturn") != 0 && strcmp(name, "sigreturn") != 0);
}

static bool is_address(const char *name, int64_t result)
{
	static const char *const calls[] = {"brk", "mmap", "mmap2", "mremap", "shmat"};

	for (size_t i = 0; name && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(name, calls[i]))
			return result >= 0 || result < -ERRNO_MAX;
	return false;
}

/* ---- words ---- */

static void put_syscall(struct buf *to, const struct step_mark *m)
{
	bool is_32 = m->c & STEP_CALL_I386;
	const char *name = syscall_name(is_32, m->a), *error = errno_name(m->b);

	if (name)
		buf_put_cstr(to, name);
	else
		buf_printf(to, "system call %" PRId64, m->a);
	if (is_32)
		buf_put_cstr(to, " (i386)");
	if (m->c & STEP_CALL_NO_RETURN)
		buf_put_cstr(to, " does not return");
	if (!has_result(name, m))
		return;
	if (is_address(name, m->b))
		buf_printf(to, " = 0x%" PRIx64, is_32 ? (uint32_t)m->b : (uint64_t)m->b);
	else
		buf_printf(to, " = %" PRId64, m->b);
	if (error)
		buf_printf(to, " %s", error);
}

static void put_delivery(struct buf *to, const struct step_mark *m)
{
	const char *code = code_name(m->a, m->b);

	put_signal(to, m->a);
	if (code)
		buf_printf(to, " (%s)", code);
	else
		buf_printf(to, " (code %" PRId64 ")", m->b);
	if (has_address(m))
		buf_printf(to, ", address 0x%" PRIx64, (uint64_t)m->c);
}

static void put_map(struct buf *to, const struct step_mark *m, const char *text)
{
	const char *change = NAME_IN(map_changes, m->a);

	buf_printf(to, "code %s: 0x%" PRIx64 ", %" PRIu64 " bytes", change ? change : "changed",
		(uint64_t)m->b, (uint64_t)m->c);
	if (*text)
		buf_printf(to, ", %s", text);
}

static void put_exit(struct buf *to, int status)
{
	if (WIFSIGNALED(status)) {
		buf_put_cstr(to, "killed by ");
		put_signal(to, WTERMSIG(status));
	} else {
		buf_printf(to, "exits with status %d", WEXITSTATUS(status));
	}
}

static void put_why(struct buf *to, const char *what, int64_t why, const char *text)
{
	const char *name = NAME_IN(whys, why);

	buf_printf(to, "%s (%s)", what, *text ? text : name ? name : "for an unknown reason");
}

static void put_lost(struct buf *to, int64_t n)
{
	if (n > 0)
		buf_printf(to, "%" PRId64 " step%s lost", n, n == 1 ? " is" : "s are");
	else
		buf_put_cstr(to, "steps are lost, not known how many");
}

static const char *text_of(const struct step_mark *m, const struct trace_reader *r)
{
	return m->text < trace_reader_n_strings(r) ? trace_reader_string(r, m->text) : "";
}

void step_mark_put_words(struct buf *to, const struct step_mark *m, const struct trace_reader *r)
{
	const char *text = text_of(m, r);

	switch (m->kind) {
	case STEP_MARK_SYSCALL:
		put_syscall(to, m);
		break;
	case STEP_MARK_SIGNAL:
		put_delivery(to, m);
		break;
	case STEP_MARK_MAP:
		put_map(to, m, text);
		break;
	case STEP_MARK_FORK:
		buf_printf(to, "begins %s %" PRId64 "_%" PRId64, m->c ? "thread" : "process", m->a,
			m->b);
		break;
	case STEP_MARK_EXEC:
		buf_printf(to, "executes %s", *text ? text : "another program");
		break;
	case STEP_MARK_EXIT:
		put_exit(to, (int)m->a);
		break;
	case STEP_MARK_RESUME:
		put_why(to, "tracing begins", m->a, text);
		break;
	case STEP_MARK_PAUSE:
		put_why(to, "runs untraced", m->a, text);
		break;
	case STEP_MARK_LOST:
		put_lost(to, m->a);
		break;
	}
}

/* ---- JSON ---- */

static void json_syscall(struct json *j, const struct step_mark *m)
{
	const char *name = syscall_name(m->c & STEP_CALL_I386, m->a);

	json_i64(j, "number", m->a);
	json_string(j, "name", name);
	json_bool(j, "i386", m->c & STEP_CALL_I386);
	if (has_result(name, m))
		json_i64(j, "result", m->b);
	else
		json_null(j, "result");
	json_string(j, "errno", has_result(name, m) ? errno_name(m->b) : NULL);
}

static void json_signal(struct json *j, const struct step_mark *m)
{
	struct buf name = {0};

	put_signal(&name, m->a);
	json_i64(j, "signal", m->a);
	json_string(j, "name", buf_text(&name));
	json_i64(j, "code", m->b);
	json_string(j, "code_name", code_name(m->a, m->b));
	json_u64_if(j, "address", has_address(m), (uint64_t)m->c);
	buf_release(&name);
}

static void json_fields(struct json *j, const struct step_mark *m, const char *text)
{
	switch (m->kind) {
	case STEP_MARK_SYSCALL:
		json_syscall(j, m);
		break;
	case STEP_MARK_SIGNAL:
		json_signal(j, m);
		break;
	case STEP_MARK_MAP:
		json_string(j, "change", NAME_IN(map_changes, m->a));
		json_u64(j, "address", (uint64_t)m->b);
		json_u64(j, "bytes", (uint64_t)m->c);
		json_string(j, "image", *text ? text : NULL);
		break;
	case STEP_MARK_FORK:
		json_i64(j, "new_pid", m->a);
		json_i64(j, "new_tid", m->b);
		json_bool(j, "is_thread", m->c != 0);
		break;
	case STEP_MARK_EXEC:
		json_string(j, "image", *text ? text : NULL);
		break;
	case STEP_MARK_EXIT:
		json_i64(j, "status", m->a);
		break;
	case STEP_MARK_RESUME:
	case STEP_MARK_PAUSE:
		json_string(j, "why", NAME_IN(whys, m->a));
		break;
	case STEP_MARK_LOST:
		json_u64_if(j, "steps", m->a > 0, (uint64_t)m->a);
		break;
	}
}

void step_mark_json(struct json *j, const struct step_mark *m, const struct trace_reader *r)
{
	struct buf words = {0};

	step_mark_put_words(&words, m, r);
	json_string(j, "mark", NAME_IN(kind_names, m->kind));
	json_string(j, "text", buf_text(&words));
	json_fields(j, m, text_of(m, r));
	buf_release(&words);
}
