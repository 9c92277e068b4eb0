/* SPDX-License-Identifier: MIT */
/* What this machine permits and lacks, with the command that would fix it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/host_option.h"
#include "cmd/count_run.h"
#include "probe/run/probe_session.h"
#include "process/proc.h"
#include "record/kernel_sources.h"
#include "record/hooks/hooks.h"
#include "record/perf_set.h"
#include "steps/record/step_engine.h"
#include "symbols/catalog/catalog.h"
#include "symbols/source/debuginfod.h"
#include "symbols/symtab.h"

enum verdict { VERDICT_GOOD, VERDICT_LIMITED, VERDICT_MISSING };

struct finding {
	enum verdict verdict;
	char text[512];
	char fix[256]; /* "" when nothing is to be done, or nothing can be */
};

struct check {
	const char *name;
	void (*run)(struct finding *f);
};

static const char *const verdict_names[] = {"good", "limited", "missing"};

static void say(struct finding *f, enum verdict verdict, const char *fix, const char *text)
{
	f->verdict = verdict;
	snprintf(f->text, sizeof(f->text), "%s", text);
	snprintf(f->fix, sizeof(f->fix), "%s", fix);
}

/* Opens (and closes) an event as a recording would. */
static int try_event(
	const char *name, bool user_only, bool system_wide, struct perf_set *set, struct err *err)
{
	struct perf_options o = {.hz = 99, .user_only = user_only};
	int rc = event_specs_parse(name, o.events, &o.n_events, err);

	if (rc == 0)
		rc = perf_set_init(set, &o, err);
	if (rc == 0 && system_wide) {
		rc = perf_set_add(set, -1, err);
		if (rc < 0)
			perf_set_release(set);
	}
	return rc;
}

static void check_kernel(struct finding *f)
{
	struct utsname u;

	if (uname(&u) == 0)
		snprintf(f->text, sizeof(f->text), "%s %s, %s, %ld CPUs", u.sysname, u.release,
			u.machine, sysconf(_SC_NPROCESSORS_ONLN));
}

static void check_sampling(struct finding *f)
{
	struct perf_set set;
	struct err err;

	if (try_event("cpu-clock", true, false, &set, &err) < 0) {
		say(f, VERDICT_MISSING, "sysctl kernel.perf_event_paranoid=2", err.text);
		return;
	}
	snprintf(f->text, sizeof(f->text),
		"own processes can be sampled by the CPU clock (rings of %zu kB, stack copies of "
		"%u bytes%s)",
		set.ring_bytes >> 10, set.stack_bytes,
		set.has_build_id ? ", build-ids from the kernel" : "");
	perf_set_release(&set);
}

static void check_deep_stacks(struct finding *f)
{
	struct perf_set set;
	struct err err;

	if (try_event("cpu-clock", true, false, &set, &err) < 0) {
		say(f, VERDICT_MISSING, "", err.text);
		return;
	}
	if (set.deep)
		say(f, VERDICT_GOOD, "", "stacks of up to 1 MB are walked to their end (by BPF)");
	else
		say(f, VERDICT_LIMITED, "run as root, or with CAP_BPF and CAP_PERFMON",
			"stacks deeper than the kernel's copy, and of code that keeps its caller's "
			"place below the stack pointer, are shown from the inside only");
	perf_set_release(&set);
}

static void check_kernel_stacks(struct finding *f)
{
	struct perf_set set;
	struct err err;

	if (try_event("cpu-clock", false, false, &set, &err) < 0) {
		say(f, VERDICT_MISSING, "", err.text);
		return;
	}
	if (set.has_kernel)
		say(f, VERDICT_GOOD, "", "time inside the kernel is shown, with its call chain");
	else
		say(f, VERDICT_LIMITED, "sysctl kernel.perf_event_paranoid=1",
			"time inside the kernel is not shown");
	perf_set_release(&set);
}

static void check_system_wide(struct finding *f)
{
	struct perf_set set;
	struct err err;

	if (try_event("cpu-clock", false, true, &set, &err) < 0) {
		say(f, VERDICT_LIMITED, "sysctl kernel.perf_event_paranoid=0", err.text);
		return;
	}
	say(f, VERDICT_GOOD, "", "the whole machine can be recorded (-a)");
	perf_set_release(&set);
}

