/* SPDX-License-Identifier: MIT */
/*
 * Threads are merged by time, item by item. What is written depends on the order of steps, marks
 * and accesses alone, not on how the trace cuts them into records: a stream that was imported comes
 * out the same.
 *
 *   items of threads by time --> waiting steps --> words of one packet --> file
 *
 * Steps wait only in traces with accesses, for the records of these that follow their run.
 */
#include "steps/stream/step_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#define WORDS_MAX      (STEP_STREAM_PAYLOAD_MAX / 4)
#define STEP_WORDS_MAX 3 /* of one step: its times have 32 bits */
#define TEXT_BYTES_MAX 32768
/* A run has no more steps than bytes, and a record is not larger than this. */
#define RUN_STEPS_MAX (1u << 20)

struct out_thread {
	uint32_t number; /* in the stream, plus 1; 0 = not defined yet */
	uint64_t time;	 /* of its last packet "at" */
};

struct stream_out {
	FILE *file;
	const struct trace_reader *reader;
	struct steps *steps;
	struct step_export_result *result;
	struct buf payload; /* of the packet that is being made */

	struct out_thread *threads; /* as steps_thread numbers them */
	uint32_t *wanted;	    /* numbers of threads */
	uint32_t n_wanted;

	uint32_t *code_of;   /* by number of instruction: number of its code, plus 1 */
	struct intern codes; /* payloads of code packets behind their number; id = its number */
	struct map images;   /* image of the trace -> its number */
	uint32_t n_threads;

	bool is_at; /* a thread is said: */
	uint32_t at_thread;

	bool has_data;
	VEC(struct step) waiting; /* of the thread that is `at` */
	size_t waiting_at;	  /* the first of them that is not written yet */
	uint64_t waiting_first;	  /* its number */
	uint32_t waiting_space;
	uint32_t words[WORDS_MAX]; /* of a packet of steps, not written yet */
	uint32_t n_words;
	uint64_t n_marks, n_accesses;
};

/* --- packets ------------------------------------------------------------------------------- */

static void write_packet(struct stream_out *o, enum step_packet type, const void *p, size_t n)
{
	static const uint8_t zeros[8];
	uint32_t head[2] = {type, (uint32_t)n};

	fwrite(head, sizeof(head), 1, o->file);
	if (n)
		fwrite(p, 1, n, o->file);
	fwrite(zeros, 1, -n & 7, o->file);
}

static struct buf *begin_payload(struct stream_out *o)
{
	buf_reset(&o->payload);
	return &o->payload;
}

static void end_payload(struct stream_out *o, enum step_packet type)
{
	write_packet(o, type, o->payload.p, o->payload.n);
}

static void put_text(struct buf *b, const char *text)
{
	size_t n = strlen(text);

	buf_put(b, text, n < TEXT_BYTES_MAX ? n : TEXT_BYTES_MAX);
}

static void write_words(struct stream_out *o)
{
	if (o->n_words)
		write_packet(o, STEP_PACKET_STEPS, o->words, o->n_words * sizeof(o->words[0]));
	o->n_words = 0;
}

static void write_thread(struct stream_out *o, uint32_t number, const struct step_thread *thread)
{
	struct buf *b = begin_payload(o);

	buf_put_u32(b, number);
	buf_put_u32(b, thread->pid);
	buf_put_u32(b, thread->tid);
	buf_put_u32(b, 0);
	buf_put_u64(b, trace_reader_thread(o->reader, thread->thread)->start_ns);
	put_text(b, thread->name);
	end_payload(o, STEP_PACKET_THREAD);
}

/* The image's number in the stream. */
static uint32_t define_image(struct stream_out *o, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(o->reader, id);
	uint64_t *number = map_ensure(&o->images, id, NULL);
	struct buf *b;

	if (*number)
		return (uint32_t)*number;
	*number = o->images.n;
	b = begin_payload(o);
	buf_put_u32(b, (uint32_t)*number);
	buf_put_u32(b, image->kind);
	buf_put_u32(b, image->bits);
	buf_put_u32(b, image->pid);
	buf_put_u64(b, image->file_bytes);
	buf_put_u64(b, image->file_mtime_ns);
	buf_put(b, image->build_id, sizeof(image->build_id));
	buf_put_u32(b, image->build_id_n);
	put_text(b, trace_reader_string(o->reader, image->path));
	end_payload(o, STEP_PACKET_IMAGE);
	return (uint32_t)*number;
}

