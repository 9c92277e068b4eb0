/* SPDX-License-Identifier: MIT */
/*
 * The text of a trace point, taken apart. The parts lie between colons; only the last one may hold
 * colons itself, because it may be a C++ name. Messages point to the part that is wrong when the
 * script has the text as it is here, and to the whole point when it was quoted there.
 */
#include <string.h>

#include "base/arena.h"
#include "base/glob.h"
#include "base/nearest_names.h"
#include "probe/points/perf_counts.h"
#include "probe/points/point_kind.h"
#include "probe/points/point_parts.h"
#include "symbols/function_pattern.h"

#define POINT_TEXT_MAX	    4096 /* bytes */
#define POINT_PERIOD_NS_MIN 1000ull
#define POINT_PERIOD_NS_MAX (366ull * 86400 * 1000000000)
#define SYSCALL_ENTER	    "sys_enter_"
#define SYSCALL_EXIT	    "sys_exit_"

/* Bytes [at, at + n) of the point's text, as a place in the script. */
static struct place place_at(const struct point_parse *p, uint32_t at, size_t n)
{
	struct place place = p->point->place;
	size_t all = strlen(p->point->text);

	if (place.to < place.from || place.to - place.from != all || at > all)
		return place;
	place.from += at;
	place.to = place.from + (uint32_t)(n < all - at ? n : all - at);
	return place;
}

struct place point_place_of(const struct point_parse *p, const struct part *part)
{
	size_t n = strlen(part->text);

	return n ? place_at(p, part->at, n) : p->point->place;
}

bool point_fail_form(struct point_parse *p, const char *what)
{
	diag_error(p->d, p->point->place, "point", "'%s' %s", p->point->text, what);
	return diag_hint(p->d, "the form is %s", p->form);
}

bool point_split(struct point_parse *p, size_t max)
{
	const char *text = p->point->text;
	const char *at = strchr(text, ':');

	p->n_parts = 0;
	while (at && p->n_parts < max) {
		const char *start = at + 1;

		at = p->n_parts + 1 == max ? NULL : strchr(start, ':');
		p->parts[p->n_parts++] =
			(struct part){at ? arena_strndup(p->arena, start, (size_t)(at - start))
					 : arena_strdup(p->arena, start),
				(uint32_t)(start - text)};
	}
	return p->n_parts > 0;
}

/* --- numbers ------------------------------------------------------------------------------- */

/* "e6" behind a decimal number. */
static bool take_exponent(const char **s, uint64_t *v)
{
	if (**s != 'e' || (*s)[1] < '0' || (*s)[1] > '9')
		return true;
	for (unsigned n = (unsigned)(*++*s - '0'); n; n--)
		if (__builtin_mul_overflow(*v, 10u, v))
			return false;
	++*s;
	return true;
}

bool point_take_number(const char **text, uint64_t *value)
{
	const char *s = *text;
	unsigned base = 10;
	uint64_t v = 0;
	bool any = false;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	}
	for (;; s++) {
		unsigned digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned)(*s - '0');
		else if (base == 16 && (*s | 32) >= 'a' && (*s | 32) <= 'f')
			digit = (unsigned)((*s | 32) - 'a' + 10);
		else if (*s == '_' && any)
			continue;
		else
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
		any = true;
	}
	if (base == 10 && any && !take_exponent(&s, &v))
		return false;
	*value = v;
	*text = s;
	return any;
}

bool point_whole_number(const char *text, uint64_t *value)
{
	return point_take_number(&text, value) && !*text;
}

/* --- interval and profile --------------------------------------------------------------------- */

static const struct unit {
	const char *name;
	uint64_t ns; /* 0: a rate */
} units[] = {
	{"hz", 0},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60000000000},
	{"h", 3600000000000},
	{"ns", 1},
};

static const struct unit *find_unit(const char *name)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

static bool set_period(
	struct point_parse *p, const struct part *part, const struct unit *unit, uint64_t n)
{
	uint64_t ns;