static void check_counters(struct finding *f)
{
	struct perf_set set;
	struct err err;

	if (try_event("cycles", true, false, &set, &err) < 0) {
		say(f, VERDICT_LIMITED, "",
			"no hardware counters here; the CPU clock is used instead");
		return;
	}
	say(f, VERDICT_GOOD, "", "hardware counters work (-e cycles, instructions, ...)");
	perf_set_release(&set);
}

static void check_kernel_names(struct finding *f)
{
	struct symtab *t;
	struct err err;

	if (symtab_new_kallsyms(&t, "/proc/kallsyms", &err) < 0) {
		say(f, VERDICT_LIMITED,
			proc_setting("kernel/kptr_restrict", 1)
				? "sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
				: "sysctl kernel.perf_event_paranoid=1",
			err.text);
		return;
	}
	snprintf(f->text, sizeof(f->text), "%zu kernel functions can be named", symtab_n(t));
	symtab_free(t);
}

static void check_attach(struct finding *f)
{
	say(f, VERDICT_GOOD, "",
		geteuid() == 0 ? "any process can be attached to"
			       : "own processes can be attached to, others by root only");
}

static void check_scripts(struct finding *f)
{
	struct probe_kernel k;

	probe_kernel_ask(&k);
	if (!k.can_run)
		say(f, VERDICT_LIMITED, "run as root, or with CAP_BPF and CAP_PERFMON", k.why.text);
	else if (!k.has_btf)
		say(f, VERDICT_LIMITED, "a kernel with CONFIG_DEBUG_INFO_BTF",
			"trace scripts can run, but without thread-locals and kernel structures");
	else if (!k.has_uprobe_multi)
		say(f, VERDICT_LIMITED, "Linux 6.6 or newer",
			"trace scripts can run, but many functions take long to detach from");
	else if (!k.can_sleep)
		say(f, VERDICT_LIMITED, "Linux 6.0 or newer",
			"trace scripts can run, but texts that are not in memory cannot be read");
	else
		say(f, VERDICT_GOOD, "", "trace scripts can run (weir probe)");
}

static void check_compat(struct finding *f)
{
	if (access("/lib/ld-linux.so.2", F_OK) == 0 || access("/lib32/libc.so.6", F_OK) == 0)
		say(f, VERDICT_GOOD, "", "32-bit programs can run and are recorded like others");
	else
		say(f, VERDICT_LIMITED, "apt-get install libc6-i386",
			"no 32-bit C library is installed; 32-bit programs would be recorded all the "
			"same");
}

static void check_debug_files(struct finding *f)
{
	if (access("/usr/lib/debug/.build-id", F_OK) == 0)
		say(f, VERDICT_GOOD, "", "separate debug files are under /usr/lib/debug");
	else
		say(f, VERDICT_LIMITED, "",
			"no separate debug files are installed: functions of stripped programs that "
			"are not exported are shown by address");
}

static void check_unloads(struct finding *f)
{
	struct tracepoint munmap;
	struct err err;

	if (tracepoint_find(&munmap, kernel_event_tracepoint(KERNEL_EVENT_MUNMAP), &err) < 0)
		say(f, VERDICT_LIMITED, "run as root",
			"when a library is unloaded is known only by what takes its place");
	else
		say(f, VERDICT_GOOD, "", "the moment a library is unloaded is seen (munmap)");
}

static void check_functions(struct finding *f)
{
	struct hooks_options options = {.events = "main"};
	int scope = proc_setting("kernel/yama/ptrace_scope", 0);
	struct hooks *h;
	struct err err;

	if (hooks_open(&h, &options, &err) < 0) {
		say(f, VERDICT_MISSING, "", err.text);
		return;
	}
	hooks_close(h);
	if (geteuid() != 0 && scope > 0)
		say(f, VERDICT_LIMITED, "sysctl kernel.yama.ptrace_scope=0",
			"functions of a command can be hooked (--functions); of running processes by "
			"root only");
	else
		say(f, VERDICT_GOOD, "",
			"functions of commands and of running processes can be hooked "
			"(--functions)");
}

