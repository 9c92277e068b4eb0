/* SPDX-License-Identifier: MIT */
/* Functions by pattern in a process as it is mapped now, for --from, --to and --around; the variables
 * of images, for --data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "steps/record/step_internal.h"
#include "symbols/symtab.h"

void step_find_release(struct step_session *s)
{
	for (size_t i = 0; i < s->symtabs.n; i++)
		symtab_free(s->symtabs.v[i]);
	vec_release(&s->symtabs);
	for (size_t i = 0; i < s->data_symtabs.n; i++)
		symtab_free(s->data_symtabs.v[i]);
	vec_release(&s->data_symtabs);
}

int step_function_init(struct step_function *f, const char *text, struct err *err)
{
	char *end;

	*f = (struct step_function){.text = text};
	if (strncmp(text, "0x", 2) != 0)
		return function_pattern_init(&f->pattern, text, NULL, err);
	f->is_address = true;
	f->address = strtoull(text, &end, 16);
	return *end ? err_set(err, ERR_FORMAT, "'%s' is not an address", text) : 0;
}

void step_function_release(struct step_function *f)
{
	function_pattern_release(&f->pattern);
}

static const struct symtab *symtab_of(struct step_session *s, uint32_t number)
{
	const struct image *image = images_get(s->env.images, number);

	vec_ensure_zero(&s->symtabs, number + (size_t)1);
	if (!s->symtabs.v[number] && image->has_elf)
		s->symtabs.v[number] = symtab_new_elf(&image->elf, image->path);
	return s->symtabs.v[number];
}

const struct symtab *step_find_variables(void *session, uint32_t number)
{
	struct step_session *s = session;
	const struct image *image = images_get(s->env.images, number);

	vec_ensure_zero(&s->data_symtabs, number + (size_t)1);
	if (!s->data_symtabs.v[number] && image->has_elf)
		s->data_symtabs.v[number] = symtab_new_elf_data(&image->elf, image->path);
	return s->data_symtabs.v[number];
}

struct found {
	uint64_t *addrs;
	size_t n, max;
	enum function_match match; /* of all of them */
};

/* A function of just that name goes before those that a wildcard brings: operator* is one. */
static void add(struct found *f, uint64_t addr, enum function_match match)
{
	if (match == FUNCTION_MATCH_LINKAGE)
		match = FUNCTION_MATCH_READABLE;
	if (match < f->match)
		return;
	if (match > f->match)
		f->n = 0;
	f->match = match;
	for (size_t i = 0; i < f->n && i < f->max; i++)
		if (f->addrs[i] == addr)
			return;
	if (f->n < f->max)
		f->addrs[f->n] = addr;
	f->n++;
}

static void find_in(struct step_session *s, const struct mapping *m,
	const struct function_pattern *pattern, struct found *found)
{
	const struct symtab *t = symtab_of(s, m->image);

	for (size_t i = 0; t && i < symtab_n(t); i++) {
		const struct symbol *symbol = symtab_get(t, i);
		struct function_name name = {.linkage = symbol->linkage_name};
		uint64_t addr = symbol->start + m->bias;
		enum function_match match;

		if (symbol->source == SYMBOL_SOURCE_PLT || addr < m->start || addr >= m->end)
			continue;
		match = function_pattern_match(pattern, &name);
		if (match)
			add(found, addr, match);
		function_name_release(&name);
	}
}

size_t step_session_find(struct step_session *s, const struct step_track *t,
	const struct step_function *f, uint64_t *addrs, size_t max)
{
	const struct addrspace *space = t->space->process->space;
	struct found found = {.addrs = addrs, .max = max};

	if (f->is_address) {
		add(&found, f->address, FUNCTION_MATCH_LINKAGE);
		return found.n;
	}
	for (size_t i = 0; i < addrspace_n(space); i++) {
		const struct mapping *m = addrspace_get(space, i);

		if (!function_pattern_wants_image(
			    &f->pattern, images_get(s->env.images, m->image)->path))
			continue;
		find_in(s, m, &f->pattern, &found);
		/* The program's own comes first, then libraries. */
		if (found.n && !f->pattern.image)
			break;
	}
	return found.n;
}

void step_session_complain_of_missing(
	struct step_session *s, const char *option, const struct step_function *f)
{
	struct nearest_names near = {.wanted = f->pattern.name};
	char names[256], text[1024];
	bool has_near;

	for (size_t i = 0; !f->is_address && i < s->symtabs.n; i++) {
		const struct symtab *t = s->symtabs.v[i];

		for (size_t k = 0; t && k < symtab_n(t); k++)
			if (symtab_get(t, k)->source != SYMBOL_SOURCE_PLT)
				function_pattern_offer(
					&f->pattern, &near, symtab_get(t, k)->linkage_name);
	}
	has_near = nearest_names_text(&near, names, sizeof(names));
	snprintf(text, sizeof(text),
		"%s: there is no function '%s' in the program and what it loaded "
		"(one that was inlined has no place of its own)%s%s%s",
		option, f->text, has_near ? "; is it " : "", names, has_near ? "?" : "");
	trace_writer_loss(s->env.w, s->life_stream, clock_mono_ns(), RECORD_LOSS_NOTE, 1, text);
	if (s->options->complain)
		s->options->complain(s->options->ctx, text);
	s->result->n_unmatched++;
}
