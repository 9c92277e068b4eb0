/* SPDX-License-Identifier: MIT */
/*
 * The program that wrote a count file: its code gives each block a cost on a processor, its debug
 * information gives lines. Both only when it is the very file that ran, by its build-id or else by
 * its size and time; what is missing then is told.
 *
 * Code that was inserted is none of the program's. Units tell which it is. Those of programs that
 * older versions have linked do not; there it is the bytes at a block's head, calls of the run-time
 * library, and anything that uses the gs segment, which programs that do are not inserted for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arch/x86_code.h"
#include "base/file.h"
#include "base/search.h"
#include "base/sort.h"
#include "dwarf/source_map.h"
#include "elf/elf_file.h"
#include "formats/import_counts_internal.h"
#include "insert/cost/cost.h"
#include "symbols/debug_file.h"

#define RUNTIME_PREFIX "weir_count_"
#define GS_PREFIX      0x65
#define IN_FRONT_MAX   64 /* bytes */
/* Rows of line tables that are kept at most. */
#define ROWS_MAX (1u << 26)

/* Blocks do not overlap, so that together they are not larger than the program; some are looked at
 * again. */
#define CODE_TIMES 4

/* From this address on, up to the next row's. */
struct line_row {
	uint64_t addr;
	uint32_t file; /* string of the trace; 0 = not known */
	uint32_t line;
	/* The same but for inlined code: there, where the function has the call. */
	uint32_t own_file, own_line;
};

struct program {
	struct counts_file *file;
	const char *path;
	struct file_map map;
	struct elf_file elf;
	struct debug_file debug;
	const struct cost_cpu *cpu;
	struct map runtime; /* addresses of the run-time library's functions, to guess by */
	bool has_runtime;
	VEC(struct line_row) rows;
	VEC(struct span) insns; /* of one stretch of code */
	uint64_t insns_start;	/* address less place in memory of its bytes */
	struct buf code;	/* of one block, without what was inserted */
	uint64_t bytes_left;	/* of code that may still be decoded */
	uint64_t n_uneven;	/* blocks whose instructions are not those that the unit tells, */
	uint64_t n_untold;	/* and those for want of the run-time library's symbols */
};

/* ---- the file ---- */

static bool has_build_id(const struct count_header *h)
{
	return h->build_id_bytes && h->build_id_bytes <= sizeof(h->build_id);
}

