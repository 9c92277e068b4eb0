/* SPDX-License-Identifier: MIT */
/*
 * Reads a stream packet by packet. Code of the stream has numbers, code of a trace has generations:
 * when a step has another number than the last one at its place (an address of a space), a new
 * generation of the space begins with it. So a run has the right code at each of its addresses, and
 * code that is never overwritten needs one generation.
 */
#include "steps/stream/step_stream.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "trace/step_records.h"

/* A run with so many accesses is ended; records are of at most 1 MiB. */
#define RUN_ACCESSES_BEST 4096
/* Entries of a record of code. */
#define ENTRIES_MAX 16384
/* A run is ended at so many steps, so that a listing from any point decodes little. */
#define RUN_STEPS_BEST 65536
#define NO_THREAD      UINT32_MAX

struct stream_thread {
	uint32_t pid, id, stream;
	bool has_time;
	uint64_t time, n_steps;
};

struct stream_space {
	uint32_t number, generation;
};

struct stream_code {
	uint32_t space; /* index */
	uint32_t place; /* its address in its space */
	bool is_64;
	struct step_code entry;
};

struct stream_in {
	const char *name;
	struct span bytes;
	struct trace_writer *w; /* NULL while only checking */
	uint64_t at;		/* of the packet that is being read */
	uint32_t type;		/* of it */
	struct cursor c;	/* its payload */

	uint32_t life, code_stream;
	uint64_t code_time;
	VEC(struct stream_thread) threads;
	struct intern thread_keys; /* pid, tid, start: no thread is there twice */
	VEC(uint32_t) images;	   /* ids in the trace, by number - 1 */
	VEC(uint8_t) image_kinds;
	VEC(struct stream_space) spaces;
	struct map space_of;   /* number -> index */
	struct intern places;  /* space, address */
	VEC(uint32_t) current; /* by place: number of the code there now, plus 1 */
	VEC(struct stream_code) codes;

	uint32_t thread;    /* of the last packet "at"; NO_THREAD = there was none */
	bool has_step;	    /* that an access could be of */
	uint32_t n_of_step; /* accesses of the last step */

	struct step_run_coder run;     /* of `thread`; empty: none is begun */
	uint32_t run_space;	       /* index */
	VEC(struct step_datum) data;   /* of `run` */
	VEC(struct step_code) entries; /* code of `run` that the trace does not have yet */
	bool entries_are_64;
	struct buf record;

	uint64_t n_steps, n_marks, n_accesses, n_unknown;
	bool has_ended;
};

