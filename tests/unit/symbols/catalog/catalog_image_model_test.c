/* SPDX-License-Identifier: MIT */
/*
 * Random symbols and units over a small address space; what an image answers is compared, address
 * by address, with what the rules say when they are applied naively to all that was added.
 */
#include "catalog_image_maker.h"

enum { BASE = 0x1000, WIDTH = 300, SYMBOLS = 24, UNITS = 4, PIECES = 6, ROWS = 30, SITES = 12 };

struct name_offer {
	const char *name; /* NULL = an end */
	uint64_t start, size, room;
	int kind, bind;
	bool is_dwarf;
};

struct piece_offer {
	const char *name;
	uint64_t start, end;
};

struct model {
	struct name_offer names[SYMBOLS + UNITS * PIECES];
	size_t n_names;
	struct piece_offer pieces[UNITS * PIECES];
	size_t n_pieces;
	struct dwarf_unit_map units[UNITS];
	size_t n_units;
	bool is_later_wins;
};

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static const char *random_name(void)
{
	static const char *const names[] = {"f", "g", "_f", "__f", "f.part.0", "f.cold", "g.isra.1",
		"longer_name", "h", "fg", "_g", "x.y", "x.y.cold"};

	return names[random_below(sizeof(names) / sizeof(names[0]))];
}

/* --- making --- */

static void make_unit(struct model *m, struct dwarf_unit_map *u)
{
	static const char *const files[] = {"", "/a.c", "/b.h", "/c.h"};
	uint64_t addr = BASE + random_below(WIDTH / 2);

	unit_begin(u);
	for (int i = 0; i < SITES; i++)
		unit_site(u, random_below((uint32_t)u->sites.n), i ? random_name() : "",
			files[random_below(4)], random_below(50));
	for (int i = 0; i < ROWS; i++) {
		uint32_t site = random_below(2) ? random_below((uint32_t)u->sites.n) : 0;

		if (random_below(6))
			unit_row(u, addr, files[random_below(4)], random_below(4), site);
		else
			unit_hole(u, addr);
		addr += 1 + random_below(9);
	}
	unit_hole(u, addr);
	for (int i = 0; i < PIECES; i++) {
		uint64_t start = BASE + random_below(WIDTH), end = start + 1 + random_below(30);
		const char *name = random_name();
		bool is_entry = random_below(2);

		unit_function(u, name, start, end, is_entry);
		if (is_entry)
			m->names[m->n_names++] = (struct name_offer){name, start, end - start, 0,
				CANDIDATE_KIND_FUNCTION, CANDIDATE_BIND_LOCAL, true};
		else
			m->pieces[m->n_pieces++] = (struct piece_offer){name, start, end};
	}
}

static void make_symbol(struct model *m, struct image_builder *b)
{
	struct name_offer o = {
		.name = random_below(8) ? random_name() : NULL,
		.start = BASE + random_below(WIDTH),
		.size = random_below(3) ? random_below(40) : 0,
		.room = random_below(60),
		.kind = (int)random_below(3),
		.bind = (int)random_below(3),
	};

	if (!o.name)
		o.size = 0;
	m->names[m->n_names++] = o;
	builder_source_begin(
		b, random_below(2) ? SYMBOL_SOURCE_SYMTAB : SYMBOL_SOURCE_DYNSYM, "/p");
	image_builder_symbol(b, &(struct candidate){.name = o.name,
					.name_bytes = o.name ? (uint32_t)strlen(o.name) : 0,
					.start = o.start,
					.size = o.size,
					.room = o.room,
					.kind = (uint8_t)o.kind,
					.bind = (uint8_t)o.bind});
}

static void model_make(struct model *m, struct image_builder *b)
{
	memset(m, 0, sizeof(*m));
	m->is_later_wins = random_below(4) == 0;
	if (m->is_later_wins)
		image_builder_set_later_wins(b);
	for (uint32_t i = random_below(SYMBOLS); i > 0; i--)
		make_symbol(m, b);
	m->n_units = random_below(UNITS + 1);
	builder_source_begin(b, SYMBOL_SOURCE_DWARF, "/p");
	for (size_t i = 0; i < m->n_units; i++) {
		make_unit(m, &m->units[i]);
		image_builder_unit(b, &m->units[i]);
	}
}