	if (!n)
		return diag_error(p->d, point_place_of(p, part), "range",
			"a period or rate of 0 never fires");
	if (!unit->ns)
		ns = 1000000000 / n;
	else if (__builtin_mul_overflow(n, unit->ns, &ns))
		ns = UINT64_MAX;
	if (ns < POINT_PERIOD_NS_MIN || ns > POINT_PERIOD_NS_MAX)
		return diag_error(p->d, point_place_of(p, part), "range",
			"a period must lie between 1 us and 366 days");
	p->out->period_ns = ns;
	p->out->text =
		arena_printf(p->arena, "%s:%s:%llu", p->word, unit->name, (unsigned long long)n);
	return true;
}

/* The unit of a number without one: nanoseconds. profile:99 is a rate, as perf has it: so short a
 * period does not exist. */
static const struct unit *plain_unit(const struct point_parse *p, uint64_t n)
{
	return find_unit(p->out->kind == POINT_PROFILE && n < POINT_PERIOD_NS_MIN ? "hz" : "ns");
}

/* interval:UNIT:N | interval:NUNIT | interval:NANOSECONDS | profile:N */
bool point_parse_period(struct point_parse *p)
{
	const struct part *last;
	const struct unit *unit;
	const char *rest;
	uint64_t n;

	if (!point_split(p, 2))
		return point_fail_form(p, "does not say how often");
	last = &p->parts[p->n_parts - 1];
	rest = last->text;
	if (!point_take_number(&rest, &n)) {
		diag_error(p->d, point_place_of(p, last), "point", "'%s' is no number", last->text);
		return diag_hint(p->d, "the form is %s", p->form);
	}
	if (p->n_parts == 2 && *rest)
		return point_fail_form(p, "has a unit on both sides");
	unit = find_unit(p->n_parts == 2 ? p->parts[0].text : rest);
	if (p->n_parts == 1 && !*rest)
		unit = plain_unit(p, n);
	if (!unit) {
		diag_error(p->d, point_place_of(p, &p->parts[0]), "point",
			"'%s' is no unit of time", p->n_parts == 2 ? p->parts[0].text : rest);
		return diag_hint(p->d, "there are hz, us, ms and s");
	}
	return set_period(p, last, unit, n);
}

/* --- files and functions ---------------------------------------------------------------------- */

/* "FUNC+0x10": cuts the offset off. "operator+" has none. */
static bool take_offset(
	struct point_parse *p, const struct part *part, char *name, uint64_t *offset)
{
	char *plus = strrchr(name, '+');

	*offset = 0;
	if (!plus || plus == name || plus[1] < '0' || plus[1] > '9')
		return true;
	if (!point_whole_number(plus + 1, offset)) {
		size_t at = (size_t)(plus + 1 - name);

		return diag_error(p->d, place_at(p, part->at + (uint32_t)at, strlen(plus + 1)),
			"point", "'%s' is no offset", plus + 1);
	}
	*plus = 0;
	return true;
}

/* C++ names have colons in pairs. */
static bool has_single_colon(const char *name)
{
	for (const char *c = strchr(name, ':'); c; c = strchr(c + 2, ':'))
		if (c[1] != ':')
			return true;
	return false;
}

/* A name, glob or regular expression of functions; an offset is cut off. */
static bool take_pattern(struct point_parse *p, const struct part *part, char *name)
{
	struct function_pattern pattern;
	struct err err;

	if (*name != '/' && !take_offset(p, part, name, &p->out->offset))
		return false;
	if (function_pattern_init_name(&pattern, name, &err) < 0)
		return diag_error(p->d, point_place_of(p, part), "point", "%s", err.text);
	p->out->is_glob = !pattern.is_exact || glob_has(p->out->file);
	function_pattern_release(&pattern);
	return true;
}

/* The @ of PROGRAM@SOURCE:LINE[:COLUMN], or NULL. */
static const char *source_mark(const struct point_parse *p)
{
	const char *rest = p->parts[1].text;

	return rest[0] && !rest[strspn(rest, "0123456789:")] ? strrchr(p->parts[0].text, '@')
							     : NULL;
}