/* Instructions of the trace that are alike in all that the stream tells are one there. */
static uint32_t define_code(
	struct stream_out *o, uint32_t space, uint64_t addr, const struct step_insn *insn)
{
	const struct trace_frame *frame = NULL;
	uint8_t bytes[STEP_PACKET_CODE_ROOM] = {0};
	uint8_t n = insn ? insn->n_bytes : 0;
	uint32_t image, number, n_known = (uint32_t)o->codes.n_items;
	struct buf *b;

	if (insn && insn->frame && insn->frame < trace_reader_n_frames(o->reader))
		frame = trace_reader_frame(o->reader, insn->frame);
	image = frame && frame->image ? define_image(o, frame->image) : 0;
	if (n)
		memcpy(bytes, insn->bytes, n);
	b = begin_payload(o);
	buf_put_u32(b, n_known);
	buf_put_u32(b, space);
	buf_put_u64(b, addr);
	buf_put_u32(b, image);
	buf_put_u8(b, !n ? 0 : insn->is_64 ? 64 : 32);
	buf_put_u8(b, n);
	buf_put_u16(b, 0);
	buf_put_u64(b, image ? frame->addr : 0);
	buf_put(b, bytes, sizeof(bytes));
	number = intern_bytes(&o->codes, b->p + 4, b->n - 4);
	if (number == n_known)
		end_payload(o, STEP_PACKET_CODE);
	return number;
}

static uint32_t code_of(struct stream_out *o, uint32_t space, const struct step *step)
{
	uint32_t *known = step->insn ? &o->code_of[step->insn] : NULL;
	uint32_t number;

	if (known && *known)
		return *known - 1;
	number = define_code(o, space, step->addr, known ? steps_insn(o->steps, step->insn) : NULL);
	if (known)
		*known = number + 1;
	return number;
}

/* --- steps --------------------------------------------------------------------------------- */

static int put_steps(
	struct stream_out *o, const struct step *steps, size_t n, uint32_t space, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t code, again = steps[i].times - 1;

		code = code_of(o, space, &steps[i]);
		if (code >= STEP_CODES_MAX)
			return err_set(err, ERR_LIMIT, "the trace has more than %u instructions",
				STEP_CODES_MAX);
		if (o->n_words + STEP_WORDS_MAX > WORDS_MAX)
			write_words(o);
		o->words[o->n_words++] = code;
		while (again) {
			uint32_t some = again < STEP_WORD_AGAIN ? again : STEP_WORD_AGAIN - 1;

			o->words[o->n_words++] = STEP_WORD_AGAIN | some;
			again -= some;
		}
	}
	o->result->n_steps += n;
	return 0;
}

static size_t n_waiting(const struct stream_out *o)
{
	return o->waiting.n - o->waiting_at;
}

/* The first `n` of those that wait are written. */
static int settle(struct stream_out *o, size_t n, struct err *err)
{
	int rc;

	if (!n)
		return 0;
	rc = put_steps(o, o->waiting.v + o->waiting_at, n, o->waiting_space, err);
	o->waiting_at += n;
	o->waiting_first += n;
	if (o->waiting_at == o->waiting.n)
		o->waiting_at = o->waiting.n = 0;
	return rc;
}

static int settle_all(struct stream_out *o, struct err *err)
{
	return settle(o, n_waiting(o), err);
}

/* Those that have to wait on move to the front, now and then. */
static int make_room(struct stream_out *o, struct err *err)
{
	size_t n = n_waiting(o);
	int rc = 0;

	if (o->waiting.n <= 2 * RUN_STEPS_MAX)
		return 0;
	if (n > RUN_STEPS_MAX)
		rc = settle(o, n - RUN_STEPS_MAX, err);
	n = n_waiting(o);
	memmove(o->waiting.v, o->waiting.v + o->waiting_at, n * sizeof(*o->waiting.v));
	o->waiting.n = n;
	o->waiting_at = 0;
	return rc;
}

