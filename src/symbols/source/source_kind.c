/* SPDX-License-Identifier: MIT */
/*
 * Binary formats are known by their magic numbers. In a text, headings are looked for; then, of its
 * first lines, those that fit each format are counted: nearly all must.
 */
#include "symbols/source/source_kind.h"

#include <elf.h>
#include <string.h>

#include "base/file.h"
#include "elf/elf_file.h"
#include "symbols/source/text_scan.h"

#define TEXT_BYTES_LOOKED_AT 65536
#define JITDUMP_MAGIC	     0x4A695444u
#define CATALOG_ROOT_B	     4096 /* where the second one is */
#define KERNEL_ADDRS	     0xffff000000000000u
#define LOWEST_CODE	     0x1000u /* no system maps the first page */

static const char *const kind_names[] = {
	[SOURCE_KIND_UNKNOWN] = "unknown kind of file",
	[SOURCE_KIND_ELF_IMAGE] = "shared object or executable",
	[SOURCE_KIND_ELF_DEBUG] = "debug file",
	[SOURCE_KIND_ELF_OBJECT] = "object file",
	[SOURCE_KIND_LD_MAP] = "GNU ld map",
	[SOURCE_KIND_LLD_MAP] = "lld map",
	[SOURCE_KIND_NM] = "nm output",
	[SOURCE_KIND_PERF_MAP] = "perf map",
	[SOURCE_KIND_JITDUMP] = "jitdump",
	[SOURCE_KIND_KALLSYMS] = "kallsyms",
	[SOURCE_KIND_CATALOG] = "catalog",
};

const char *source_kind_name(enum source_kind kind)
{
	return (size_t)kind < sizeof(kind_names) / sizeof(kind_names[0]) ? kind_names[kind]
									 : kind_names[0];
}

/* --- ELF --- */

/* A separate debug file keeps the section headers of the code without its bytes. */
static enum source_kind kind_of_image(const struct elf_file *elf)
{
	size_t n_code = 0, n_empty = 0;
	bool has_debug = false;

	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (strncmp(s->name, ".debug_", 7) == 0)
			has_debug = true;
		if (!(s->flags & SHF_ALLOC) || !(s->flags & SHF_EXECINSTR) || !s->size)
			continue;
		if (s->type == SHT_NOBITS)
			n_empty++;
		else
			n_code++;
	}
	if (n_code)
		return SOURCE_KIND_ELF_IMAGE;
	if (n_empty)
		return SOURCE_KIND_ELF_DEBUG;
	for (size_t i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].type == PT_LOAD && (elf->segments[i].flags & PF_X) &&
			elf->segments[i].file_size)
			return SOURCE_KIND_ELF_IMAGE;
	return has_debug ? SOURCE_KIND_ELF_DEBUG : SOURCE_KIND_ELF_IMAGE;
}

static enum source_kind kind_of_elf(struct span bytes)
{
	enum source_kind kind = SOURCE_KIND_UNKNOWN;
	struct elf_file elf;

	if (elf_file_init(&elf, bytes, NULL) < 0)
		return kind;
	if (elf.type == ET_REL)
		kind = SOURCE_KIND_ELF_OBJECT;
	else if (elf.type == ET_EXEC || elf.type == ET_DYN)
		kind = kind_of_image(&elf);
	elf_file_release(&elf);
	return kind;
}

/* Either root of a catalog may be empty or damaged (docs/format/catalog-file.md, "Roots"). */
static bool is_catalog(struct span bytes)
{
	static const uint8_t magic[8] = {0x89, 'w', 's', 'y', 'm', '\r', '\n', 0x1a};

	for (uint64_t at = 0; at <= CATALOG_ROOT_B; at += CATALOG_ROOT_B) {
		struct span root = span_sub(bytes, at, sizeof(magic));

		if (root.n && memcmp(root.p, magic, sizeof(magic)) == 0)
			return true;
	}
	return false;
}

static enum source_kind kind_of_binary(struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	uint32_t magic = cursor_u32(&c);

	if (!c.failed && (magic == JITDUMP_MAGIC || magic == __builtin_bswap32(JITDUMP_MAGIC)))
		return SOURCE_KIND_JITDUMP;
	if (text_starts(bytes, "\177ELF"))
		return kind_of_elf(bytes);
	return is_catalog(bytes) ? SOURCE_KIND_CATALOG : SOURCE_KIND_UNKNOWN;
}

/* --- texts --- */

struct line_counts {
	size_t n_lines; /* not empty */
	size_t n_nm[NM_N_FORMATS];
	size_t n_headings; /* of nm */
	size_t n_perf_map, n_kallsyms;
	size_t n_in_kernel;  /* lines of kallsyms with an address of the kernel, or a hidden one */
	size_t n_in_modules; /* with a module */
	size_t n_ld_headings, n_ld_lines;
	bool is_lld_map;
};

/* In English, and such as no other text has; other maps of GNU ld and gold are known by their
 * lines. */