static int bad(const struct stream_in *in, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(const struct stream_in *in, struct err *err, const char *fmt, ...)
{
	char what[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return err_set(err, ERR_FORMAT, "'%s': packet of type %" PRIu32 " at byte %" PRIu64 ": %s",
		in->name, in->type, in->at, what);
}

static struct stream_thread *thread_of(struct stream_in *in)
{
	return &in->threads.v[in->thread];
}

/* The rest of the payload. */
static int take_text(struct stream_in *in, struct span *text, struct err *err)
{
	if (in->c.failed)
		return bad(in, err, "it is too short");
	*text = (struct span){in->c.p, cursor_left(&in->c)};
	if (memchr(text->p, 0, text->n))
		return bad(in, err, "its text has a zero byte");
	in->c.p = in->c.end;
	return 0;
}

static int take_end(struct stream_in *in, struct err *err)
{
	if (in->c.failed)
		return bad(in, err, "it is too short");
	if (cursor_left(&in->c))
		return bad(in, err, "it is too long");
	return 0;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	while (n && !p[n - 1])
		n--;
	return !n;
}

/* --- runs and their code --------------------------------------------------------------------- */

static void write_record(
	struct stream_in *in, uint32_t stream, uint64_t time, enum record_minor_step minor)
{
	trace_writer_record(
		in->w, stream, time, RECORD_MAJOR_STEP, minor, in->record.p, in->record.n);
	buf_reset(&in->record);
}

ORDER_BY(compare_entries, struct step_code, addr)

static void write_entries(struct stream_in *in, const struct stream_space *space)
{
	struct step_code_head head = {.space = space->number,
		.generation = space->generation,
		.pid = thread_of(in)->pid,
		.is_64 = in->entries_are_64,
		.n = (uint32_t)in->entries.n};

	if (!in->entries.n)
		return;
	vec_sort(&in->entries, compare_entries);
	step_code_encode(&in->record, &head, in->entries.v);
	if (thread_of(in)->time > in->code_time)
		in->code_time = thread_of(in)->time;
	write_record(in, in->code_stream, in->code_time, RECORD_STEP_CODE);
	in->entries.n = 0;
}

/* Code is in the file before a run that needs it. */
static void end_run(struct stream_in *in)
{
	const struct stream_thread *t;

	if (!in->w || !in->run.head.n)
		return;
	t = thread_of(in);
	write_entries(in, &in->spaces.v[in->run_space]);
	step_run_end(&in->run, &in->record);
	write_record(in, t->stream, t->time, RECORD_STEP_RUN);
	if (in->data.n) {
		step_data_encode(&in->record, in->data.v, (uint32_t)in->data.n);
		write_record(in, t->stream, t->time, RECORD_STEP_DATA);
	}
	in->data.n = 0;
	in->run.head.n = 0;
}

/* From here on this is the code at its place. */
static void place_code(struct stream_in *in, const struct stream_code *code, uint32_t number)
{
	struct stream_space *space = &in->spaces.v[code->space];
	uint32_t *current = &in->current.v[code->place];

	if (*current) {
		end_run(in);
		space->generation++;
	} else if (in->run_space != code->space || in->entries.n == ENTRIES_MAX) {
		end_run(in);
	}
	if (in->entries.n && in->entries_are_64 != code->is_64)
		write_entries(in, space);
	in->entries_are_64 = code->is_64;
	vec_push(&in->entries, code->entry);
	*current = number + 1;
}

static void add_step(struct stream_in *in, uint32_t number)
{
	const struct stream_code *code = &in->codes.v[number];
	const struct stream_space *space = &in->spaces.v[code->space];

	if (in->current.v[code->place] != number + 1)
		place_code(in, code, number);
	if (in->run.head.n == RUN_STEPS_BEST || in->data.n >= RUN_ACCESSES_BEST ||
		step_run_is_full(&in->run) || in->run_space != code->space)
		end_run(in);
	if (!in->run.head.n) {
		step_run_begin(&in->run, thread_of(in)->n_steps, space->number, space->generation);
		in->run_space = code->space;
	}
	step_run_add(&in->run, code->entry.addr);
	thread_of(in)->n_steps++;
}

/* --- packets: definitions -------------------------------------------------------------------- */

static int read_thread(struct stream_in *in, struct err *err)
{
	uint32_t number = cursor_u32(&in->c), zero;
	struct stream_thread t = {0};
	struct trace_thread row = {0};
	uint32_t known = (uint32_t)in->thread_keys.n_items;
	struct span name;
	uint8_t key[16];
	int rc;

	row.pid = t.pid = cursor_u32(&in->c);
	row.tid = cursor_u32(&in->c);
	zero = cursor_u32(&in->c);
	row.start_ns = cursor_u64(&in->c);
	rc = take_text(in, &name, err);
	if (rc < 0)
		return rc;
	if (number != in->threads.n || zero)
		return bad(in, err, "the thread's number is %" PRIu32 ", not %zu", number,
			in->threads.n);
	memcpy(key, &row.pid, 4);
	memcpy(key + 4, &row.tid, 4);
	memcpy(key + 8, &row.start_ns, 8);
	if (intern_bytes(&in->thread_keys, key, sizeof(key)) != known)
		return bad(in, err, "thread %" PRIu32 " of process %" PRIu32 " is there twice",
			row.tid, row.pid);
	if (in->w) {
		t.id = trace_writer_thread(in->w, &row);
		t.stream = trace_writer_stream(in->w, STREAM_KIND_THREAD, t.id);
		if (name.n) {
			uint64_t numbers[] = {t.id, 0, 0,
				trace_writer_string_n(in->w, (const char *)name.p, name.n)};

			trace_writer_numbers(in->w, in->life, 0, RECORD_MAJOR_THREAD,
				RECORD_THREAD_NAMED, numbers, 4);
		}
	}
	vec_push(&in->threads, t);
	return 0;
}

static int read_image(struct stream_in *in, struct err *err)
{
	uint32_t number = cursor_u32(&in->c), kind = cursor_u32(&in->c), bits, id_n;
	struct trace_image image = {0};
	struct span path;
	int rc;

	bits = cursor_u32(&in->c);
	image.pid = cursor_u32(&in->c);
	image.file_bytes = cursor_u64(&in->c);
	image.file_mtime_ns = cursor_u64(&in->c);
	cursor_take(&in->c, image.build_id, sizeof(image.build_id));
	id_n = cursor_u32(&in->c);
	rc = take_text(in, &path, err);
	if (rc < 0)
		return rc;
	if (number != in->images.n + 1)
		return bad(in, err, "the image's number is %" PRIu32 ", not %zu", number,
			in->images.n + 1);
	if (kind < IMAGE_KIND_ELF || kind > IMAGE_KIND_OTHER)
		return bad(in, err, "there is no kind %" PRIu32 " of images", kind);
	if (bits != 0 && bits != 32 && bits != 64)
		return bad(in, err, "an image of %" PRIu32 " bits is not known", bits);
	if (id_n > BUILD_ID_MAX || !is_zero(image.build_id + id_n, BUILD_ID_MAX - id_n))
		return bad(in, err, "its build-id is longer than it says");
	image.kind = (enum image_kind)kind;
	image.bits = (uint8_t)bits;
	image.build_id_n = (uint8_t)id_n;
	if (in->w) {
		image.path = trace_writer_string_n(in->w, (const char *)path.p, path.n);
		number = trace_writer_image(in->w, &image);
	}
	vec_push(&in->images, number);
	vec_push(&in->image_kinds, (uint8_t)kind);
	return 0;
}

static uint32_t ensure_space(struct stream_in *in, uint32_t number)
{
	bool created;
	uint64_t *index = map_ensure(&in->space_of, number, &created);

	if (created) {
		*index = in->spaces.n;
		vec_push(&in->spaces, (struct stream_space){.number = number});
	}
	return (uint32_t)*index;
}

static uint32_t ensure_place(struct stream_in *in, uint32_t space, uint64_t addr)
{
	uint8_t key[12];
	uint32_t place;

	memcpy(key, &addr, 8);
	memcpy(key + 8, &space, 4);
	place = intern_bytes(&in->places, key, sizeof(key));
	if (place == in->current.n)
		vec_push(&in->current, 0);
	return place;
}

static uint32_t frame_of(struct stream_in *in, uint32_t image, uint64_t addr)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE, .addr = addr};

	if (!in->w)
		return 0;
	if (image) {
		frame.image = in->images.v[image - 1];
		if (in->image_kinds.v[image - 1] == IMAGE_KIND_JIT)
			frame.kind = FRAME_KIND_JITTED;
	}
	return trace_writer_frame(in->w, &frame);
}