/* Frames of Java are in the memory of the JVM. */
static void check_java(struct finding *f)
{
	int scope = proc_setting("kernel/yama/ptrace_scope", 0);
	char own = 1, copy = 0;

	if (!proc_read_memory(getpid(), (uint64_t)(uintptr_t)&own, &copy, 1) || copy != own)
		say(f, VERDICT_LIMITED, "",
			"frames of Java are addresses: the memory of a JVM cannot be read");
	else if (geteuid() != 0 && scope > 1)
		say(f, VERDICT_LIMITED, "sysctl kernel.yama.ptrace_scope=1",
			"frames of Java are addresses: only root may read the memory of a JVM");
	else if (geteuid() != 0 && scope == 1)
		say(f, VERDICT_LIMITED, "sysctl kernel.yama.ptrace_scope=0",
			"Java has its frames in commands; in running JVMs for root only");
	else
		say(f, VERDICT_GOOD, "", "Java has its frames in commands and in running JVMs");
}

/* Which engines work here, and why the others do not. */
static void check_steps(struct finding *f)
{
	int scope = proc_setting("kernel/yama/ptrace_scope", 0);
	struct buf good = {0}, bad = {0};

	for (size_t i = 0; step_engines[i]; i++) {
		const char *why = step_engines[i]->hindrance();

		if (why)
			buf_printf(&bad, "; not by %s: %s", step_engines[i]->name, why);
		else
			buf_printf(&good, "%s%s", good.n ? ", " : "", step_engines[i]->name);
	}
	f->verdict = good.n ? VERDICT_GOOD : VERDICT_LIMITED;
	snprintf(f->text, sizeof(f->text), "instructions %s (weir steps)%s%s%s",
		good.n ? "can be traced" : "cannot be traced", good.n ? " by " : "",
		good.n ? buf_text(&good) : "", bad.n ? buf_text(&bad) : "");
	if (good.n && geteuid() != 0 && scope > 0) {
		f->verdict = VERDICT_LIMITED;
		snprintf(f->text, sizeof(f->text),
			"instructions of a command can be traced (weir steps) by %s, of running "
			"processes by root only%s",
			buf_text(&good), bad.n ? buf_text(&bad) : "");
		snprintf(f->fix, sizeof(f->fix), "sysctl kernel.yama.ptrace_scope=0");
	}
	buf_release(&good);
	buf_release(&bad);
}

/* Programs as they are, by the translator inside them. */
static void check_count(struct finding *f)
{
	const char *why = count_run_hindrance();

	if (why) {
		f->verdict = VERDICT_LIMITED;
		snprintf(f->text, sizeof(f->text), "programs cannot be counted as they are: %s", why);
	} else if (geteuid() != 0 && proc_setting("kernel/yama/ptrace_scope", 0) > 0) {
		say(f, VERDICT_LIMITED, "sysctl kernel.yama.ptrace_scope=0",
			"a command can be counted as it is (weir count --), running processes by root only");
	} else {
		say(f, VERDICT_GOOD, "",
			"commands and running processes can be counted as they are (weir count --)");
	}
}

static void check_system_calls(struct finding *f)
{
	struct tracepoint enter;
	struct err err;

	if (tracepoint_find(&enter, kernel_event_tracepoint(KERNEL_EVENT_SYS_ENTER), &err) < 0)
		say(f, VERDICT_LIMITED, "run as root", "system calls cannot be recorded (--kinds)");
	else
		say(f, VERDICT_GOOD, "", "system calls can be recorded (--kinds syscall)");
}

static void check_debuginfod(struct finding *f)
{
	static const uint8_t nobody[20] = {0};
	char *path = NULL;
	struct err err;

	if (!getenv("DEBUGINFOD_URLS")) {
		say(f, VERDICT_GOOD, "",
			"no debuginfod server is asked ($DEBUGINFOD_URLS names none)");
		return;
	}
	/* No file has this build-id: the answer tells whether the servers can be asked. */
	if (debuginfod_find(DEBUGINFOD_DEBUG_FILE, (struct span){nobody, sizeof(nobody)},
		    &(struct debuginfod_options){.timeout_s = 5}, &path, &err) == ERR_NOT_FOUND)
		say(f, VERDICT_GOOD, "",
			"debuginfod servers answer; weir symbols merge and add ask them");
	else
		say(f, VERDICT_LIMITED,
			err.code == ERR_UNSUPPORTED ? "apt-get install libdebuginfod1" : "",
			err.text);
	free(path);
}