/* NULL when it is the file that ran, else why not. */
static const char *why_another(const struct program *p, const struct stat *st)
{
	const struct count_header *h = p->file->header;
	struct span id = elf_file_build_id(&p->elf);

	if (has_build_id(h))
		return id.n == h->build_id_bytes && !memcmp(id.p, h->build_id, id.n)
			       ? NULL
			       : "its build-id is another";
	if (h->exe_size != (uint64_t)st->st_size)
		return "its size is another";
	/* A copy that the user names has a time of its own. */
	if (!p->file->options->exe &&
		h->exe_mtime_ns !=
			(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec)
		return "it was changed since";
	return NULL;
}

static bool open_file(struct program *p)
{
	struct counts_file *f = p->file;
	const char *why = NULL, *verdict = "cannot be read";
	struct err err = {0};
	struct stat st;

	if (stat(p->path, &st) < 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "it is not a file";
	else if (file_map_open(&p->map, p->path, &err) < 0)
		why = strerror(errno);
	else if (elf_file_init(&p->elf, p->map.bytes, &err) < 0)
		why = err.text;
	else if ((why = why_another(p, &st)))
		verdict = "is not the program that ran";
	if (!why)
		return true;
	counts_note(f, 1, "'%s' %s (%s): there are no source lines and no cycles of blocks",
		counts_text(f, p->path, strlen(p->path)), verdict, why);
	return false;
}

static void add_runtime(void *ctx, const struct elf_symbol *symbol)
{
	struct program *p = ctx;

	if (!strncmp(symbol->name, RUNTIME_PREFIX, strlen(RUNTIME_PREFIX)))
		map_ensure(&p->runtime, symbol->addr.v, NULL);
}

/* ---- lines ---- */

/* Where one unit ends and another begins the one that begins has the address. */
static int compare_rows(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* The trace's string of a file; `strings` has those made so far. */
static uint32_t file_string(
	struct program *p, const struct dwarf_unit_map *m, uint32_t file, uint32_t *strings)
{
	if (!file || file >= m->files.n)
		return 0;
	if (!strings[file])
		strings[file] =
			trace_writer_string_n(p->file->w, m->files.v[file].p, m->files.v[file].n);
	return strings[file];
}

static void add_unit_rows(struct program *p, const struct dwarf_unit_map *m)
{
	uint32_t *strings = mem_calloc(m->files.n + 1, sizeof(*strings));

	for (size_t i = 0; i < m->rows.n && p->rows.n < ROWS_MAX; i++) {
		const struct dwarf_row *from = &m->rows.v[i];
		const struct dwarf_site *site =
			from->site && from->site < m->sites.n ? &m->sites.v[from->site] : NULL;
		struct line_row row = {.addr = from->addr};

		if (!from->is_hole && from->file && from->file < m->files.n) {
			/* A parent comes before its children, so this ends. */
			while (site && site->parent && &m->sites.v[site->parent] < site)
				site = &m->sites.v[site->parent];
			row.file = file_string(p, m, from->file, strings);
			row.line = from->line;
			row.own_file =
				site ? file_string(p, m, site->call_file, strings) : row.file;
			row.own_line = site ? site->call_line : row.line;
		}
		vec_push(&p->rows, row);
	}
	free(strings);
}

static void read_units(struct program *p, struct dwarf_debug *d)
{
	const struct counts_file *f = p->file;
	size_t n_units = dwarf_debug_n_units(d), n_failed = 0;
	uint64_t *addrs = mem_calloc(f->blocks.n + 1, sizeof(*addrs));
	bool *wanted = mem_calloc(n_units + 1, sizeof(*wanted));

	for (size_t i = 0; i < f->blocks.n; i++)
		addrs[i] = f->blocks.v[i].address - f->header->base;
	sort_u64(addrs, f->blocks.n);
	dwarf_debug_units_at(d, addrs, f->blocks.n, wanted);
	for (size_t i = 0; i < n_units; i++) {
		struct dwarf_unit_map m = {0};

		if (!wanted[i])
			continue;
		if (dwarf_unit_map_init(&m, d, i, NULL) == 0)
			add_unit_rows(p, &m);
		else
			n_failed++;
		dwarf_unit_map_release(&m);
	}
	if (n_failed)
		counts_note(p->file, n_failed, "a unit of the debug information cannot be read");
	if (p->rows.n)
		qsort(p->rows.v, p->rows.n, sizeof(*p->rows.v), compare_rows);
	free(addrs);
	free(wanted);
}

static void read_lines(struct program *p)
{
	struct dwarf_debug *d = NULL;
	int rc = dwarf_debug_open(&d, &p->elf, p->path, NULL);

	if (rc < 0 && debug_file_open(&p->debug, &p->elf, p->path, NULL) == 0)
		rc = dwarf_debug_open(&d, &p->debug.elf, p->debug.path, NULL);
	if (rc < 0) {
		counts_note(p->file, 1,
			"the program has no debug information: there are no source lines");
		return;
	}
	read_units(p, d);
	dwarf_debug_close(d);
}

/* The row that has the address, from where the last one was found on. */
static const struct line_row *row_at(const struct program *p, uint64_t addr, size_t *at)
{
	static const struct line_row none;
	size_t low;

	if (*at < p->rows.n && p->rows.v[*at].addr <= addr &&
		(*at + 1 == p->rows.n || addr < p->rows.v[*at + 1].addr))
		return &p->rows.v[*at];
	low = SEARCH(0, p->rows.n, middle, p->rows.v[middle].addr <= addr);
	if (!low)
		return &none;
	*at = low - 1;
	return &p->rows.v[low - 1];
}

/* ---- blocks ---- */

static bool is_inserted(const struct program *p, const struct x86_insn *insn, const uint8_t *code)
{
	if (insn->flow == X86_FLOW_CALL && insn->has_target)
		return map_find(&p->runtime, insn->target) != NULL;
	return insn->disp_at && code[0] == GS_PREFIX;
}

/* A function begins at the first of its own lines, in the file of its first instruction. */
static void place_function(
	struct counts_file *f, const struct counts_block *b, const struct line_row *row)
{
	struct counts_function *function =
		b->function == COUNTS_NONE ? NULL : &f->functions.v[b->function];

	if (!function || !row->own_file || !row->own_line)
		return;
	if (!function->file) {
		function->file = row->own_file;
		function->line = row->own_line;
	} else if (function->file == row->own_file && row->own_line < function->line) {
		function->line = row->own_line;
	}
}

static void add_insn(struct program *p, struct counts_block *b, uint64_t addr, size_t *at)
{
	struct counts_file *f = p->file;
	const struct line_row *row = row_at(p, addr, at);
	struct counts_line *last = b->n_lines ? &f->lines.v[f->lines.n - 1] : NULL;
	struct counts_line line = {row->file, row->line, 1, addr};

	place_function(f, b, row);
	if (last && last->file == row->file && last->line == row->line) {
		last->n_insns++;
		return;
	}
	vec_push(&f->lines, line);
	b->n_lines++;
}

/* The unit knows how many instructions the block has: what was not recognised is the first's. */
static void even_out(struct program *p, struct counts_block *b, uint64_t n_found)
{
	struct counts_line *lines = b->n_lines ? &p->file->lines.v[b->first_line] : NULL;
	uint64_t surplus = n_found > b->n_insns ? n_found - b->n_insns : 0;

	if (n_found == b->n_insns)
		return;
	if (b->n_lines != 1) /* of one line all is right */
		*(p->file->units.v[b->unit].has_inserted || p->runtime.n ? &p->n_uneven
									 : &p->n_untold) += 1;
	if (lines && n_found < b->n_insns)
		lines[0].n_insns += (uint32_t)(b->n_insns - n_found);
	for (uint32_t i = b->n_lines; surplus && i-- > 0;) {
		uint32_t take = surplus < lines[i].n_insns ? (uint32_t)surplus : lines[i].n_insns;

		lines[i].n_insns -= take;
		surplus -= take;
	}
}

/* Where the program's instructions in some bytes of a unit are, without what was inserted. */
static void find_insns(
	struct program *p, const struct counts_unit *unit, uint64_t start, uint64_t n)
{
	const struct counts_stretch *v = p->file->inserted.v;
	struct span code = span_sub(elf_file_bytes_at(&p->elf, (struct iaddr){start}), 0, n);
	uint64_t run = start + p->file->header->base; /* the address while it ran */
	size_t end = unit->first_inserted + unit->n_inserted, offset = 0;
	size_t next = SEARCH(unit->first_inserted, end, middle, v[middle].end <= run);

	p->insns.n = 0;
	if (code.n > p->bytes_left)
		code.n = 0;
	p->bytes_left -= code.n;
	while (offset < code.n) {
		struct span rest = span_sub(code, offset, code.n - offset);
		struct x86_insn insn;

		if (next < end && v[next].start <= run + offset) {
			if (v[next].end > run + offset)
				offset = (size_t)(v[next].end - run);
			next++;
			continue;
		}
		if (!x86_decode(&insn, rest, start + offset, true))
			break;
		if (unit->has_inserted || !is_inserted(p, &insn, rest.p))
			vec_push(&p->insns, ((struct span){rest.p, insn.length}));
		offset += insn.length;
	}
	p->insns_start = code.p ? start - (uint64_t)(uintptr_t)code.p : 0;
}

/* Those from `first` on become lines of the block. */
static void add_insns(struct program *p, struct counts_block *b, size_t first, size_t *at)
{
	for (size_t i = first; i < p->insns.n; i++) {
		const struct span *insn = &p->insns.v[i];

		buf_put(&p->code, insn->p, insn->n);
		add_insn(p, b, p->insns_start + (uint64_t)(uintptr_t)insn->p, at);
	}
}

/* Bytes in front of what was inserted that may be the block's, as a guess: endbr64 stays the first
 * of a function, and where flags are live the counter stands behind the instructions that take
 * them. */
static uint64_t bytes_in_front(const struct counts_file *f, const struct counts_block *b)
{
	const struct counts_function *function;
	uint64_t from;

	if (b->function == COUNTS_NONE)
		return 0;
	function = &f->functions.v[b->function];
	from = function->address;
	if (b != &f->blocks.v[function->first_block])
		from = b[-1].address + b[-1].bytes;
	return b->address > from && b->address - from <= IN_FRONT_MAX ? b->address - from : 0;
}

/* The instructions of a block whose unit does not tell what was inserted; how many were found. */
static uint64_t guess_block(struct program *p, struct counts_block *b, size_t *at)
{
	const struct counts_unit *unit = &p->file->units.v[b->unit];
	uint64_t start = b->address - p->file->header->base;
	uint32_t inserted = b->inserted_bytes < b->bytes ? b->inserted_bytes : b->bytes;
	uint64_t in_front = bytes_in_front(p->file, b), n_found;

	if (!p->has_runtime)
		elf_file_each_function(&p->elf, false, add_runtime, p);
	p->has_runtime = true;
	find_insns(p, unit, start + inserted, b->bytes - inserted);
	n_found = p->insns.n;
	if (in_front && n_found < b->n_insns) {
		size_t n_missing = b->n_insns - n_found, n_here;

		find_insns(p, unit, start - in_front, in_front);
		n_here = p->insns.n < n_missing ? p->insns.n : n_missing;
		add_insns(p, b, p->insns.n - n_here, at);
		n_found += n_here;
		find_insns(p, unit, start + inserted, b->bytes - inserted);
	}
	add_insns(p, b, 0, at);
	return n_found;
}

static void read_block(struct program *p, struct counts_block *b, size_t *at)
{
	const struct counts_unit *unit = &p->file->units.v[b->unit];
	uint64_t start = b->address - b->front_bytes - p->file->header->base;

	b->first_line = (uint32_t)p->file->lines.n;
	buf_reset(&p->code);
	if (unit->has_inserted) {
		find_insns(p, unit, start, (uint64_t)b->front_bytes + b->bytes);
		add_insns(p, b, 0, at);
		even_out(p, b, p->insns.n);
	} else {
		even_out(p, b, guess_block(p, b, at));
	}
	if (p->cpu && b->count)
		b->cost = cost_block(p->cpu, buf_span(&p->code));
	p->file->has_model |= b->cost != 0;
}

static void read_blocks(struct program *p)
{
	struct counts_file *f = p->file;
	size_t at = 0;

	p->bytes_left = CODE_TIMES * (uint64_t)p->map.bytes.n;
	for (size_t i = 0; i < f->blocks.n && f->lines.n < UINT32_MAX - UINT16_MAX; i++)
		read_block(p, &f->blocks.v[i], &at);
	if (p->n_uneven)
		counts_note(f, p->n_uneven,
			"a block has other instructions than the inserter counted: its lines "
			"are not exact");
	if (p->n_untold)
		counts_note(f, p->n_untold,
			"inserted calls are not told from a block's own instructions, for want of "
			"symbols: its lines and cycles are not exact");
}

void counts_read_program(struct counts_file *f)
{
	struct program p = {.file = f};

	p.path = f->options->exe ? f->options->exe : f->header->exe;
	if (!*p.path || !f->blocks.n) {
		if (f->blocks.n)
			counts_note(f, 1,
				"the count file does not name its program: there are no source lines "
				"and no cycles of blocks");
		return;
	}
	if (open_file(&p)) {
		p.cpu = cost_cpu_find(f->options->cpu);
		if (p.cpu)
			trace_writer_meta(f->w, "cost_model", cost_cpu_name(p.cpu));
		read_lines(&p);
		read_blocks(&p);
	}
	debug_file_close(&p.debug);
	elf_file_release(&p.elf);
	file_map_release(&p.map);
	map_release(&p.runtime);
	vec_release(&p.rows);
	buf_release(&p.code);
	vec_release(&p.insns);
}