static int read_code(struct stream_in *in, struct err *err)
{
	uint32_t number = cursor_u32(&in->c), space = cursor_u32(&in->c), image;
	uint8_t bytes[STEP_PACKET_CODE_ROOM], bits;
	struct stream_code code = {0};
	uint64_t image_addr;
	uint16_t zero;
	int rc;

	code.entry.addr = cursor_u64(&in->c);
	image = cursor_u32(&in->c);
	bits = cursor_u8(&in->c);
	code.entry.n = cursor_u8(&in->c);
	zero = cursor_u16(&in->c);
	image_addr = cursor_u64(&in->c);
	cursor_take(&in->c, bytes, sizeof(bytes));
	rc = take_end(in, err);
	if (rc < 0)
		return rc;
	if (number != in->codes.n || number >= STEP_CODES_MAX || zero)
		return bad(in, err, "the instruction's number is %" PRIu32 ", not %zu", number,
			in->codes.n);
	if (image > in->images.n || (!image && image_addr))
		return bad(in, err, "image %" PRIu32 " is not defined", image);
	if (code.entry.n > STEP_CODE_BYTES_MAX ||
		!is_zero(bytes + code.entry.n, sizeof(bytes) - code.entry.n))
		return bad(in, err, "the instruction has more bytes than it says");
	if (code.entry.n ? bits != 32 && bits != 64 : bits != 0)
		return bad(in, err, "a mode of %u bits is not known", bits);
	memcpy(code.entry.bytes, bytes, code.entry.n);
	code.is_64 = bits != 32;
	code.entry.frame = frame_of(in, image, image ? image_addr : code.entry.addr);
	code.space = ensure_space(in, space);
	code.place = ensure_place(in, code.space, code.entry.addr);
	vec_push(&in->codes, code);
	return 0;
}

/* --- packets: what was executed -------------------------------------------------------------- */

