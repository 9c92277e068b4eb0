/* SPDX-License-Identifier: MIT */
#include "probe/compile/settings.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest_names.h"

#define STRING_BYTES_MAX 10240 /* as --strlen */
#define ENTRIES_MAX	 (1u << 28)
#define PAGES_MAX	 (1u << 18)
#define NAME_BYTES_MAX	 40

enum setting_kind {
	SETTING_NUMBER, /* uint32_t, 1 to max */
	SETTING_BOOL,	/* bool: whether it is 0 or false */
	SETTING_WORD,	/* an enumeration: which of the words */
	SETTING_TEXT
};

#define NO_EFFECT SIZE_MAX /* in place of a field */

static const char *const missing_words[] = {"error", "warn", "ignore", NULL};
static const char *const stack_words[] = {"bpftrace", "perf", "raw", "build_id", NULL};
static const char *const cache_words[] = {"PER_PROGRAM", "PER_PID", "NONE", NULL};
static const char *const unstable_words[] = {"error", "warn", "enable", NULL};
static const char *const like_words[] = {"0.26", "0.17", NULL};
static const char *const licenses[] = {"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL",
	"Dual MIT/GPL", "Dual MPL/GPL", NULL};
static const char *const symbol_words[] = {"dwarf", "symbol_table", NULL};