/* PROGRAM@SOURCE:LINE[:COLUMN] */
static bool take_source_line(struct point_parse *p, const char *mark)
{
	struct point_spec *out = p->out;
	const struct part *part = &p->parts[1];
	const char *at = part->text;

	out->file = arena_strndup(p->arena, p->parts[0].text, (size_t)(mark - p->parts[0].text));
	out->provider = mark + 1;
	out->name = part->text;
	out->is_glob = glob_has(out->file);
	if (!*out->file || !*out->provider)
		return point_fail_form(p, "names no program or no file of source");
	if (out->kind != POINT_UPROBE)
		return diag_error(p->d, point_place_of(p, part), "point",
			"a return probe belongs to a whole function, not to a place inside of it");
	if (!point_take_number(&at, &out->address) || !out->address ||
		(*at == ':' && (at++, !point_take_number(&at, &out->count))) || *at)
		return diag_error(p->d, point_place_of(p, part), "point",
			"'%s' is no line of source", part->text);
	out->text = arena_printf(p->arena, "%s:%s:%s", p->word, p->parts[0].text, part->text);
	return true;
}

/* FILE:FUNC[+OFFSET] | FILE:0xADDRESS; uretprobe takes neither offset nor address. */
bool point_parse_function(struct point_parse *p)
{
	struct point_spec *out = p->out;
	struct part *part;
	char *name;

	if (!point_split(p, 2))
		return point_fail_form(p, "names no file");
	if (p->n_parts < 2)
		return point_fail_form(p, "names no function");
	part = &p->parts[1];
	if (source_mark(p))
		return take_source_line(p, source_mark(p));
	/* bpftrace's mark of a C++ name; here such names are known by their look. */
	if (strncmp(part->text, "cpp:", 4) == 0 && part->text[4] != ':') {
		part->text += 4;
		part->at += 4;
	}
	if (!*part->text)
		return point_fail_form(p, "names no function");
	if (*part->text != '/' && has_single_colon(part->text))
		return point_fail_form(p, "has too many parts");
	out->file = p->parts[0].text;
	name = arena_strdup(p->arena, part->text);
	if (*name >= '0' && *name <= '9') {
		if (!point_whole_number(name, &out->address))
			return diag_error(
				p->d, point_place_of(p, part), "point", "'%s' is no address", name);
		out->has_address = true;
	} else if (!take_pattern(p, part, name)) {
		return false;
	}
	if (point_has(out->kind, POINT_AT_RETURN) && (out->has_address || out->offset))
		return diag_error(p->d, point_place_of(p, part), "point",
			"a return probe belongs to a whole function, not to a place inside of it");
	out->name = name;
	out->text = arena_printf(p->arena, "%s:%s:%s", p->word, out->file, part->text);
	return true;
}

/* FILE:[PROVIDER:]NAME */
bool point_parse_usdt(struct point_parse *p)
{
	struct point_spec *out = p->out;

	if (!point_split(p, 3))
		return point_fail_form(p, "names no file");
	if (p->n_parts < 2 || !*p->parts[p->n_parts - 1].text)
		return point_fail_form(p, "names no probe");
	if (strchr(p->parts[p->n_parts - 1].text, ':'))
		return point_fail_form(p, "has too many parts");
	out->file = p->parts[0].text;
	if (p->n_parts == 3 && *p->parts[1].text)
		out->provider = p->parts[1].text;
	out->name = p->parts[p->n_parts - 1].text;
	out->is_glob = glob_has(out->name) || glob_has(out->file) ||
		       (out->provider && glob_has(out->provider));
	out->text = arena_printf(p->arena, "%s:%s:%s%s%s", p->word, out->file,
		out->provider ? out->provider : "", out->provider ? ":" : "", out->name);
	return true;
}

/* --- the kernel's points ---------------------------------------------------------------------- */

