/* SPDX-License-Identifier: MIT */
/*
 * From the pieces of a linker map to functions. Three things are learnt from the name of a piece
 * that -ffunction-sections made (.text.NAME, .text.hot.NAME, ...):
 *
 * 1. The size of the function: that of the piece, when no other symbol lies inside.
 * 2. Its linkage name: linkers print demangled names, by which nothing can be compared.
 * 3. The function itself, when the map lists global symbols only and none is in the piece.
 *
 * GCC puts both a cold function and the cold part of a function (NAME.cold) into
 * .text.unlikely.NAME. It is a part when the same object has another piece for NAME; since cold
 * pieces come first in a map, they wait until the end.
 */
#include "symbols/source/map_piece.h"

#include <stdlib.h>
#include <string.h>

static const char *const code_prefixes[] = {
	".text",
	".plt",
	".iplt",
	".gnu.linkonce.t.",
	".stub",
	".ltext",
	"__libc_freeres_fn",
	"__libc_thread_freeres_fn",
};
static const char *const code_names[] = {".init", ".fini", ".gnu.warning"};
static const char *const data_prefixes[] = {
	".rodata",
	".data",
	".bss",
	".tdata",
	".tbss",
	".got",
	".eh_frame",
	".gcc_except_table",
	".dyn",
	".hash",
	".gnu",
	".rel",
	".note",
	".interp",
	".init_array",
	".fini_array",
	".preinit_array",
	".ctors",
	".dtors",
	".jcr",
	".comment",
	".debug",
	".zdebug",
	".stab",
	".symtab",
	".strtab",
	".shstrtab",
	".tm_clone_table",
	".sdata",
	".sbss",
	".lrodata",
	".ldata",
	".lbss",
	".sframe",
	".exception_ranges",
	".init.data",
	".exit.data",
	".init.rodata",
	"COMMON",
	".common",
	"__ksymtab",
	"__ex_table",
	"__bug_table",
	"__param",
};

static bool has_prefix(struct span name, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_starts(name, prefixes[i]))
			return true;
	return false;
}

#define N(array) (sizeof(array) / sizeof((array)[0]))

enum map_content map_content_of(struct span name)
{
	for (size_t i = 0; i < N(code_names); i++)
		if (text_is(name, code_names[i]))
			return MAP_CONTENT_CODE;
	if (has_prefix(name, code_prefixes, N(code_prefixes)))
		return MAP_CONTENT_CODE;
	if (has_prefix(name, data_prefixes, N(data_prefixes)))
		return MAP_CONTENT_DATA;
	if (name.n >= 5 && memcmp(name.p + name.n - 5, ".text", 5) == 0)
		return MAP_CONTENT_CODE; /* .init.text, .noinstr.text */
	return text_has(name, ".text.") ? MAP_CONTENT_CODE : MAP_CONTENT_UNKNOWN;
}

/* Compilers' words between ".text." and the name of the function. */
static const char *const piece_groups[] = {
	"unlikely", "startup", "hot", "exit", "split", "unknown"};

static struct span behind(struct span s, size_t n)
{
	return (struct span){s.p + n, s.n - n};
}

/* Letters, digits and _ . $, beginning with no digit and no dot. */
static bool is_identifier(struct span s)
{
	if (!s.n || (s.p[0] >= '0' && s.p[0] <= '9') || s.p[0] == '.')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') &&
			c != '_' && c != '.' && c != '$' && c < 0x80)
			return false;
	}
	return true;
}

/* The function for which the piece was made; empty when it has no such name. `*is_cold`: or its
 * cold part. */
static struct span function_of_piece(struct span name, bool *is_cold)
{
	static const struct span none;

	*is_cold = false;
	if (text_starts(name, ".gnu.linkonce.t.")) {
		name = behind(name, 16);
		return is_identifier(name) ? name : none;
	}
	if (!text_starts(name, ".text.") || text_starts(name, ".text.sorted."))
		return none;
	name = behind(name, 6);
	for (size_t i = 0; i < N(piece_groups); i++) {
		size_t n = strlen(piece_groups[i]);

		if (!text_starts(name, piece_groups[i]) || (name.n > n && name.p[n] != '.'))
			continue;
		if (name.n <= n + 1)
			return none;
		*is_cold = i == 0 || !strcmp(piece_groups[i], "split");
		name = behind(name, n + 1);
		break;
	}
	return is_identifier(name) ? name : none;
}

static void emit(struct map_reader *r, struct span name, uint64_t start, uint64_t size,
	enum candidate_bind bind)
{
	struct candidate c = {
		.name = (const char *)name.p,
		.name_bytes = name.n > UINT32_MAX ? UINT32_MAX : (uint32_t)name.n,
		.source = (uint8_t)r->source,
		.bind = (uint8_t)bind,
		.start = start,
		.size = size,
		.room = r->piece_start + r->piece_bytes - start,
	};

	if (r->has_locals && !size)
		c.kind = CANDIDATE_KIND_LABEL;
	text_source_add(r->out, r->sink, &c);
}

static uint64_t key_of(const struct map_reader *r, struct span function)
{
	return map_hash_mix(map_hash_bytes(function.p, function.n),
		map_hash_bytes(r->piece_file.p, r->piece_file.n));
}

/* A piece without symbols in a map of global symbols: a local function. */
static void emit_local(struct map_reader *r, struct span function, bool is_cold)
{
	if (is_cold)
		vec_push(&r->colds, ((struct map_cold_piece){function, r->piece_start,
					    r->piece_bytes, key_of(r, function)}));
	else
		emit(r, function, r->piece_start, r->piece_bytes, CANDIDATE_BIND_LOCAL);
}