static int read_at(struct stream_in *in, struct err *err)
{
	uint32_t number = cursor_u32(&in->c), zero = cursor_u32(&in->c);
	uint64_t time = cursor_u64(&in->c);
	int rc = take_end(in, err);
	struct stream_thread *t;

	if (rc < 0)
		return rc;
	if (number >= in->threads.n || zero)
		return bad(in, err, "thread %" PRIu32 " is not defined", number);
	t = &in->threads.v[number];
	if (t->has_time && time < t->time)
		return bad(in, err, "the time of thread %" PRIu32 " goes back", number);
	end_run(in);
	t->time = time;
	t->has_time = true;
	in->thread = number;
	in->has_step = false;
	return 0;
}

static int check_again(struct stream_in *in, uint32_t i, uint32_t word, struct err *err)
{
	if (!i)
		return bad(in, err, "it begins in the middle of a step");
	if (word == STEP_WORD_AGAIN)
		return bad(in, err, "a step goes round 0 more times");
	return 0;
}

static int read_steps(struct stream_in *in, struct err *err)
{
	size_t n = cursor_left(&in->c) / sizeof(uint32_t);

	if (in->thread == NO_THREAD)
		return bad(in, err, "its thread is not said");
	if (!n || cursor_left(&in->c) % sizeof(uint32_t))
		return bad(in, err, "it is not a row of steps");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = cursor_u32(&in->c);

		if (word & STEP_WORD_AGAIN) {
			int rc = check_again(in, i, word, err);

			if (rc < 0)
				return rc;
			in->run.more += in->w ? word & ~STEP_WORD_AGAIN : 0;
			continue;
		}
		if (word >= in->codes.n)
			return bad(in, err, "instruction %" PRIu32 " is not defined", word);
		if (in->w)
			add_step(in, word);
		in->n_steps++;
	}
	in->has_step = true;
	in->n_of_step = 0;
	return 0;
}

static int read_mark(struct stream_in *in, struct err *err)
{
	uint32_t kind = cursor_u32(&in->c), zero = cursor_u32(&in->c);
	struct step_mark mark = {0};
	struct span text;
	int rc;

	mark.a = (int64_t)cursor_u64(&in->c);
	mark.b = (int64_t)cursor_u64(&in->c);
	mark.c = (int64_t)cursor_u64(&in->c);
	rc = take_text(in, &text, err);
	if (rc < 0)
		return rc;
	if (in->thread == NO_THREAD)
		return bad(in, err, "its thread is not said");
	if (!kind || kind >= STEP_N_MARKS || zero)
		return bad(in, err, "there is no kind %" PRIu32 " of marks", kind);
	in->has_step = false;
	in->n_marks++;
	if (!in->w)
		return 0;
	end_run(in);
	mark.kind = (enum step_mark_kind)kind;
	mark.at = thread_of(in)->n_steps;
	if (text.n)
		mark.text = trace_writer_string_n(in->w, (const char *)text.p, text.n);
	step_mark_encode(&in->record, &mark);
	write_record(in, thread_of(in)->stream, thread_of(in)->time, RECORD_STEP_MARK);
	return 0;
}

static int read_access(struct stream_in *in, struct err *err)
{
	struct step_datum d = {.addr = cursor_u64(&in->c)};
	uint8_t zeros[5], has_value;
	int rc;

	d.how = cursor_u8(&in->c);
	d.n = cursor_u8(&in->c);
	has_value = cursor_u8(&in->c);
	cursor_take(&in->c, zeros, sizeof(zeros));
	d.has_value = has_value;
	if (in->c.failed || d.n > STEP_DATA_BYTES_MAX || !d.how || d.how > 3 || has_value > 1 ||
		!is_zero(zeros, sizeof(zeros)))
		return bad(in, err, "it is not an access that can be");
	if (d.has_value)
		cursor_take(&in->c, d.value, d.n);
	rc = take_end(in, err);
	if (rc < 0)
		return rc;
	if (!in->has_step)
		return bad(in, err, "it is of no step");
	if (in->n_of_step++ == STEP_ACCESSES_MAX)
		return bad(in, err, "the step has more than %d of them", STEP_ACCESSES_MAX);
	in->n_accesses++;
	if (in->w) {
		d.at = thread_of(in)->n_steps - 1;
		vec_push(&in->data, d);
	}
	return 0;
}

