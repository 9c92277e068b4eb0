/* SPDX-License-Identifier: MIT */
/*
 * Uprobes, return probes and USDT. One link for each file holds all its sites: detaching a thousand
 * of them takes some ten milliseconds. A link is all or nothing, so when the kernel refuses one,
 * halves are tried until the sites that it does not want are known; those are left out and named.
 * Without such links (before Linux 6.6) each site is a perf event of its own.
 *
 * Breakpoints are set in every process that maps the file. When only some are asked for this is the
 * way only where attach_named.c cannot do it: then the prologue leaves the others out.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "bpf/attach.h"
#include "probe/run/run.h"

#define NAMES_SHOWN    3
#define PMU_BYTES      64
#define LINKS_MAX      4096 /* of one file: more halves are not tried */
#define SEMAPHORE_AT   32   /* bits of perf_event_attr.config: ref_ctr_offset */
#define SITES_PERF_BAD 100  /* from here on the slow way is worth a sentence of its own */

/* The sites of one program in one file. */
struct attachment {
	struct probe_session *s;
	struct run_program *p;
	const struct target *target;
	uint32_t first; /* number of its first site */
	uint32_t n;
	uint64_t *offsets, *semaphores, *cookies;
	bool has_semaphores;
	uint32_t n_links, n_refused;
	int errnum;	    /* of the last refusal */
	struct buf refused; /* names of the first ones */
};

static void add_refused(struct attachment *a, uint32_t i, int errnum)
{
	const struct run_site *site = &a->s->sites.v[a->first + i];

	a->errnum = errnum;
	if (a->n_refused++ >= NAMES_SHOWN)
		return;
	buf_printf(&a->refused, "%s", a->refused.n ? ", " : "");
	if (site->site->function)
		buf_printf(&a->refused, "%s", site->site->function);
	else
		buf_printf(&a->refused, "0x%llx", (unsigned long long)site->site->offset.v);
}

/* Nothing to do with one site or another. */
static bool is_of_file(int errnum)
{
	return errnum == EPERM || errnum == EACCES || errnum == ENOENT || errnum == ENOMEM ||
	       errnum == EBADF;
}

static void attach_range(struct attachment *a, uint32_t from, uint32_t n)
{
	struct bpf_uprobe_multi multi = {.path = a->target->path,
		.offsets = a->offsets + from,
		.semaphores = a->has_semaphores ? a->semaphores + from : NULL,
		.cookies = a->cookies + from,
		.n = n,
		.is_return = point_has(a->p->kind, POINT_AT_RETURN)};
	int fd = bpf_attach_uprobes(a->p->fd, &multi);

	if (fd >= 0) {
		attach_keep(a->s, fd, -1);
		a->n_links++;
		return;
	}
	if (n == 1 || is_of_file(-fd) || a->n_links + a->n_refused > LINKS_MAX) {
		for (uint32_t i = from; i < from + n; i++)
			add_refused(a, i, -fd);
		return;
	}
	attach_range(a, from, n / 2); /* as deep as the number has bits */
	attach_range(a, from + n / 2, n - n / 2);
}

static long read_pmu(const char *pmu, const char *file, const char *format)
{
	char *path = mem_printf("/sys/bus/event_source/devices/%s/%s", pmu, file);
	struct buf b = {0};
	int value = -1;

	if (file_read(&b, path, PMU_BYTES, NULL) < 0 || sscanf(buf_text(&b), format, &value) != 1)
		value = -1;
	buf_release(&b);
	free(path);
	return value;
}

int pmu_type(const char *pmu)
{
	return (int)read_pmu(pmu, "type", "%d");
}

int pmu_return_bit(const char *pmu)
{
	return (int)read_pmu(pmu, "format/retprobe", "config:%d");
}

static int attach_perf_site(struct attachment *a, uint32_t i, int type, int return_bit)
{
	struct perf_event_attr attr = {.type = (uint32_t)type,
		.config = a->semaphores[i] << SEMAPHORE_AT,
		.config1 = (uintptr_t)a->target->path,
		.config2 = a->offsets[i]};
	int rc;

	if (point_has(a->p->kind, POINT_AT_RETURN))
		attr.config |= 1ull << return_bit;
	rc = attach_event(a->s, a->p->fd, &attr, 0, a->p->uses_site ? a->cookies[i] : 0);
	a->n_links += rc == 0;
	return rc;
}

static int attach_by_perf(struct attachment *a, struct err *err)
{
	int type = pmu_type("uprobe"), return_bit = pmu_return_bit("uprobe");

	if (type < 0 || (point_has(a->p->kind, POINT_AT_RETURN) && return_bit < 0))
		return err_set(err, ERR_UNSUPPORTED,
			"%s: this kernel has no uprobes (CONFIG_UPROBE_EVENTS)",
			a->p->points.v[0]->spec.text);
	if (a->n >= SITES_PERF_BAD)
		session_note(a->s,
			"%s: %u sites without uprobe_multi links (Linux 6.6): detaching will take long",
			a->p->points.v[0]->spec.text, a->n);
	for (uint32_t i = 0; i < a->n; i++) {
		int rc = attach_perf_site(a, i, type, return_bit);

		if (rc < 0)
			add_refused(a, i, -rc);
	}
	return 0;
}

static const char *why_refused(int errnum)
{
	if (errnum == EOPNOTSUPP || errnum == 524 /* ENOTSUPP, the kernel's own */ ||
		errnum == EINVAL)
		return "the kernel does not put a probe on that instruction";
	return strerror(errnum);
}

static int report(struct attachment *a, struct err *err)
{
	const char *text = a->p->points.v[0]->spec.text;

	if (!a->n_refused)
		return 0;
	if (a->errnum == EPERM || a->errnum == EACCES)
		return kernel_refusal(err, a->errnum, text);
	if (a->n_refused == a->n && !a->p->points.v[0]->spec.is_glob)
		return err_set(err, ERR_UNSUPPORTED, "%s: cannot be attached in %s: %s", text,
			a->target->path, why_refused(a->errnum));
	session_note(a->s, "%s: %u of %u sites in %s are left out (%s%s): %s", text, a->n_refused,
		a->n, a->target->path, buf_text(&a->refused),
		a->n_refused > NAMES_SHOWN ? ", ..." : "", why_refused(a->errnum));
	return 0;
}

static int attach_file(struct attachment *a, struct err *err)
{
	int rc = 0;

	a->offsets = mem_calloc(a->n, 3 * sizeof(*a->offsets));
	a->semaphores = a->offsets + a->n;
	a->cookies = a->semaphores + a->n;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct site *site = a->s->sites.v[a->first + i].site;

		a->offsets[i] = site->offset.v;
		a->semaphores[i] = site->semaphore;
		a->has_semaphores |= site->semaphore != 0;
		a->cookies[i] = a->first + i;
	}
	if (a->s->features.has_uprobe_multi)
		attach_range(a, 0, a->n);
	else
		rc = attach_by_perf(a, err);
	if (rc == 0)
		rc = report(a, err);
	a->s->facts.n_sites += a->n - a->n_refused;
	free(a->offsets);
	buf_release(&a->refused);
	return rc;
}

int attach_uprobe(struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	uint32_t i = p->first_site, end = p->first_site + p->n_sites;
	int rc = 0;

	(void)name;
	while (i < end && rc == 0) {
		struct attachment a = {.s = s, .p = p, .target = s->sites.v[i].target, .first = i};

		while (i < end && s->sites.v[i].target == a.target)
			i++;
		a.n = i - a.first;
		rc = attach_file(&a, err);
	}
	return rc;
}