static int add_steps(struct stream_out *o, const struct step_item *item, struct err *err)
{
	int rc;

	if (!o->has_data)
		return put_steps(o, item->steps, item->n, item->space, err);
	if (o->waiting_space != item->space || o->waiting_first + n_waiting(o) != item->first)
		rc = settle_all(o, err);
	else
		rc = make_room(o, err);
	if (!n_waiting(o))
		o->waiting_first = item->first;
	o->waiting_space = item->space;
	vec_reserve(&o->waiting, o->waiting.n + item->n);
	memcpy(o->waiting.v + o->waiting.n, item->steps, item->n * sizeof(*item->steps));
	o->waiting.n += item->n;
	return rc;
}

static void write_access(struct stream_out *o, const struct step_datum *datum)
{
	struct buf *b = begin_payload(o);

	buf_put_u64(b, datum->addr);
	buf_put_u8(b, datum->how);
	buf_put_u8(b, datum->n);
	buf_put_u8(b, datum->has_value);
	buf_put_u8(b, 0);
	buf_put_u32(b, 0);
	if (datum->has_value)
		buf_put(b, datum->value, datum->n);
	end_payload(o, STEP_PACKET_ACCESS);
	o->n_accesses++;
}

/* The steps up to the one of an access are written; false when it is not there. */
static int settle_until(
	struct stream_out *o, uint32_t thread, uint64_t at, bool *is_there, struct err *err)
{
	int rc;

	*is_there = o->is_at && o->at_thread == thread && at >= o->waiting_first &&
		    at - o->waiting_first < n_waiting(o);
	if (!*is_there)
		return 0;
	rc = settle(o, (size_t)(at - o->waiting_first) + 1, err);
	write_words(o);
	return rc;
}

/* Each access is written behind its step; those whose step is not there are gaps. */
static int add_data(
	struct stream_out *o, uint32_t thread, const struct step_item *item, struct err *err)
{
	bool is_there = false;
	uint64_t last = 0;
	uint32_t n_of_step = 0;
	struct step_data_walk w;
	struct step_datum datum;
	int more = step_data_open(&w, item->data) ? step_data_next(&w, &datum) : -1, rc;

	for (; more > 0; more = step_data_next(&w, &datum)) {
		if (!is_there || datum.at != last) {
			rc = settle_until(o, thread, datum.at, &is_there, err);
			if (rc < 0)
				return rc;
			last = datum.at;
			n_of_step = 0;
		}
		if (is_there && n_of_step++ < STEP_ACCESSES_MAX)
			write_access(o, &datum);
		else
			o->result->n_gaps++;
	}
	o->result->n_gaps += more < 0;
	return 0;
}

/* --- what is between them ------------------------------------------------------------------ */

static void write_mark(struct stream_out *o, const struct step_mark *mark, const char *text)
{
	struct buf *b = begin_payload(o);

	buf_put_u32(b, mark->kind);
	buf_put_u32(b, 0);
	buf_put_u64(b, (uint64_t)mark->a);
	buf_put_u64(b, (uint64_t)mark->b);
	buf_put_u64(b, (uint64_t)mark->c);
	put_text(b, text);
	end_payload(o, STEP_PACKET_MARK);
	o->n_marks++;
	o->result->n_gaps += mark->kind == STEP_MARK_LOST;
}

/* What comes is of this thread and time. An item of damage may not know its time. */
static int go_to(struct stream_out *o, uint32_t thread_i, uint64_t time, struct err *err)
{
	struct out_thread *thread = &o->threads[thread_i];
	struct buf *b;
	int rc;

	if (o->is_at && o->at_thread == thread_i && thread->time >= time)
		return 0;
	rc = settle_all(o, err);
	if (rc < 0)
		return rc;
	write_words(o);
	if (!thread->number) {
		thread->number = ++o->n_threads;
		write_thread(o, thread->number - 1, steps_thread(o->steps, thread_i));
	}
	if (time > thread->time)
		thread->time = time;
	b = begin_payload(o);
	buf_put_u32(b, thread->number - 1);
	buf_put_u32(b, 0);
	buf_put_u64(b, thread->time);
	end_payload(o, STEP_PACKET_AT);
	o->is_at = true;
	o->at_thread = thread_i;
	return 0;
}

static int add_item(
	struct stream_out *o, uint32_t thread, const struct step_item *item, struct err *err)
{
	static const struct step_mark lost = {.kind = STEP_MARK_LOST};
	const char *text;
	int rc;

