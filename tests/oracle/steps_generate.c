/* SPDX-License-Identifier: MIT */
/*
 * Large traces of steps, as fast as they can be had: from what valgrind says was executed.
 *
 *   valgrind --tool=lackey --trace-mem=yes --log-fd=9 PROGRAM 9>&1 >/dev/null |
 *           steps_generate PROGRAM TRACE
 *
 * PROGRAM is a static program at fixed addresses with one thread: its file has the bytes of all
 * code, and images need no moving. Prints what was read and written:
 *
 *   lines N rounds N steps N codes N outside N
 *
 * Lackey has a line "I  ADDRESS,LENGTH" for each instruction, and for a repeated string instruction
 * one for each round and one for finding that there is no further one; a step is all of them
 * ("rounds" counts those behind the first). Code outside the program's file is "outside".
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "symbols/image_identity.h"
#include "symbols/resolve/resolver.h"
#include "trace/step_records.h"
#include "trace/writer.h"

#define PID	      1000
#define SPACE	      1
#define RUN_STEPS_MAX 4096 /* as in a recording */

struct generator {
	const char *path;
	struct file_map map;
	struct elf_file elf;
	struct trace_image image;
	struct trace_writer *w;
	uint32_t image_id, thread, stream, life, code_stream;
	struct map codes; /* address -> 1 a plain instruction, 2 a repeated string instruction */
	VEC(struct step_code) entries; /* not in the trace yet */
	struct step_run_coder run;
	struct buf record;
	uint64_t last;
	bool last_is_string;
	uint64_t n_lines, n_rounds, n_steps, n_outside;
};

static _Noreturn void fail(const struct err *err)
{
	fprintf(stderr, "steps_generate: %s\n", err->text);
	exit(1);
}

/* --- the trace around the steps -------------------------------------------------------------- */

static void open_program(struct generator *g)
{
	struct err err = {0};
	struct span id;
	struct stat st;

	if (file_map_open(&g->map, g->path, &err) < 0 ||
		elf_file_init(&g->elf, g->map.bytes, &err) < 0)
		fail(&err);
	if (g->elf.type != ET_EXEC || stat(g->path, &st) < 0) {
		err_set(&err, ERR_UNSUPPORTED, "'%s' is not a program at fixed addresses", g->path);
		fail(&err);
	}
	id = elf_file_build_id(&g->elf);
	g->image = (struct trace_image){.kind = IMAGE_KIND_ELF,
		.bits = g->elf.is_64 ? 64 : 32,
		.file_bytes = (uint64_t)st.st_size,
		.file_mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec};
	if (id.n && id.n <= BUILD_ID_MAX) {
		g->image.build_id_n = (uint8_t)id.n;
		memcpy(g->image.build_id, id.p, id.n);
	}
}

static void number_record(
	struct generator *g, uint32_t major, uint32_t minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(g->w, g->life, g->n_steps, major, minor, numbers, n);
}

static void begin_trace(struct generator *g, const char *output)
{
	struct err err;

	if (trace_writer_open(&g->w, output, &err) < 0)
		fail(&err);
	trace_writer_meta(g->w, "mode", "launch");
	trace_writer_meta(g->w, "event", "steps");
	trace_writer_meta(g->w, "engine", "valgrind");
	trace_writer_meta(g->w, "command", g->path);
	g->life = trace_writer_stream(g->w, STREAM_KIND_LIFE, 0);
	g->code_stream = trace_writer_stream(g->w, STREAM_KIND_LIFE, RECORD_STEP_CODE_STREAM);
	g->thread = trace_writer_thread(g->w, &(struct trace_thread){.pid = PID, .tid = PID});
	g->stream = trace_writer_stream(g->w, STREAM_KIND_THREAD, g->thread);
	g->image.path = trace_writer_string(g->w, g->path);
	g->image_id = trace_writer_image(g->w, &g->image);
	number_record(g, RECORD_MAJOR_PROCESS, RECORD_PROCESS_START,
		(uint64_t[]){PID, 1, 0, g->image.path}, 4);
	number_record(g, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED,
		(uint64_t[]){g->thread, 0, 0, trace_writer_string(g->w, path_base_name(g->path))},
		4);
}

/* The program's segments: loaded in the trace's records and in its index. */
static void write_modules(struct generator *g)
{
	VEC(struct trace_module_span) spans = {0};
	struct trace_segment segments[TRACE_SEGMENTS_MAX];
	struct trace_image_facts facts = {
		.image = g->image_id, .machine = g->elf.machine, .segments = segments};

	for (size_t i = 0; i < g->elf.n_segments && facts.n_segments < TRACE_SEGMENTS_MAX; i++) {
		const struct elf_segment *s = &g->elf.segments[i];

		if (s->type != PT_LOAD)
			continue;
		segments[facts.n_segments++] = (struct trace_segment){
			s->addr.v, s->offset.v, s->file_size, s->mem_size, s->flags};
		if (!(s->flags & PF_X))
			continue;
		number_record(g, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
			(uint64_t[]){PID, 0, s->addr.v, s->mem_size, PROT_READ | PROT_EXEC,
				g->image_id, s->offset.v, 0, 0},
			9);
		vec_push(&spans, ((struct trace_module_span){.pid = PID,
					 .start = s->addr.v,
					 .end = s->addr.v + s->mem_size,
					 .to = UINT64_MAX,
					 .image = g->image_id,
					 .is_used = true}));
	}
	if (!g->image.build_id_n)
		facts.content_hash = image_content_hash(&g->elf);
	trace_writer_image_facts(g->w, &facts);
	trace_writer_module_spans(g->w, spans.v, spans.n);
	vec_release(&spans);
}