/* --- the rules, naively --- */

static bool covers(uint64_t start, uint64_t bytes, uint64_t addr)
{
	return addr >= start && addr - start < bytes;
}

/* Sizes and rooms of an address are the largest of all its names. */
static struct name_offer place_at(const struct model *m, uint64_t start)
{
	struct name_offer place = {.start = start};

	for (size_t i = 0; i < m->n_names; i++) {
		const struct name_offer *o = &m->names[i];

		if (o->start != start)
			continue;
		place.name = o->name ? o->name : place.name;
		place.size = o->size > place.size ? o->size : place.size;
		place.room = o->room > place.room ? o->room : place.room;
	}
	return place;
}

static bool is_place(const struct model *m, uint64_t addr)
{
	for (size_t i = 0; i < m->n_names; i++)
		if (m->names[i].start == addr)
			return true;
	return false;
}

/* The start of the sized symbol that has the address; UINT64_MAX when none does. */
static uint64_t sized_at(const struct model *m, uint64_t addr)
{
	for (uint64_t start = addr; start >= BASE; start--)
		if (is_place(m, start) && covers(start, place_at(m, start).size, addr))
			return start;
	return UINT64_MAX;
}

static uint64_t unsized_at(const struct model *m, uint64_t addr)
{
	for (uint64_t start = addr; start >= BASE; start--) {
		struct name_offer place;

		if (!is_place(m, start))
			continue;
		place = place_at(m, start);
		if (place.name && !place.size && covers(start, place.room, addr) &&
			sized_at(m, start) == UINT64_MAX)
			return start;
		return UINT64_MAX; /* it ends what is before it */
	}
	return UINT64_MAX;
}

static bool is_dwarf_name(const struct model *m, uint64_t start, const char *name)
{
	for (size_t i = 0; i < m->n_names; i++) {
		const struct name_offer *o = &m->names[i];
		size_t n = o->name ? strlen(o->name) : 0;

		if (o->is_dwarf && o->start == start && !strncmp(name, o->name, n) &&
			(!name[n] || name[n] == '.'))
			return true;
	}
	return false;
}

/* A number for each thing that is compared, most important first; smaller is better. */
static void score(const struct model *m, const struct name_offer *o, int out[5])
{
	bool only_dwarf = true;
	int kind = o->kind, bind = o->bind, underscores = 0;

	for (size_t i = 0; i < m->n_names; i++) {
		const struct name_offer *same = &m->names[i];

		if (same->start != o->start || !same->name || strcmp(same->name, o->name))
			continue;
		only_dwarf = only_dwarf && same->is_dwarf;
		kind = same->kind < kind ? same->kind : kind;
		bind = same->bind < bind ? same->bind : bind;
	}
	while (o->name[underscores] == '_')
		underscores++;
	out[0] = kind == CANDIDATE_KIND_FUNCTION ? 1 : kind == CANDIDATE_KIND_LABEL ? 3 : 4;
	if (only_dwarf)
		out[0] = 2;
	else if (is_dwarf_name(m, o->start, o->name))
		out[0] = 0;
	out[1] = kind;
	out[2] = bind;
	out[3] = underscores;
	out[4] = (int)strlen(o->name);
}

static bool is_better(const struct model *m, const struct name_offer *a, const struct name_offer *b)
{
	int x[5], y[5];

	score(m, a, x);
	score(m, b, y);
	for (int i = 0; i < 5; i++)
		if (x[i] != y[i])
			return x[i] < y[i];
	return strcmp(a->name, b->name) < 0;
}

static const char *best_name(const struct model *m, uint64_t start)
{
	const struct name_offer *best = NULL;

	for (size_t i = 0; i < m->n_names; i++) {
		const struct name_offer *o = &m->names[i];

		if (o->start == start && o->name && (!best || is_better(m, o, best)))
			best = o;
	}
	return best->name;
}

