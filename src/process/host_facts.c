/* SPDX-License-Identifier: MIT */
#include "process/host_facts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

#define CPUINFO_BYTES_MAX ((size_t)16 << 20)

void host_fact_number(struct trace_writer *w, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", value);
	trace_writer_meta(w, key, text);
}

static void write_cpu_model(struct trace_writer *w)
{
	struct buf b = {0};
	char *p, *end;

	if (file_read(&b, "/proc/cpuinfo", CPUINFO_BYTES_MAX, NULL) == 0) {
		buf_text(&b);
		p = strstr((char *)b.p, "model name");
		p = p ? strchr(p, ':') : NULL;
		end = p ? strchr(p, '\n') : NULL;
		if (p && end) {
			*end = 0;
			trace_writer_meta(w, "cpu", p + 1 + strspn(p + 1, " "));
		}
	}
	buf_release(&b);
}

void host_facts_write(struct trace_writer *w)
{
	struct utsname u;
	char cwd[PATH_MAX];
	struct buf b = {0};

	if (uname(&u) == 0) {
		trace_writer_meta(w, "host", u.nodename);
		buf_printf(&b, "%s %s %s", u.sysname, u.release, u.machine);
		trace_writer_meta(w, "os", buf_text(&b));
		buf_release(&b);
	}
	if (getcwd(cwd, sizeof(cwd)))
		trace_writer_meta(w, "cwd", cwd);
	write_cpu_model(w);
	host_fact_number(w, "n_cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	host_fact_number(w, "page_bytes", (uint64_t)sysconf(_SC_PAGESIZE));
	host_fact_number(w, "start_realtime_ns", clock_read_ns(CLOCK_REALTIME));
	host_fact_number(w, "start_monotonic_ns", clock_mono_ns());
	trace_writer_meta(w, "weir_version", WEIR_VERSION);
}

static void write_command(struct trace_writer *w, char *const *argv)
{
	struct buf b = {0};

	for (; *argv; argv++) {
		if (b.n)
			buf_put_u8(&b, ' ');
		buf_put_shell_word(&b, *argv);
	}
	trace_writer_meta(w, "command", buf_text(&b));
	buf_release(&b);
}

void host_facts_targets(struct trace_writer *w, const struct host_targets *t)
{
	struct buf b = {0};

	trace_writer_meta(w, "mode", t->system_wide ? "system" : t->command ? "launch" : "attach");
	if (t->command)
		write_command(w, t->command);
	for (size_t i = 0; i < t->n_pids; i++)
		buf_printf(&b, "%s%d", i ? "," : "", t->pids[i]);
	if (!t->command && !t->system_wide)
		trace_writer_meta(w, "pids", buf_text(&b));
	buf_release(&b);
}