static int read_end(struct stream_in *in, struct err *err)
{
	uint64_t n_steps = cursor_u64(&in->c), n_marks = cursor_u64(&in->c);
	uint64_t n_accesses = cursor_u64(&in->c);
	uint32_t n_codes = cursor_u32(&in->c), n_threads = cursor_u32(&in->c);
	int rc = take_end(in, err);

	if (rc < 0)
		return rc;
	if (n_steps != in->n_steps || n_marks != in->n_marks || n_accesses != in->n_accesses ||
		n_codes != in->codes.n || n_threads != in->threads.n)
		return bad(in, err, "its totals are not those of the stream");
	in->has_ended = true;
	return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

static int (*const readers[])(struct stream_in *in, struct err *err) = {
	[STEP_PACKET_THREAD] = read_thread,
	[STEP_PACKET_IMAGE] = read_image,
	[STEP_PACKET_CODE] = read_code,
	[STEP_PACKET_AT] = read_at,
	[STEP_PACKET_STEPS] = read_steps,
	[STEP_PACKET_MARK] = read_mark,
	[STEP_PACKET_ACCESS] = read_access,
	[STEP_PACKET_END] = read_end,
};
#define N_READERS (sizeof(readers) / sizeof(readers[0]))

static int read_packet_at(struct stream_in *in, struct cursor *c, struct err *err)
{
	uint8_t padding[8] = {0};
	struct span payload;
	uint32_t n;

	in->at = (uint64_t)(c->p - in->bytes.p);
	in->type = cursor_u32(c);
	n = cursor_u32(c);
	if (n > STEP_STREAM_PAYLOAD_MAX)
		return bad(in, err, "%" PRIu32 " bytes are too many", n);
	payload = cursor_bytes(c, n);
	cursor_take(c, padding, -n & 7);
	if (c->failed)
		return bad(in, err, "it is cut off");
	if (!is_zero(padding, sizeof(padding)))
		return bad(in, err, "what fills it up is not zero");
	if (in->type >= N_READERS || !readers[in->type]) {
		in->n_unknown++;
		return 0;
	}
	in->c = cursor_of(payload);
	return readers[in->type](in, err);
}

static int read_all(struct stream_in *in, struct err *err)
{
	struct cursor c = cursor_of(in->bytes);
	uint32_t version, zero;
	char magic[8];
	int rc = 0;

	cursor_take(&c, magic, sizeof(magic));
	version = cursor_u32(&c);
	zero = cursor_u32(&c);
	if (c.failed || memcmp(magic, STEP_STREAM_MAGIC, sizeof(magic)))
		return err_set(err, ERR_FORMAT, "'%s': is not a step stream", in->name);
	if (version != STEP_STREAM_VERSION || zero)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': the step stream is of version %" PRIu32 ", only %d is known",
			in->name, version, STEP_STREAM_VERSION);
	while (rc == 0 && !in->has_ended && cursor_left(&c))
		rc = read_packet_at(in, &c, err);
	if (rc == 0 && !in->has_ended)
		rc = err_set(
			err, ERR_FORMAT, "'%s': the step stream has no end: it was cut", in->name);
	if (rc == 0 && cursor_left(&c))
		rc = err_set(err, ERR_FORMAT, "'%s': something follows the end of the step stream",
			in->name);
	if (rc == 0)
		end_run(in);
	return rc;
}

static void release(struct stream_in *in)
{
	vec_release(&in->threads);
	vec_release(&in->images);
	vec_release(&in->image_kinds);
	vec_release(&in->spaces);
	vec_release(&in->current);
	vec_release(&in->codes);
	vec_release(&in->data);
	vec_release(&in->entries);
	intern_release(&in->thread_keys);
	intern_release(&in->places);
	map_release(&in->space_of);
	step_run_release(&in->run);
	buf_release(&in->record);
}

int import_step_stream(struct span bytes, const char *name, struct trace_writer *w, struct err *err)
{
	struct stream_in in = {.name = name, .bytes = bytes, .w = w, .thread = NO_THREAD};
	int rc;

	/* So that generations, which are fewer than its words, have 32 bits. */
	if (bytes.n / sizeof(uint32_t) > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "'%s': the step stream has more than 16 GiB", name);

	if (w) {
		in.life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
		in.code_stream = trace_writer_stream(w, STREAM_KIND_LIFE, RECORD_STEP_CODE_STREAM);
	}
	rc = read_all(&in, err);
	if (rc == 0 && w && in.n_unknown)
		trace_writer_loss(w, in.life, 0, RECORD_LOSS_NOTE, in.n_unknown,
			"a packet of the step stream is of a type that is not known");
	release(&in);
	return rc;
}