	/* Accesses are noted with their run, whenever their record was made. */
	if (item->kind == STEP_ITEM_DATA)
		return add_data(o, thread, item, err);
	rc = go_to(o, thread, item->time, err);
	if (rc < 0 || item->kind == STEP_ITEM_STEPS)
		return rc < 0 ? rc : add_steps(o, item, err);
	rc = settle_all(o, err);
	if (rc < 0)
		return rc;
	write_words(o);
	if (item->kind == STEP_ITEM_DAMAGE) {
		write_mark(o, &lost, item->sentence);
		return 0;
	}
	text = item->mark.text < trace_reader_n_strings(o->reader)
		       ? trace_reader_string(o->reader, item->mark.text)
		       : "";
	write_mark(o, &item->mark, text);
	return 0;
}

static int add_items(struct stream_out *o, struct err *err)
{
	struct step_merge *merge = step_merge_new(o->steps, o->wanted, o->n_wanted);
	struct step_item item;
	uint32_t thread;
	int rc = 0;

	while (rc == 0 && !ferror(o->file) && step_merge_next(merge, &thread, &item) > 0)
		rc = add_item(o, thread, &item, err);
	step_merge_free(merge);
	return rc;
}

/* --- the whole ----------------------------------------------------------------------------- */

int step_export_threads(uint32_t **wanted, uint32_t *n_wanted, const struct steps *s,
	const struct step_export_options *options, struct err *err)
{
	const char *name = trace_reader_name(steps_reader(s));
	uint32_t n = steps_n_threads(s), n_found = 0;
	uint32_t *found;

	if (!n)
		return err_set(
			err, ERR_NOT_FOUND, "'%s': has no steps (weir steps records them)", name);
	found = mem_calloc(n, sizeof(*found));
	for (uint32_t i = 0; i < n; i++)
		if (!options->thread || step_thread_is(steps_thread(s, i), options->thread))
			found[n_found++] = i;
	if (!n_found) {
		free(found);
		return err_set(
			err, ERR_NOT_FOUND, "'%s': has no thread '%s'", name, options->thread);
	}
	*wanted = found;
	*n_wanted = n_found;
	return 0;
}

static void write_head(struct stream_out *o)
{
	uint32_t rest[2] = {STEP_STREAM_VERSION, 0};

	fwrite(STEP_STREAM_MAGIC, 8, 1, o->file);
	fwrite(rest, sizeof(rest), 1, o->file);
}

static int write_end(struct stream_out *o, struct err *err)
{
	int rc = settle_all(o, err);
	struct buf *b;

	write_words(o);
	b = begin_payload(o);
	buf_put_u64(b, o->result->n_steps);
	buf_put_u64(b, o->n_marks);
	buf_put_u64(b, o->n_accesses);
	buf_put_u32(b, (uint32_t)o->codes.n_items);
	buf_put_u32(b, o->n_threads);
	end_payload(o, STEP_PACKET_END);
	return rc;
}

static void release(struct stream_out *o)
{
	steps_close(o->steps);
	free(o->wanted);
	free(o->threads);
	free(o->code_of);
	intern_release(&o->codes);
	map_release(&o->images);
	vec_release(&o->waiting);
	buf_release(&o->payload);
	free(o);
}

int export_step_stream(const struct trace_reader *r, const struct step_export_options *options,
	FILE *out, struct step_export_result *result, struct err *err)
{
	struct stream_out *o = mem_zalloc(sizeof(*o));
	int rc;

	*result = (struct step_export_result){0};
	o->file = out;
	o->reader = r;
	o->result = result;
	o->has_data = trace_reader_has_kind(r, RECORD_MAJOR_STEP, RECORD_STEP_DATA);
	o->steps = steps_open(r);
	rc = step_export_threads(&o->wanted, &o->n_wanted, o->steps, options, err);
	if (rc == 0) {
		result->n_gaps = steps_n_damaged(o->steps, NULL);
		o->threads = mem_calloc(steps_n_threads(o->steps), sizeof(*o->threads));
		o->code_of = mem_calloc(steps_n_insns(o->steps) + 1, sizeof(*o->code_of));
		write_head(o);
		rc = add_items(o, err);
	}
	if (rc == 0)
		rc = write_end(o, err);
	release(o);
	return rc;
}
