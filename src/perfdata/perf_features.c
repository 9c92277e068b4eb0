/* SPDX-License-Identifier: MIT */
#include "perfdata/perf_features.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "perfdata/perf_layout.h"

#define HAS_BUILD_ID_SIZE (1u << 15) /* of a build-id record's misc */
#define BUILD_ID_ROOM	  24
#define COMMAND_WORDS_MAX 65536u

void perf_features_init(struct perf_features *f)
{
	memset(f, 0, sizeof(*f));
	f->kernel = (struct image_identity){.kind = IMAGE_KIND_KERNEL,
		.path = mem_strdup("[kernel]"),
		.bits = 64,
		.machine = EM_X86_64};
}

void perf_features_release(struct perf_features *f)
{
	free(f->host);
	free(f->os_release);
	free(f->machine);
	free(f->cpu);
	free(f->command);
	for (size_t i = 0; i < f->build_ids.n; i++)
		free(f->build_ids.v[i].path);
	vec_release(&f->build_ids);
	map_release(&f->by_path);
	image_identity_release(&f->kernel);
}

/* A length, and so many bytes with zeros at the end. */
static struct span take_text(struct cursor *c)
{
	struct span text = cursor_bytes(c, cursor_u32(c));

	text.n = text.n ? strnlen((const char *)text.p, text.n) : 0;
	return text;
}

static void keep_text(char **to, struct cursor *c)
{
	struct span text = take_text(c);

	if (*to || c->failed || !text.n)
		return;
	*to = mem_strndup((const char *)text.p, text.n);
}

static void take_command(struct perf_features *f, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	struct buf line = {0};

	for (uint32_t i = 0; i < n && i < COMMAND_WORDS_MAX && !c->failed; i++) {
		struct span word = take_text(c);
		char *text = mem_strndup((const char *)word.p, word.n);

		if (line.n)
			buf_put_u8(&line, ' ');
		buf_put_shell_word(&line, text);
		free(text);
	}
	if (!f->command && !c->failed && line.n)
		f->command = mem_strdup(buf_text(&line));
	buf_release(&line);
}

static void take_events(struct cursor *c, struct perf_events *events)
{
	uint32_t n = cursor_u32(c), attr_bytes = cursor_u32(c);

	for (uint32_t i = 0; i < n && !c->failed; i++) {
		uint64_t n_ids;
		struct span name, ids;

		cursor_skip(c, attr_bytes);
		n_ids = cursor_u32(c);
		name = take_text(c);
		ids = cursor_bytes(c, n_ids * sizeof(uint64_t));
		if (c->failed)
			break;
		if (!n_ids && n == events->rows.n && !events->rows.v[i].name && name.n)
			events->rows.v[i].name = mem_strndup((const char *)name.p, name.n);
		for (struct cursor id = cursor_of(ids); cursor_left(&id);)
			perf_events_name(events, cursor_u64(&id), name);
	}
}

/* Of those that were kept in 20 bytes, shorter ones have zeros behind them. */
static size_t plain_bytes(const uint8_t *id)
{
	static const uint8_t zeros[12];

	if (!memcmp(id + 8, zeros, 12))
		return 8;
	return !memcmp(id + 16, zeros, 4) ? 16 : PERF_BUILD_ID_BYTES;
}

bool perf_features_take_build_id(struct perf_features *f, uint16_t misc, struct span body)
{
	bool of_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct cursor c = cursor_of(body);
	struct perf_build_id id = {0};
	uint8_t bytes[BUILD_ID_ROOM];
	uint64_t *at;

	cursor_u32(&c); /* pid */
	cursor_take(&c, bytes, sizeof(bytes));
	if (c.failed || f->build_ids.n == PERF_BUILD_IDS_MAX)
		return false;
	id.n = misc & HAS_BUILD_ID_SIZE && bytes[PERF_BUILD_ID_BYTES] <= PERF_BUILD_ID_BYTES
		       ? bytes[PERF_BUILD_ID_BYTES]
		       : (uint8_t)plain_bytes(bytes);
	memcpy(id.bytes, bytes, id.n);
	id.path = mem_strndup((const char *)c.p, strnlen((const char *)c.p, cursor_left(&c)));
	if (of_kernel && !strncmp(id.path, "[kernel", 7)) {
		f->kernel.build_id_n = id.n;
		memcpy(f->kernel.build_id, id.bytes, id.n);
	}
	at = map_ensure(&f->by_path, map_hash_bytes(id.path, strlen(id.path)), NULL);
	if (*at) {
		free(id.path);
		return true;
	}
	vec_push(&f->build_ids, id);
	*at = f->build_ids.n;
	return true;
}

static bool take_build_ids(struct perf_features *f, struct cursor *c)
{
	struct perf_event_header h;

	while (cursor_left(c) >= sizeof(h)) {
		cursor_take(c, &h, sizeof(h));
		if (h.size < sizeof(h) || !perf_features_take_build_id(
						  f, h.misc, cursor_bytes(c, h.size - sizeof(h))))
			return false;
	}
	return true;
}

static void take_clock(struct perf_features *f, struct cursor *c)
{
	cursor_u32(c); /* version */
	f->clock_id = cursor_u32(c);
	f->wall_ns = cursor_u64(c);
	f->clock_ns = cursor_u64(c);
	f->has_clock = !c->failed;
}

bool perf_features_take(
	struct perf_features *f, uint64_t feature, struct span bytes, struct perf_events *events)
{
	struct cursor c = cursor_of(bytes);

	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		return take_build_ids(f, &c);
	case PERF_FEATURE_HOSTNAME:
		keep_text(&f->host, &c);
		break;
	case PERF_FEATURE_OSRELEASE:
		keep_text(&f->os_release, &c);
		break;
	case PERF_FEATURE_ARCH:
		keep_text(&f->machine, &c);
		break;
	case PERF_FEATURE_N_CPUS:
		cursor_u32(&c); /* there; the next are those that run */
		f->n_cpus = cursor_u32(&c);
		break;
	case PERF_FEATURE_CPU:
		keep_text(&f->cpu, &c);
		break;
	case PERF_FEATURE_COMMAND:
		take_command(f, &c);
		break;
	case PERF_FEATURE_EVENTS:
		take_events(&c, events);
		break;
	case PERF_FEATURE_SAMPLE_TIME:
		f->first_ns = cursor_u64(&c);
		f->last_ns = cursor_u64(&c);
		break;
	case PERF_FEATURE_CLOCK:
		take_clock(f, &c);
		break;
	default:
		break;
	}
	return !c.failed;
}

void perf_features_take_kernel(struct perf_features *f, const char *name, uint64_t address)
{
	static const char begin[] = "[kernel.kallsyms]";
	const char *symbol = name + sizeof(begin) - 1;

	if (!strncmp(name, begin, sizeof(begin) - 1) && !f->kernel.content_hash &&
		(!strcmp(symbol, "_text") || !strcmp(symbol, "_stext")))
		f->kernel.content_hash = kernel_content_hash(address);
}

struct span perf_features_build_id(const struct perf_features *f, const char *path)
{
	const uint64_t *at = map_find(&f->by_path, map_hash_bytes(path, strlen(path)));
	const struct perf_build_id *id = at ? &f->build_ids.v[*at - 1] : NULL;

	if (!id || strcmp(id->path, path) != 0)
		return (struct span){NULL, 0};
	return (struct span){id->bytes, id->n};
}
