/* SPDX-License-Identifier: MIT */
/* Any bytes as a response file, its words as a linker's command line; as a linker script; and as
 * the names of an object for link-time optimisation. */
#include <stdlib.h>
#include <string.h>

#include "insert/link_command.h"
#include "insert/link_files.h"
#include "insert/link_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_inside(void *context, enum link_script_use use, struct span word)
{
	const struct span *text = context;
	char *name;

	if (use > LINK_SCRIPT_FOLDER || !word.n || word.p < text->p || word.n > text->n ||
		word.p + word.n > text->p + text->n)
		abort();
	name = link_script_name(word);
	if (strlen(name) > word.n)
		abort();
	free(name);
}

static void check_name(void *context, const char *name, bool is_defined)
{
	const struct span *text = context;
	const uint8_t *p = (const uint8_t *)name;

	if (p < text->p || p + strlen(name) >= text->p + text->n || (is_defined && !text->n))
		abort();
}

/* Nothing is opened: a word that begins with '@' is made harmless. */
static void disarm(struct link_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (words->v[i][0] == '@')
			words->v[i][0] = '%';
}

static void check_same(const struct link_words *a, const struct link_words *b)
{
	if (a->n != b->n)
		abort();
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]))
			abort();
}

static void check_command(const struct link_words *words)
{
	struct link_words same = {0};
	struct link_command c;
	char **nothing;

	if (link_command_read(&c, words->v, words->n, NULL) < 0)
		return;
	nothing = mem_calloc(c.inputs.n + 1, sizeof(nothing[0]));
	for (size_t i = 0; i < c.inputs.n; i++)
		if (c.inputs.v[i].arg + c.inputs.v[i].n_args > c.args.n ||
			(i && c.inputs.v[i].arg < c.inputs.v[i - 1].arg + c.inputs.v[i - 1].n_args))
			abort();
	if (c.library_at > c.args.n)
		abort();
	link_command_rewrite(&c, nothing, &(struct link_additions){0}, &same);
	check_same(words, &same);
	link_words_release(&same);
	free(nothing);
	link_command_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span text = {data, n};
	struct link_words words = {0}, again = {0};
	struct buf joined = {0};

	link_script_read(text, check_inside, &text);
	link_lto_read(text, check_name, &text);
	link_words_split(text, &words);
	link_words_join(&words, &joined);
	link_words_split(buf_span(&joined), &again);
	check_same(&words, &again);
	disarm(&words);
	check_command(&words);
	link_words_release(&words);
	link_words_release(&again);
	buf_release(&joined);
	return 0;
}