#define AT(field) offsetof(struct settings, field)
static const struct setting {
	const char *name;
	enum setting_kind kind;
	size_t at; /* in struct settings */
	uint32_t max;
	const char *const *words;
} known[] = {
	{"cache_user_symbols", SETTING_WORD, NO_EFFECT, 0, cache_words},
	{"cpp_demangle", SETTING_BOOL, NO_EFFECT, 0, NULL},
	{"debug_output", SETTING_BOOL, NO_EFFECT, 0, NULL},
	{"lazy_symbolication", SETTING_BOOL, NO_EFFECT, 0, NULL},
	{"like", SETTING_WORD, AT(like), 0, like_words},
	{"license", SETTING_WORD, NO_EFFECT, 0, licenses},
	{"log_size", SETTING_NUMBER, NO_EFFECT, UINT32_MAX, NULL},
	{"max_ast_nodes", SETTING_NUMBER, NO_EFFECT, UINT32_MAX, NULL},
	{"max_bpf_progs", SETTING_NUMBER, NO_EFFECT, UINT32_MAX, NULL},
	{"max_cat_bytes", SETTING_NUMBER, AT(cat_bytes), UINT32_MAX, NULL},
	{"max_map_keys", SETTING_NUMBER, AT(max_entries), ENTRIES_MAX, NULL},
	{"max_probes", SETTING_NUMBER, AT(max_sites), UINT32_MAX, NULL},
	{"max_strlen", SETTING_NUMBER, AT(string_bytes), STRING_BYTES_MAX, NULL},
	{"max_type_res_iterations", SETTING_NUMBER, NO_EFFECT, UINT32_MAX, NULL},
	{"missing_probes", SETTING_WORD, AT(missing), 0, missing_words},
	{"on_stack_limit", SETTING_NUMBER, NO_EFFECT, UINT32_MAX, NULL},
	{"perf_rb_pages", SETTING_NUMBER, AT(ring_pages), PAGES_MAX, NULL},
	{"print_maps_on_exit", SETTING_BOOL, AT(hides_maps), 0, NULL},
	{"show_debug_info", SETTING_BOOL, AT(hides_lines), 0, NULL},
	{"stack_mode", SETTING_WORD, AT(stack_form), 0, stack_words},
	{"str_trunc_trailer", SETTING_TEXT, NO_EFFECT, 0, NULL},
	{"symbol_source", SETTING_WORD, NO_EFFECT, 0, symbol_words},
	{"unstable_addr", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"unstable_dw_ustack", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"unstable_import", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"unstable_macro", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"unstable_map_decl", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"unstable_tseries", SETTING_WORD, NO_EFFECT, 0, unstable_words},
	{"use_blazesym", SETTING_BOOL, NO_EFFECT, 0, NULL},
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

/* Names of the environment that bpftrace has given up. */
static const struct {
	const char *old, *name;
} renamed[] = {{"cat_bytes_max", "max_cat_bytes"}, {"map_keys_max", "max_map_keys"},
	{"strlen", "max_strlen"}};

/* A value, of the script or of the environment. */
struct value {
	bool is_number;
	uint64_t number;
	const char *text; /* NULL: it is a number */
	struct place place;
};

/* stack_mode, STACK_MODE and BPFTRACE_STACK_MODE are the same. */
static const struct setting *find_known(const char *name, size_t n)
{
	static const char prefix[] = "BPFTRACE_";
	char lower[NAME_BYTES_MAX];

	if (n > sizeof(prefix) - 1 && !strncasecmp(name, prefix, sizeof(prefix) - 1)) {
		name += sizeof(prefix) - 1;
		n -= sizeof(prefix) - 1;
	}
	if (n >= sizeof(lower))
		return NULL;
	for (size_t i = 0; i < n; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	lower[n] = '\0';
	name = lower;
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (!strcmp(renamed[i].old, lower))
			name = renamed[i].name;
	for (size_t i = 0; i < N_KNOWN; i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

/* --- one setting ------------------------------------------------------------------------------ */

static void *field_of(const struct setting *s, struct settings *out)
{
	return s->at == NO_EFFECT ? NULL : (char *)out + s->at;
}

static void read_number(
	const struct setting *s, const struct value *v, struct settings *out, struct diags *diags)
{
	uint32_t *field = field_of(s, out);
	/* A size of 0 turns something off that is not there anyhow. */
	uint64_t min = field ? 1 : 0;

	if (!v->is_number || v->number < min || v->number > s->max)
		diag_error(diags, v->place, "range", "'%s' is a number from %llu to %u", s->name,
			(unsigned long long)min, s->max);
	else if (field)
		*field = (uint32_t)v->number;
}

static void read_bool(
	const struct setting *s, const struct value *v, struct settings *out, struct diags *diags)
{
	bool *is_off = field_of(s, out);
	bool is_false = v->text ? !strcasecmp(v->text, "false") : v->number == 0;
	bool is_true = v->text ? !strcasecmp(v->text, "true") : v->number == 1;

	if (!is_false && !is_true)
		diag_error(diags, v->place, "range", "'%s' is 0, 1, false or true", s->name);
	else if (is_off)
		*is_off = is_false;
}

static void refuse_word(const struct setting *s, const struct value *v, struct diags *diags)
{
	struct buf words = {0};

	for (size_t i = 0; s->words[i]; i++)
		buf_printf(&words, "%s%s", !i ? "" : s->words[i + 1] ? ", " : " or ", s->words[i]);
	diag_error(diags, v->place, "range", "'%s' is %s", s->name, buf_text(&words));
	buf_release(&words);
}

static void read_word(
	const struct setting *s, const struct value *v, struct settings *out, struct diags *diags)
{
	unsigned *field = field_of(s, out), i = 0;

	while (s->words[i] && (!v->text || strcmp(s->words[i], v->text)))
		i++;
	if (!s->words[i])
		refuse_word(s, v, diags);
	else if (field)
		*field = i;
}

static void read_setting(
	const struct setting *s, const struct value *v, struct settings *out, struct diags *diags)
{
	switch (s->kind) {
	case SETTING_NUMBER:
		read_number(s, v, out, diags);
		break;
	case SETTING_BOOL:
		read_bool(s, v, out, diags);
		break;
	case SETTING_WORD:
		read_word(s, v, out, diags);
		break;
	case SETTING_TEXT:
		if (!v->text)
			diag_error(diags, v->place, "range", "'%s' is a text", s->name);
		break;
	}
}

/* --- all of them ------------------------------------------------------------------------------ */

static void refuse_unknown(const struct expr *name, struct diags *diags)
{
	const char *best = NULL;
	uint32_t nearest = 4;

	for (size_t i = 0; i < N_KNOWN; i++) {
		uint32_t distance = name_distance(name->name, known[i].name, nearest);

		if (distance < nearest) {
			nearest = distance;
			best = known[i].name;
		}
	}
	diag_error(diags, name->place, "unknown-name", "there is no setting '%s'", name->name);
	if (best)
		diag_hint(diags, "is it '%s'?", best);
}

static void read_script(const struct script *script, struct settings *out, struct diags *diags)
{
	for (const struct expr *e = script->config; e; e = e->next) {
		const struct setting *s = find_known(e->a->name, strlen(e->a->name));
		struct value v = {.is_number = e->b->kind == EXPR_INT,
			.number = e->b->value,
			.text = e->b->kind == EXPR_INT ? NULL : e->b->text,
			.place = e->b->place};

		if (!s) {
			refuse_unknown(e->a, diags);
			continue;
		}
		read_setting(s, &v, out, diags);
		if (s->at == NO_EFFECT && s->words != licenses && s->words != unstable_words)
			diag_warning(diags, e->a->place, "config",
				"the setting '%s' has no effect here", e->a->name);
	}
}

/* What stands there may be meant for bpftrace: what is not known or has no effect is passed over. */
static void read_variable(const char *variable, struct settings *out, struct diags *diags)
{
	const char *equals = strchr(variable, '=');
	const struct setting *s;
	struct value v = {.place = {UINT32_MAX, 0, 0, 0}};
	char *end;

	if (!equals || strncmp(variable, "BPFTRACE_", 9))
		return;
	s = find_known(variable, (size_t)(equals - variable));
	if (!s)
		return;
	v.text = equals + 1;
	if (isdigit((unsigned char)*v.text) && s->kind != SETTING_TEXT) {
		v.number = strtoull(v.text, &end, 0);
		v.is_number = !*end;
		if (v.is_number)
			v.text = NULL;
	}
	read_setting(s, &v, out, diags);
}

void settings_read(const struct script *script, const char *const *environment,
	struct settings *out, struct diags *diags)
{
	read_script(script, out, diags);
	for (; environment && *environment; environment++)
		read_variable(*environment, out, diags);
}