/* NAME[:entry|:return] | :NAME:entry */
bool point_parse_syscall(struct point_parse *p)
{
	const struct part *name, *when = NULL;
	size_t first;

	if (!point_split(p, POINT_PARTS_MAX))
		return point_fail_form(p, "names no system call");
	first = p->n_parts > 1 && !*p->parts[0].text;
	name = &p->parts[first];
	if (p->n_parts > first + 1)
		when = &p->parts[first + 1];
	if (!*name->text || p->n_parts > first + 2)
		return point_fail_form(p, "is not one system call");
	if (when && (strcmp(when->text, "return") == 0 || strcmp(when->text, "exit") == 0)) {
		p->out->kind = POINT_SYSCALL_RETURN;
	} else if (when && *when->text && strcmp(when->text, "entry") != 0 &&
		   strcmp(when->text, "enter") != 0) {
		return diag_error(p->d, point_place_of(p, when), "point",
			"a system call has an entry and a return, no '%s'", when->text);
	}
	p->out->name = name->text;
	p->out->is_glob = glob_has(name->text);
	p->out->text = arena_printf(p->arena, "%s:%s:%s", p->word, name->text,
		p->out->kind == POINT_SYSCALL_RETURN ? "return" : "entry");
	return true;
}

/* The named tracepoints of system calls do not fire for 32-bit programs, so they become the points
 * that do. */
static bool translate_syscall_event(struct point_parse *p)
{
	struct point_spec *out = p->out;

	if (strncmp(out->name, SYSCALL_ENTER, strlen(SYSCALL_ENTER)) == 0) {
		out->kind = POINT_SYSCALL_ENTRY;
		out->name += strlen(SYSCALL_ENTER);
	} else if (strncmp(out->name, SYSCALL_EXIT, strlen(SYSCALL_EXIT)) == 0) {
		out->kind = POINT_SYSCALL_RETURN;
		out->name += strlen(SYSCALL_EXIT);
	} else if (out->is_glob) {
		/* Entries and returns: the compiler makes two points of it. */
		out->kind = POINT_SYSCALL_ENTRY;
		return true;
	} else {
		return true; /* there is none, as finding it will say */
	}
	out->provider = NULL;
	return *out->name || point_fail_form(p, "names no system call");
}

bool point_parse_tracepoint(struct point_parse *p)
{
	struct point_spec *out = p->out;

	if (!point_split(p, 2) || !*p->parts[0].text)
		return point_fail_form(p, "names no category");
	if (p->n_parts < 2 || !*p->parts[1].text)
		return point_fail_form(p, "names no tracepoint of the category");
	out->provider = p->parts[0].text;
	out->name = p->parts[1].text;
	out->is_glob = glob_has(out->provider) || glob_has(out->name);
	out->text = arena_printf(p->arena, "%s:%s:%s", p->word, out->provider, out->name);
	if (strchr(out->name, ':') || strchr(out->name, '/') || strchr(out->provider, '/'))
		return point_fail_form(p, "is not one tracepoint");
	if (strcmp(out->provider, "syscalls") == 0)
		return translate_syscall_event(p);
	return true;
}

/* [MODULE:]FUNC[+OFFSET], [CATEGORY:]NAME */
bool point_parse_kernel(struct point_parse *p)
{
	struct point_spec *out = p->out;
	const struct part *part;
	char *name;

	if (!point_split(p, 3) || !*p->parts[p->n_parts - 1].text)
		return point_fail_form(p, "names nothing");
	if (p->n_parts == 3)
		return point_fail_form(p, "has too many parts");
	part = &p->parts[p->n_parts - 1];
	name = arena_strdup(p->arena, part->text);
	if (p->n_parts == 2 && *p->parts[0].text)
		out->provider = p->parts[0].text;
	if (!take_offset(p, part, name, &out->offset))
		return false;
	if (out->offset && out->kind != POINT_KPROBE)
		return point_fail_form(p, "cannot have an offset");
	out->name = name;
	out->is_glob = glob_has(name) || (out->provider && glob_has(out->provider));
	out->text = arena_printf(p->arena, "%s:%s%s%s", p->word, out->provider ? out->provider : "",
		out->provider ? ":" : "", part->text);
	return true;
}