static const char *symbol_at(const struct model *m, uint64_t addr)
{
	uint64_t start = UINT64_MAX;

	for (size_t i = m->n_names; m->is_later_wins && i-- > 0;)
		if (m->names[i].name && covers(m->names[i].start, m->names[i].size, addr))
			return m->names[i].name;
	if (!m->is_later_wins) {
		start = sized_at(m, addr);
		start = start == UINT64_MAX ? unsized_at(m, addr) : start;
	}
	if (start != UINT64_MAX)
		return best_name(m, start);
	for (size_t i = 0; i < m->n_pieces; i++)
		if (addr >= m->pieces[i].start && addr < m->pieces[i].end)
			return m->pieces[i].name;
	return NULL;
}

static bool row_at(const struct model *m, uint64_t addr, size_t *unit, struct dwarf_row *row)
{
	for (*unit = 0; *unit < m->n_units; ++*unit) {
		const struct dwarf_unit_map *u = &m->units[*unit];

		for (size_t i = u->rows.n; i-- > 0;) {
			*row = u->rows.v[i];
			if (row->addr > addr)
				continue;
			if (!row->is_hole && (row->file || row->line || row->site))
				return true;
			break;
		}
	}
	return false;
}

static const char *text_of(const struct dwarf_text *t)
{
	return t->n ? t->p : "?";
}

/* As chain_at says it. */
static void expected_chain(const struct model *m, uint64_t addr, char *text, size_t size)
{
	const char *symbol = symbol_at(m, addr);
	struct dwarf_row row = {0};
	size_t unit, at = 0;

	if (!row_at(m, addr, &unit, &row)) {
		snprintf(text, size, symbol ? "%s ?:0" : "-", symbol);
		return;
	}
	for (uint32_t site = row.site; site;) {
		const struct dwarf_unit_map *u = &m->units[unit];
		const struct dwarf_site *s = &u->sites.v[site];

		at += (size_t)snprintf(text + at, size - at, "%s %s:%u < ",
			text_of(&u->names.v[s->name]), text_of(&u->files.v[row.file]), row.line);
		row.file = s->call_file;
		row.line = s->call_line;
		site = s->parent;
	}
	snprintf(text + at, size - at, "%s %s:%u", symbol ? symbol : "?",
		text_of(&m->units[unit].files.v[row.file]), row.line);
}

/* --- comparing --- */

static size_t compare(const struct model *m, struct catalog_image *image)
{
	char expected[4096], before[4096] = "-";
	size_t n_wrong = 0;

	for (uint64_t addr = BASE - 2; addr < BASE + 2 * WIDTH; addr++) {
		struct catalog_range r;

		expected_chain(m, addr, expected, sizeof(expected));
		if (strcmp(chain_at(image, addr), expected)) {
			n_wrong++;
			printf("%#llx: '%s', expected '%s'\n", (unsigned long long)addr,
				chain_at(image, addr), expected);
		}
		/* A range must not reach over a change. */
		if (catalog_image_find_range(image, (struct iaddr){addr}, &r) && r.start < addr)
			n_wrong += strcmp(before, expected) != 0;
		strcpy(before, expected);
	}
	return n_wrong;
}

static void test_random(void)
{
	for (uint64_t round = 0; round < 400; round++) {
		struct image_builder *b = builder_begin("/bin/p");
		struct catalog_image *image;
		struct buf bytes = {0};
		struct model m;
		size_t n_wrong;

		seed = round * 77 + 1;
		model_make(&m, b);
		image = builder_open(b, &bytes);
		n_wrong = compare(&m, image);
		CHECK_EQ(n_wrong, 0);
		CHECK(comes_out_equal(image, buf_span(&bytes)));
		CHECK_EQ(catalog_image_n_damaged(image), 0);
		catalog_image_close(image);
		buf_release(&bytes);
		for (size_t i = 0; i < m.n_units; i++)
			unit_end(&m.units[i]);
		if (n_wrong) {
			printf("round %llu\n", (unsigned long long)round);
			break;
		}
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"random symbols and units are answered as the rules say", test_random},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