static void end_trace(struct generator *g)
{
	struct resolver *r = resolver_new();
	struct err err;

	number_record(g, RECORD_MAJOR_PROCESS, RECORD_PROCESS_END, (uint64_t[]){PID, 1}, 2);
	write_modules(g);
	resolver_add_image(r, g->image_id, &g->image, g->path, &g->elf, NULL);
	resolver_name_frames(r, g->w);
	resolver_free(r);
	if (trace_writer_close(g->w, &err) < 0)
		fail(&err);
}

/* --- steps ----------------------------------------------------------------------------------- */

static void write_record(struct generator *g, uint32_t stream, uint32_t minor)
{
	trace_writer_record(
		g->w, stream, g->n_steps, RECORD_MAJOR_STEP, minor, g->record.p, g->record.n);
	buf_reset(&g->record);
}

static int compare_entries(const void *a, const void *b)
{
	const struct step_code *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void end_run(struct generator *g)
{
	struct step_code_head head = {
		.space = SPACE, .pid = PID, .is_64 = g->elf.is_64, .n = (uint32_t)g->entries.n};

	if (!g->run.head.n)
		return;
	if (g->entries.n) {
		qsort(g->entries.v, g->entries.n, sizeof(*g->entries.v), compare_entries);
		step_code_encode(&g->record, &head, g->entries.v);
		write_record(g, g->code_stream, RECORD_STEP_CODE);
		g->entries.n = 0;
	}
	step_run_end(&g->run, &g->record);
	write_record(g, g->stream, RECORD_STEP_RUN);
	g->run.head.n = 0;
}

/* rep and repne before ins, outs, movs, cmps, stos, lods or scas. */
static bool is_repeated_string(const struct step_code *code)
{
	uint8_t i = 0;

	while (i < code->n && (code->bytes[i] == 0x66 || code->bytes[i] == 0x67))
		i++;
	if (i >= code->n || (code->bytes[i] != 0xf2 && code->bytes[i] != 0xf3))
		return false;
	i++;
	while (i < code->n && (code->bytes[i] == 0x66 || (code->bytes[i] & 0xf0) == 0x40))
		i++;
	return i < code->n && ((code->bytes[i] >= 0x6c && code->bytes[i] <= 0x6f) ||
				      (code->bytes[i] >= 0xa4 && code->bytes[i] <= 0xa7) ||
				      (code->bytes[i] >= 0xaa && code->bytes[i] <= 0xaf));
}

/* Whether it is a repeated string instruction. */
static bool add_code(struct generator *g, uint64_t addr, unsigned length)
{
	struct span bytes = elf_file_bytes_at(&g->elf, (struct iaddr){addr});
	struct step_code code = {.addr = addr};
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE, .addr = addr};

	if (length && length <= STEP_CODE_BYTES_MAX && bytes.n >= length) {
		code.n = (uint8_t)length;
		memcpy(code.bytes, bytes.p, length);
		frame.image = g->image_id;
	}
	code.frame = trace_writer_frame(g->w, &frame);
	vec_push(&g->entries, code);
	return is_repeated_string(&code);
}

static void add_step(struct generator *g, uint64_t addr, unsigned length)
{
	uint64_t *known;
	bool created;

	g->n_lines++;
	if (g->last_is_string && addr == g->last) {
		step_run_again(&g->run, 1);
		g->n_rounds++;
		return;
	}
	known = map_ensure(&g->codes, addr, &created);
	if (g->run.head.n == RUN_STEPS_MAX)
		end_run(g);
	if (created) {
		*known = add_code(g, addr, length) ? 2 : 1;
		g->n_outside += !g->entries.v[g->entries.n - 1].n;
	}
	if (!g->run.head.n)
		step_run_begin(&g->run, g->n_steps, SPACE, 0);
	step_run_add(&g->run, addr);
	g->last = addr;
	g->last_is_string = *known == 2;
	g->n_steps++;
}

static void read_lines(struct generator *g)
{
	char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, stdin) > 0) {
		char *end;
		uint64_t addr;

		if (line[0] != 'I' || line[1] != ' ')
			continue;
		addr = strtoull(line + 2, &end, 16);
		if (*end == ',')
			add_step(g, addr, (unsigned)strtoul(end + 1, NULL, 10));
	}
	end_run(g);
	free(line);
}

int main(int argc, char **argv)
{
	struct generator g = {0};

	if (argc != 3) {
		fprintf(stderr, "usage: steps_generate PROGRAM TRACE <LINES-OF-LACKEY\n");
		return 2;
	}
	g.path = argv[1];
	open_program(&g);
	begin_trace(&g, argv[2]);
	read_lines(&g);
	end_trace(&g);
	printf("lines %" PRIu64 " rounds %" PRIu64 " steps %" PRIu64 " codes %zu outside %" PRIu64
	       "\n",
		g.n_lines, g.n_rounds, g.n_steps, g.codes.n, g.n_outside);
	map_release(&g.codes);
	vec_release(&g.entries);
	step_run_release(&g.run);
	buf_release(&g.record);
	elf_file_release(&g.elf);
	file_map_release(&g.map);
	return 0;
}
