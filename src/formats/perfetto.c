/* SPDX-License-Identifier: MIT */
/*
 * A Perfetto trace: packets of protos/perfetto/trace/trace_packet.proto, all of one sequence, in order of time. Names,
 * frames and stacks are sent with the first packet that refers to them. Calls are slices that begin and end
 * to the nanosecond on the track of their thread (a coroutine's on a track below it), waits are slices on a
 * track of their own, since a wait may overlap a call; losses are instants of the whole trace.
 */
#include "formats/exports.h"

#include <stdlib.h>
#include <string.h>

#include "formats/protobuf.h"
#include "formats/timed_walk.h"

enum trace_field { TRACE_PACKET = 1 };
enum packet_field {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66
};
enum sequence_flag { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum defaults_field { DEFAULTS_PERF_SAMPLE = 12 };
enum perf_defaults_field { PERF_DEFAULTS_TIMEBASE = 1 };
enum timebase_field { TIMEBASE_FREQUENCY = 2, TIMEBASE_NAME = 10 };
enum descriptor_field {
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PARENT = 5
};
enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum event_field { EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum event_type { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3 };
enum sample_field {
	SAMPLE_CPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_STACK = 4,
	SAMPLE_MODE = 5
};
enum sample_mode { MODE_KERNEL = 1, MODE_USER = 2 };
enum interned_field {
	INTERNED_EVENT_NAMES = 2,
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_SOURCE_PATHS = 18,
	INTERNED_MAPPINGS = 19
};
enum interned_item_field { ITEM_IID = 1, ITEM_TEXT = 2 };
enum mapping_field { MAPPING_BUILD_ID = 2, MAPPING_PATH = 7 };
enum frame_field {
	FRAME_NAME = 2,
	FRAME_MAPPING = 3,
	FRAME_PC = 4,
	FRAME_FILE = 5,
	FRAME_LINE = 6
};
enum stack_field { STACK_FRAMES = 2 };

#define SEQUENCE_ID 1
/* Tracks: a lane has the number that the walk gives it, which is that of its thread for the first one. */
#define TRACK_PROCESS ((uint64_t)1 << 40) /* + its first thread */
#define TRACK_WAITS   ((uint64_t)2 << 40) /* + the thread */
#define TRACK_LOSSES  ((uint64_t)3 << 40)

struct perfetto {
	const struct profile *profile;
	struct export_stacks stacks;
	FILE *out;
	struct buf packet, part, inner, item;
	struct buf interned; /* what the next packet sends */
	/* By number: what was sent. Numbers of interned things are those of the export's tables. */
	VEC(bool) has_function, has_event_name, has_place, has_node, has_lane;
	bool *has_image, *has_waits;
	struct intern files;
	uint32_t n_files_sent;
	bool has_losses;
	VEC(uint32_t) path;
};

/* ---- packets ---- */

static void put_packet(struct perfetto *p, uint64_t flags)
{
	struct buf head = {0};

	protobuf_number(&p->packet, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	protobuf_number(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
	if (p->interned.n)
		protobuf_message(&p->packet, PACKET_INTERNED_DATA, &p->interned);
	buf_reset(&p->interned);
	protobuf_tag(&head, TRACE_PACKET, PROTOBUF_WIRE_BYTES);
	buf_put_uleb(&head, p->packet.n);
	fwrite(head.p, 1, head.n, p->out);
	fwrite(p->packet.p, 1, p->packet.n, p->out);
	buf_release(&head);
	buf_reset(&p->packet);
}

static void begin_packet(struct perfetto *p, uint64_t time)
{
	buf_reset(&p->packet);
	protobuf_number(&p->packet, PACKET_TIMESTAMP, time);
	buf_reset(&p->part);
}

/* ---- tracks ---- */

/* Imports may have no numbers; readers need some. */
static uint64_t tid_of(const struct perfetto *p, uint32_t thread)
{
	const struct profile_thread *t = &p->profile->threads[thread];

	return t->tid ? t->tid : thread;
}

static uint64_t pid_of(const struct perfetto *p, uint32_t thread)
{
	const struct profile_thread *t = &p->profile->threads[thread];

	return t->pid ? t->pid : tid_of(p, thread);
}

static const char *name_of(const struct profile_thread *thread)
{
	return *thread->name ? thread->name : thread->root_name;
}

static void put_track(struct perfetto *p)
{
	protobuf_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->part);
	put_packet(p, 0);
}

static void put_process(struct perfetto *p, uint32_t thread)
{
	begin_packet(p, p->profile->start);
	protobuf_number(&p->part, DESCRIPTOR_UUID, TRACK_PROCESS + thread);
	buf_reset(&p->inner);
	protobuf_number(&p->inner, PROCESS_PID, pid_of(p, thread));
	protobuf_text(&p->inner, PROCESS_NAME, name_of(&p->profile->threads[thread]));
	protobuf_message(&p->part, DESCRIPTOR_PROCESS, &p->inner);
	put_track(p);
}

static void put_thread(struct perfetto *p, uint32_t thread)
{
	begin_packet(p, p->profile->start);
	protobuf_number(&p->part, DESCRIPTOR_UUID, thread);
	buf_reset(&p->inner);
	protobuf_number(&p->inner, THREAD_PID, pid_of(p, thread));
	protobuf_number(&p->inner, THREAD_TID, tid_of(p, thread));
	protobuf_text(&p->inner, THREAD_NAME, name_of(&p->profile->threads[thread]));
	protobuf_message(&p->part, DESCRIPTOR_THREAD, &p->inner);
	put_track(p);
}

static void put_child_track(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name)
{
	begin_packet(p, p->profile->start);
	protobuf_number(&p->part, DESCRIPTOR_UUID, uuid);
	protobuf_text(&p->part, DESCRIPTOR_NAME, name);
	protobuf_number(&p->part, DESCRIPTOR_PARENT, parent);
	put_track(p);
}

/* A process is named by its first thread, which has its number. */
static void put_threads(struct perfetto *p)
{
	const struct profile *profile = p->profile;

	for (uint32_t id = 1; id < profile->n_threads; id++)
		if (profile->threads[id].is_wanted && pid_of(p, id) == tid_of(p, id))
			put_process(p, id);
	for (uint32_t id = 1; id < profile->n_threads; id++)
		if (profile->threads[id].is_wanted)
			put_thread(p, id);
}

/* ---- interned data ---- */

static void intern_item(
	struct perfetto *p, enum interned_field field, uint64_t iid, const char *text)
{
	buf_reset(&p->item);
	protobuf_number(&p->item, ITEM_IID, iid);
	protobuf_text(&p->item, ITEM_TEXT, text);
	protobuf_message(&p->interned, field, &p->item);
}

/* Functions have their numbers as names of events and as names of frames; those are two tables. */
static void intern_event_name(struct perfetto *p, uint32_t function)
{
	vec_ensure_zero(&p->has_event_name, function + (size_t)1);
	if (!p->has_event_name.v[function])
		intern_item(p, INTERNED_EVENT_NAMES, function,
			export_stacks_routine(&p->stacks, function)->name);
	p->has_event_name.v[function] = true;
}

static void intern_image(struct perfetto *p, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(p->profile->reader, id);
	const char *path = trace_reader_string(p->profile->reader, image->path);
	struct buf hex = {0};

	if (p->has_image[id])
		return;
	p->has_image[id] = true;
	buf_put_hex(&hex, (struct span){image->build_id, image->build_id_n});
	intern_item(p, INTERNED_BUILD_IDS, id, buf_text(&hex));
	/* Readers put a slash before each part of a path. */
	intern_item(p, INTERNED_MAPPING_PATHS, id, *path == '/' ? path + 1 : path);
	buf_reset(&p->item);
	protobuf_number(&p->item, ITEM_IID, id);
	protobuf_number(&p->item, MAPPING_BUILD_ID, id);
	protobuf_number(&p->item, MAPPING_PATH, id);
	protobuf_message(&p->interned, INTERNED_MAPPINGS, &p->item);
	buf_release(&hex);
}

static uint64_t intern_file(struct perfetto *p, const char *file)
{
	uint32_t id = intern_text(&p->files, file);

	if (id == p->n_files_sent) {
		intern_item(p, INTERNED_SOURCE_PATHS, id + (uint64_t)1, file);
		p->n_files_sent++;
	}
	return id + (uint64_t)1;
}

static void intern_place(struct perfetto *p, uint32_t id)
{
	const struct export_place *place = &p->stacks.places.v[id];
	const struct trace_frame *frame = trace_reader_frame(p->profile->reader, place->frame);
	uint64_t file = place->file ? intern_file(p, place->file) : 0;

	vec_ensure_zero(&p->has_place, id + (size_t)1);
	if (p->has_place.v[id])
		return;
	p->has_place.v[id] = true;
	vec_ensure_zero(&p->has_function, place->function + (size_t)1);
	if (!p->has_function.v[place->function])
		intern_item(p, INTERNED_FUNCTION_NAMES, place->function,
			export_stacks_routine(&p->stacks, place->function)->name);
	p->has_function.v[place->function] = true;
	if (frame->image)
		intern_image(p, frame->image);
	buf_reset(&p->item);
	protobuf_number(&p->item, ITEM_IID, id);
	protobuf_number(&p->item, FRAME_NAME, place->function);
	if (frame->image) {
		protobuf_number(&p->item, FRAME_MAPPING, frame->image);
		protobuf_tag(&p->item, FRAME_PC, PROTOBUF_WIRE_VARINT);
		buf_put_uleb(&p->item, frame->addr - (frame->is_caller && frame->addr ? 1 : 0));
	}
	protobuf_number(&p->item, FRAME_FILE, file);
	protobuf_number(&p->item, FRAME_LINE, place->line);
	protobuf_message(&p->interned, INTERNED_FRAMES, &p->item);
}

static void intern_stack(struct perfetto *p, uint32_t node)
{
	struct buf ids = {0};

	vec_ensure_zero(&p->has_node, p->stacks.nodes.n);
	if (p->has_node.v[node])
		return;
	p->has_node.v[node] = true;
	p->path.n = 0;
	for (uint32_t id = node; id; id = p->stacks.nodes.v[id].parent)
		vec_push(&p->path, p->stacks.nodes.v[id].place);
	while (p->path.n) { /* outermost first */
		uint32_t place = p->path.v[--p->path.n];

		intern_place(p, place);
		protobuf_tag(&ids, STACK_FRAMES, PROTOBUF_WIRE_VARINT);
		buf_put_uleb(&ids, place);
	}
	buf_reset(&p->item);
	protobuf_number(&p->item, ITEM_IID, node);
	buf_put(&p->item, ids.p, ids.n);
	protobuf_message(&p->interned, INTERNED_STACKS, &p->item);
	buf_release(&ids);
}

/* ---- what happens ---- */

static void add_sample(void *to, const struct sample_view *sample, uint64_t weight)
{
	struct perfetto *p = to;
	uint32_t node = export_stacks_node(&p->stacks, sample);
	const struct export_place *place = &p->stacks.places.v[p->stacks.nodes.v[node].place];
	bool in_kernel = node && export_stacks_routine(&p->stacks, place->function)->kind ==
					 FRAME_KIND_KERNEL;

	(void)weight;
	if (node)
		intern_stack(p, node);
	begin_packet(p, sample->time);
	protobuf_number(&p->part, SAMPLE_CPU, sample->cpu > 0 ? (uint64_t)sample->cpu : 0);
	protobuf_number(&p->part, SAMPLE_PID, pid_of(p, sample->thread));
	protobuf_number(&p->part, SAMPLE_TID, tid_of(p, sample->thread));
	protobuf_number(&p->part, SAMPLE_STACK, node);
	protobuf_number(&p->part, SAMPLE_MODE, in_kernel ? MODE_KERNEL : MODE_USER);
	protobuf_message(&p->packet, PACKET_PERF_SAMPLE, &p->part);
	put_packet(p, SEQUENCE_NEEDS_STATE);
}

static void put_event(struct perfetto *p, uint64_t time, enum event_type type, uint64_t track,
	uint32_t function, const char *name)
{
	begin_packet(p, time);
	protobuf_number(&p->part, EVENT_TYPE, type);
	protobuf_number(&p->part, EVENT_NAME_IID, function);
	protobuf_number(&p->part, EVENT_TRACK, track);
	if (name)
		protobuf_text(&p->part, EVENT_NAME, name);
	protobuf_message(&p->packet, PACKET_TRACK_EVENT, &p->part);
	put_packet(p, SEQUENCE_NEEDS_STATE);
}

static void add_enter(void *to, const struct timed_call *call)
{
	struct perfetto *p = to;

	vec_ensure_zero(&p->has_lane, call->lane + (size_t)1);
	if (call->chain && !p->has_lane.v[call->lane])
		put_child_track(p, call->lane, call->thread, "coroutine");
	p->has_lane.v[call->lane] = true;
	intern_event_name(p, call->function);
	put_event(p, call->from, EVENT_BEGIN, call->lane, call->function, NULL);
}

static void add_leave(void *to, const struct timed_call *call)
{
	put_event(to, call->to, EVENT_END, call->lane, 0, NULL);
}

static void add_wait(void *to, const struct timed_wait *wait)
{
	struct perfetto *p = to;
	uint64_t track = TRACK_WAITS + wait->thread;

	if (!p->has_waits[wait->thread])
		put_child_track(p, track, wait->thread, "off the CPU");
	p->has_waits[wait->thread] = true;
	put_event(p, wait->from, EVENT_BEGIN, track, 0, wait->is_ready ? "ready" : "waiting");
	put_event(p, wait->to, EVENT_END, track, 0, NULL);
}

static void add_mark(void *to, const struct timed_mark *mark)
{
	struct perfetto *p = to;
	struct buf name = {0};

	buf_put_cstr(&name, timed_mark_name(mark->kind));
	if (timed_mark_is_loss(mark->kind)) {
		buf_printf(&name, ": %llu x %s", (unsigned long long)mark->n, mark->reason);
		if (!p->has_losses)
			put_child_track(p, TRACK_LOSSES, 0, "losses");
		p->has_losses = true;
	}
	put_event(p, mark->time, EVENT_INSTANT, mark->thread ? mark->thread : TRACK_LOSSES, 0,
		buf_text(&name));
	buf_release(&name);
}

/* ---- the whole ---- */

static void put_first(struct perfetto *p)
{
	const char *hz = trace_reader_meta(p->profile->reader, "frequency");

	begin_packet(p, p->profile->start);
	buf_reset(&p->item);
	protobuf_number(&p->item, TIMEBASE_FREQUENCY, hz ? strtoull(hz, NULL, 10) : 0);
	protobuf_text(&p->item, TIMEBASE_NAME, p->profile->metric);
	buf_reset(&p->inner);
	protobuf_message(&p->inner, PERF_DEFAULTS_TIMEBASE, &p->item);
	protobuf_message(&p->part, DEFAULTS_PERF_SAMPLE, &p->inner);
	protobuf_message(&p->packet, PACKET_DEFAULTS, &p->part);
	put_packet(p, SEQUENCE_CLEARED);
}

static void perfetto_release(struct perfetto *p)
{
	struct buf *bufs[] = {&p->packet, &p->part, &p->inner, &p->item, &p->interned};

	for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
		buf_release(bufs[i]);
	vec_release(&p->has_function);
	vec_release(&p->has_event_name);
	vec_release(&p->has_place);
	vec_release(&p->has_node);
	vec_release(&p->has_lane);
	vec_release(&p->path);
	free(p->has_image);
	free(p->has_waits);
	intern_release(&p->files);
	export_stacks_release(&p->stacks);
}

int export_perfetto(const struct profile *profile, FILE *out, struct err *err)
{
	static const struct timed_visitor visitor = {.sample = add_sample,
		.enter = add_enter,
		.leave = add_leave,
		.wait = add_wait,
		.mark = add_mark};
	struct perfetto p = {.profile = profile, .out = out};
	int rc;

	if (export_has_tree_alone(profile))
		return err_set(err, ERR_FAILED, "'%s': has no times, which perfetto needs",
			trace_reader_name(profile->reader));
	export_stacks_init(&p.stacks, profile);
	p.has_image = mem_calloc(trace_reader_n_images(profile->reader), sizeof(*p.has_image));
	p.has_waits = mem_calloc(profile->n_threads, sizeof(*p.has_waits));
	put_first(&p);
	put_threads(&p);
	rc = timed_walk(&p.stacks, &visitor, &p, err);
	perfetto_release(&p);
	return rc;
}