static const char *const ld_headings[] = {
	"Linker script and memory map",
	"Discarded input sections",
	"Merging program properties",
	"Archive member included to satisfy reference by file (symbol)",
	"Archive member included because of file (symbol)",
	"As-needed library included to satisfy reference by file (symbol)",
	"Allocating common symbols",
};

static bool is_ld_heading(struct span line)
{
	for (size_t i = 0; i < sizeof(ld_headings) / sizeof(ld_headings[0]); i++)
		if (text_is(line, ld_headings[i]))
			return true;
	return false;
}

/* "LOAD a.o", ".text 0x401000 0x123", " .text 0x401000 0x123 a.o", 16 blanks and "0x401000". */
static bool is_ld_line(struct span line)
{
	struct cursor c = cursor_of(line);
	size_t indent = text_skip_blanks(&c);
	uint64_t number;

	if (text_starts(line, "LOAD "))
		return true;
	if (indent > 1 && indent != 16)
		return false;
	if (indent <= 1) {
		text_take_word(&c);
		text_skip_blanks(&c);
	}
	if (!text_take_0x(&c, &number))
		return false;
	text_skip_blanks(&c);
	return indent == 16 || text_take_0x(&c, &number);
}

static bool is_lld_heading(struct span line)
{
	return (text_has(line, " VMA ") || text_has(line, "Address ")) &&
	       text_has(line, " Size Align Out     In      Symbol");
}

static void count_line(struct line_counts *n, struct span line)
{
	struct candidate c;
	struct nm_line nm;
	struct span image;

	if (!n->n_lines++)
		n->is_lld_map = is_lld_heading(line);
	n->n_ld_headings += is_ld_heading(line);
	n->n_ld_lines += is_ld_line(line);
	for (int f = 0; f < NM_N_FORMATS; f++)
		n->n_nm[f] += nm_line_parse((enum nm_format)f, line, &nm);
	n->n_headings += nm_line_is_heading(NM_FORMAT_SYSV, line, &image) ||
			 (text_starts(line, "Name ") && text_has(line, " Class "));
	n->n_perf_map += perf_map_parse_line(line, &c) && c.start >= LOWEST_CODE;
	if (kallsyms_parse_line(line, &c)) {
		n->n_kallsyms++;
		n->n_in_kernel += c.start == 0 || c.start >= KERNEL_ADDRS;
		n->n_in_modules += text_has(line, "\t[") && line.p[line.n - 1] == ']';
	}
}

static bool is_nearly_all(size_t n, const struct line_counts *of)
{
	return n > 0 && n * 20 >= of->n_lines * 19;
}

static bool is_named(const char *name, const char *prefix)
{
	return name && strncmp(path_base_name(name), prefix, strlen(prefix)) == 0;
}

static bool is_kallsyms(const struct line_counts *n, const char *name)
{
	if (!is_nearly_all(n->n_kallsyms, n))
		return false;
	return is_named(name, "kallsyms") || is_named(name, "System.map") || n->n_in_modules ||
	       is_nearly_all(n->n_in_kernel, n);
}

static enum source_kind kind_of_lines(const struct line_counts *n, const char *name)
{
	size_t n_nm = n->n_nm[NM_FORMAT_BSD];

	if (n->is_lld_map)
		return SOURCE_KIND_LLD_MAP;
	if (n->n_ld_headings || (n->n_ld_lines >= 3 && n->n_ld_lines * 2 >= n->n_lines))
		return SOURCE_KIND_LD_MAP;
	if (is_kallsyms(n, name))
		return SOURCE_KIND_KALLSYMS;
	/* Each line of "nm -S" is one of a perf map too, for a function called "t foo". */
	if (is_nearly_all(n->n_perf_map, n) && (is_named(name, "perf-") || n_nm < n->n_perf_map))
		return SOURCE_KIND_PERF_MAP;
	for (int f = 0; f < NM_N_FORMATS; f++)
		if (n->n_nm[f] && is_nearly_all(n->n_nm[f] + n->n_headings, n))
			return SOURCE_KIND_NM;
	return SOURCE_KIND_UNKNOWN;
}

/* Control characters other than those that end lines or separate columns, but UTF-8 is text. */
static bool is_text(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' && s.p[i] != '\n' && s.p[i] != '\r' && s.p[i] != '\t')
			return false;
	return s.n > 0;
}

static enum source_kind kind_of_text(struct span text, const char *name)
{
	bool is_cut = text.n > TEXT_BYTES_LOOKED_AT;
	struct line_counts n = {0};
	struct cursor rest;
	struct span line;

	if (is_cut)
		text.n = TEXT_BYTES_LOOKED_AT;
	if (!is_text(text))
		return SOURCE_KIND_UNKNOWN;
	rest = cursor_of(text);
	while (text_next_line(&rest, &line)) {
		/* The last line looked at is half a line, unless it is the only one. */
		if (line.n && !(is_cut && !cursor_left(&rest) && n.n_lines))
			count_line(&n, line);
	}
	return kind_of_lines(&n, name);
}

enum source_kind source_kind_of(struct span bytes, const char *name)
{
	enum source_kind kind = kind_of_binary(bytes);

	return kind != SOURCE_KIND_UNKNOWN ? kind : kind_of_text(bytes, name);
}