/* EVENT[:COUNT] */
bool point_parse_count(struct point_parse *p)
{
	bool is_hardware = p->out->kind == POINT_HARDWARE;
	const struct perf_count *count;
	struct nearest_names near = {0};
	char text[512];

	if (!point_split(p, 2) || !*p->parts[0].text)
		return point_fail_form(p, "names no event");
	count = perf_count_find(is_hardware, p->parts[0].text);
	if (!count) {
		near.wanted = p->parts[0].text;
		for (const struct perf_count *c = perf_counts; c->name; c++)
			if (c->is_hardware == is_hardware)
				nearest_names_add(&near, c->name);
		diag_error(p->d, point_place_of(p, &p->parts[0]), "point",
			"there is no %s event '%s'", p->word, p->parts[0].text);
		if (nearest_names_text(&near, text, sizeof(text)))
			diag_hint(p->d, "is it %s?", text);
		else
			diag_hint(p->d, "weir probe -l '%s:*' lists them", p->word);
		return false;
	}
	p->out->name = count->name;
	p->out->count = count->count;
	if (p->n_parts == 2 && *p->parts[1].text &&
		(!point_whole_number(p->parts[1].text, &p->out->count) || !p->out->count))
		return diag_error(p->d, point_place_of(p, &p->parts[1]), "point",
			"'%s' is no count of events", p->parts[1].text);
	p->out->text = arena_printf(p->arena, "%s:%s:%llu", p->word, p->parts[0].text,
		(unsigned long long)p->out->count);
	return true;
}

bool point_parse_word_only(struct point_parse *p)
{
	if (strchr(p->point->text, ':'))
		return point_fail_form(p, "takes nothing behind a colon");
	p->out->text = p->word;
	return true;
}

/* --- the word --------------------------------------------------------------------------------- */

static bool is_word(const char *word, const char *text, size_t n)
{
	return word && strlen(word) == n && strncmp(word, text, n) == 0;
}

bool point_kind_find(const char *text, size_t n, enum point_kind *out)
{
	for (enum point_kind kind = 0; kind < N_POINT_KINDS; kind++) {
		const struct point_kind_def *def = &point_kinds[kind];

		if (is_word(def->name, text, n) || is_word(def->alias, text, n) ||
			is_word(def->older, text, n)) {
			*out = kind;
			return true;
		}
	}
	return false;
}

static bool fail_word(struct point_parse *p, size_t n)
{
	static const char *const others[] = {"asyncwatchpoint", "aw", "bench", "test", NULL};
	char *word = arena_strndup(p->arena, p->point->text, n);
	struct nearest_names near = {.wanted = word};
	char text[512];

	for (size_t i = 0; others[i]; i++) {
		if (strcmp(others[i], word))
			continue;
		return diag_error(p->d, place_at(p, 0, n), "point-unknown",
			"trace points of the kind '%s' do not exist here", word);
	}
	for (size_t i = 0; i < N_POINT_KINDS; i++)
		nearest_names_add(&near, point_kinds[i].name);
	for (size_t i = 0; i < N_POINT_KINDS; i++)
		if (point_kinds[i].older)
			nearest_names_add(&near, point_kinds[i].older);
	diag_error(p->d, place_at(p, 0, n), "point-unknown", "there is no kind of trace point '%s'",
		word);
	if (nearest_names_text(&near, text, sizeof(text)))
		diag_hint(p->d, "is it %s?", text);
	else
		diag_hint(p->d, "a function is written uprobe:FILE:FUNCTION, a system call "
				"syscall:NAME:entry");
	return false;
}

bool point_parse(
	const struct point_text *text, struct arena *arena, struct point_spec *out, struct diags *d)
{
	struct point_spec spec = {.place = text->place};
	struct point_parse p = {.point = text, .arena = arena, .out = &spec, .d = d};
	size_t n = strcspn(text->text, ":");

	if (strnlen(text->text, POINT_TEXT_MAX + 1) > POINT_TEXT_MAX)
		return diag_error(d, text->place, "point", "a trace point has at most %d bytes",
			POINT_TEXT_MAX);
	if (!point_kind_find(text->text, n, &spec.kind))
		return fail_word(&p, n);
	p.word = point_kinds[spec.kind].name;
	p.form = point_kinds[spec.kind].form;
	if (!point_kinds[spec.kind].parse(&p))
		return false;
	*out = spec;
	return true;
}