/* What the symbols at the start of a piece say about the name of the piece. */
struct piece_facts {
	bool is_named;	   /* one of them has it, as it is or demangled */
	bool has_readable; /* one of them is a demangled name */
	bool has_inner;	   /* and there are symbols behind the start */
	char *demangled;   /* the name; NULL when it is not mangled */
	uint64_t size;	   /* of the symbol at the start; 0 = not said */
};

static struct piece_facts look_at_piece(const struct map_reader *r, struct span function)
{
	struct piece_facts f = {0};

	if (text_starts(function, "_Z") || text_starts(function, "_R")) {
		char *mangled = mem_strndup((const char *)function.p, function.n);

		f.demangled = symbol_demangle(mangled);
		free(mangled);
	}
	for (size_t i = 0; i < r->symbols.n; i++) {
		const struct map_symbol *s = &r->symbols.v[i];

		if (s->start != r->piece_start) {
			f.has_inner = true;
			continue;
		}
		if (s->size > f.size)
			f.size = s->size;
		if (span_equal(s->name, function) || (f.demangled && text_is(s->name, f.demangled)))
			f.is_named = true;
		if (text_has(s->name, "("))
			f.has_readable = true;
	}
	return f;
}

static void emit_symbols(struct map_reader *r, struct span function)
{
	struct piece_facts f = look_at_piece(r, function);
	uint64_t size = f.is_named && !f.has_inner ? r->piece_bytes : 0;
	bool add_mangled = f.demangled && f.has_readable;

	if (f.size)
		size = f.size;
	if (add_mangled)
		emit(r, function, r->piece_start, size, CANDIDATE_BIND_GLOBAL);
	for (size_t i = 0; i < r->symbols.n; i++) {
		const struct map_symbol *s = &r->symbols.v[i];
		bool at_start = s->start == r->piece_start;

		if (at_start && add_mangled &&
			(span_equal(s->name, function) || text_is(s->name, f.demangled)))
			continue;
		emit(r, s->name, s->start, s->size || !at_start ? s->size : size,
			CANDIDATE_BIND_GLOBAL);
	}
	free(f.demangled);
}

void map_reader_end_piece(struct map_reader *r)
{
	struct span function;
	bool is_cold;

	if (!r->in_piece)
		return;
	r->in_piece = false;
	function = function_of_piece(r->piece_name, &is_cold);
	if (function.n && !is_cold && !r->has_locals)
		map_ensure(&r->warm_keys, key_of(r, function), NULL);
	if (r->symbols.n)
		emit_symbols(r, function);
	else if (function.n && !r->has_locals)
		emit_local(r, function, is_cold);
	r->symbols.n = 0;
}

void map_reader_output(struct map_reader *r, struct span name, uint64_t start, uint64_t bytes)
{
	enum map_content content = map_content_of(name);

	map_reader_end_piece(r);
	r->start = start;
	r->bytes = bytes;
	/* Debug and other sections that are never loaded have no address. */
	if (!start && r->has_addr) {
		r->content = MAP_CONTENT_DATA;
		return;
	}
	if (content != MAP_CONTENT_UNKNOWN)
		r->content = content;
	r->has_addr = r->has_addr || start;
	if (bytes)
		text_source_add_section(r->out, name, start, bytes);
}

void map_reader_piece(
	struct map_reader *r, struct span name, struct span file, uint64_t start, uint64_t bytes)
{
	enum map_content content = map_content_of(name);

	map_reader_end_piece(r);
	if (content == MAP_CONTENT_UNKNOWN)
		content = r->content;
	/* In a section that is not loaded nothing is code, whatever its name. */
	if (content != MAP_CONTENT_CODE || (!r->start && r->has_addr) || !bytes)
		return;
	if (start < r->start || start - r->start > r->bytes ||
		bytes > r->bytes - (start - r->start))
		return;
	/* PLT stubs have the names of what they call; the image itself tells what they are. */
	if (text_starts(name, ".plt") || text_starts(name, ".iplt"))
		return;
	if (r->out->pieces.n < SYMTAB_SYMBOLS_MAX && bytes <= UINT64_MAX - start)
		vec_push(&r->out->pieces, ((struct extent){start, bytes}));
	r->in_piece = true;
	r->piece_name = name;
	r->piece_file = file;
	r->piece_start = start;
	r->piece_bytes = bytes;
}

void map_reader_symbol(struct map_reader *r, struct span name, uint64_t start, uint64_t size)
{
	name = text_name_without_version(name);
	if (!r->in_piece || !name.n || text_name_is_internal(name))
		return;
	if (name.p[0] == '.' && !size)
		return;
	if (start < r->piece_start || start - r->piece_start >= r->piece_bytes)
		return;
	if (size > r->piece_bytes - (start - r->piece_start))
		size = 0;
	vec_push(&r->symbols, ((struct map_symbol){name, start, size}));
}

void map_reader_finish(struct map_reader *r)
{
	map_reader_end_piece(r);
	for (size_t i = 0; i < r->colds.n; i++) {
		const struct map_cold_piece *p = &r->colds.v[i];
		struct span name = p->name;

		if (map_find(&r->warm_keys, p->key))
			name = text_source_own(
				r->out, mem_printf("%.*s.cold", (int)name.n, (const char *)name.p));
		r->piece_start = p->start;
		r->piece_bytes = p->bytes;
		emit(r, name, p->start, p->bytes, CANDIDATE_BIND_LOCAL);
	}
	vec_release(&r->colds);
	vec_release(&r->symbols);
	map_release(&r->warm_keys);
}