static void check_catalog(struct finding *f)
{
	char *path = catalog_default_path();
	struct catalog *catalog;
	struct err err = {0};

	if (!path || catalog_open(&catalog, path, &err) == ERR_NOT_FOUND) {
		say(f, VERDICT_GOOD, "", "no merged symbol file of your own (weir symbols add)");
	} else if (err.code) {
		say(f, VERDICT_LIMITED, "", err.text);
	} else {
		snprintf(f->text, sizeof(f->text), "'%s' has the symbols of %zu images", path,
			catalog_n(catalog));
		catalog_close(catalog);
	}
	free(path);
}

static const struct check checks[] = {
	{"kernel", check_kernel},
	{"sampling", check_sampling},
	{"deep stacks", check_deep_stacks},
	{"kernel stacks", check_kernel_stacks},
	{"system-wide", check_system_wide},
	{"counters", check_counters},
	{"kernel names", check_kernel_names},
	{"attach", check_attach},
	{"functions", check_functions},
	{"java", check_java},
	{"system calls", check_system_calls},
	{"scripts", check_scripts},
	{"steps", check_steps},
	{"count", check_count},
	{"32-bit", check_compat},
	{"unloads", check_unloads},
	{"debug files", check_debug_files},
	{"debuginfod", check_debuginfod},
	{"catalog", check_catalog},
};

static void print_text(const struct finding *findings, size_t n)
{
	const struct event_spec *events;
	size_t n_events;

	for (size_t i = 0; i < n; i++) {
		printf("%-8s %-14s %s\n", verdict_names[findings[i].verdict], checks[i].name,
			findings[i].text);
		if (findings[i].fix[0])
			printf("%-8s %-14s to change that: %s\n", "", "", findings[i].fix);
	}
	printf("%-8s %-14s", "", "events for -e");
	events = event_specs_known(&n_events);
	for (size_t i = 0; i < n_events; i++)
		printf(" %s", events[i].name);
	printf(" rHEX wall\n");
}

static void print_json(const struct finding *findings, size_t n)
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_u64(&j, "weir", 1);
	json_string(&j, "kind", "doctor");
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < n; i++) {
		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "name", checks[i].name);
		json_string(&j, "verdict", verdict_names[findings[i].verdict]);
		json_string(&j, "text", findings[i].text);
		json_string(&j, "fix", findings[i].fix[0] ? findings[i].fix : NULL);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
}

struct doctor_arguments {
	bool json;
	struct host_arguments host;
};

static const struct option_spec doctor_options[] = {
	{0, "json", OPTION_FLAG, NULL, "one JSON object instead of text", offsetof(struct doctor_arguments, json)},
	HOST_OPTIONS(offsetof(struct doctor_arguments, host)),
	{0},
};

#define N_CHECKS (sizeof(checks) / sizeof(checks[0]))

static int run(const struct command *command, int argc, char **argv)
{
	struct doctor_arguments a = {0};
	struct finding findings[N_CHECKS] = {0};
	uint64_t given;
	int status = STATUS_DONE;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	if (argc)
		return options_usage_error(command, "'%s': takes no operand", argv[0]);
	status = host_check(command, &a.host);
	if (status || a.host.host)
		return status ? status
			      : host_run(&(struct host_request){
					.command = command, .from = &a, .given = given, .host = &a.host});
	for (size_t i = 0; i < N_CHECKS; i++) {
		checks[i].run(&findings[i]);
		if (findings[i].verdict == VERDICT_MISSING)
			status = STATUS_FAILED;
	}
	if (a.json)
		print_json(findings, N_CHECKS);
	else
		print_text(findings, N_CHECKS);
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[OPTIONS]",
	.summary = "what this machine permits and lacks, and how to change it",
	.options = doctor_options,
	.details = "Exit status 1 when nothing can be recorded here.\n",
	.run = run,
};
