/* SPDX-License-Identifier: MIT */
/*
 * Reading a linker's command line.
 *
 * What matters is to tell the file names from the values of options. Long options may be given with
 * one dash or two, their values behind '=' or as the next word; short ones have their value
 * attached or as the next word. An option that is not in the tables is taken as one without a next
 * word. A value taken for a file name does no harm unless a relocatable object of that name is
 * there.
 *
 * All -L count for all -l, wherever they are (GNU ld manual, "Options"); -Bstatic and -b count from
 * where they are.
 */
#include "insert/link_command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/* ---- response files ---- */

struct expansion {
	struct link_words *out;
	size_t n_files; /* expanded so far */
	struct err *err;
};

static int expand_words(struct expansion *e, char *const *words, size_t n);

/* 1: there is no such file, the word means itself. */
static int expand_file(struct expansion *e, const char *path)
{
	struct buf text = {0};
	struct link_words words = {0};
	struct stat st;
	int rc;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return 1;
	if (++e->n_files > LINK_RESPONSE_FILES_MAX)
		return err_set(e->err, ERR_LIMIT, "'%s': more than %d response files", path,
			LINK_RESPONSE_FILES_MAX);
	rc = file_read(&text, path, LINK_RESPONSE_BYTES_MAX, e->err);
	if (rc == 0) {
		link_words_split(buf_span(&text), &words);
		rc = expand_words(e, words.v, words.n);
		link_words_release(&words);
	} else if (rc != ERR_LIMIT) {
		rc = 1;
	}
	buf_release(&text);
	return rc;
}

/* Each level of nesting opens a file, so n_files bounds the depth too. */
static int expand_words(struct expansion *e, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc = words[i][0] == '@' ? expand_file(e, words[i] + 1) : 1;

		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (e->out->n >= LINK_ARGUMENTS_MAX)
			return err_set(e->err, ERR_LIMIT,
				"the linker's command line has more than %d words",
				LINK_ARGUMENTS_MAX);
		vec_push(e->out, mem_strdup(words[i]));
	}
	return 0;
}

/* ---- options ---- */

/* Long options whose value may be the next word. */
static const char *const long_with_value[] = {"Map", "Tbss", "Tdata", "Tldata-segment",
	"Trodata-segment", "Ttext", "Ttext-segment", "architecture", "assert", "audit", "auxiliary",
	"build-id-chunk-size-for-treehash", "build-id-min-file-size-for-treehash",
	"call-graph-ordering-file", "dT", "default-script", "defsym", "depaudit", "dependency-file",
	"dynamic-linker", "dynamic-list", "entry", "error-handling-script", "exclude-libs",
	"export-dynamic-symbol", "export-dynamic-symbol-list", "filter", "fini", "format", "gpsize",
	"hash-bucket-empty-fraction", "hash-style", "icf-iterations", "ignore-unresolved-symbol",
	"image-base", "incremental-base", "incremental-patch", "init", "just-symbols",
	"keep-unique", "library", "library-path", "mllvm", "mri-script", "oformat",
	"opt-remarks-filename", "opt-remarks-format", "opt-remarks-passes", "optimize",
	"out-implib", "output", "plugin", "plugin-opt", "print-archive-stats",
	"print-symbol-counts", "print-symbol-order", "require-defined", "retain-symbols-file",
	"rosegment-gap", "rpath", "rpath-link", "script", "section-ordering-file", "section-start",
	"soname", "spare-dynamic-tags", "split-stack-adjust-size", "stub-group-size",
	"symbol-ordering-file", "sysroot", "task-link", "thread-count", "thread-count-final",
	"thread-count-initial", "thread-count-middle", "trace-symbol", "undefined",
	"undefined-glob", "version-exports-section", "version-script", "why-extract", "wrap", NULL};

/* Letters whose value is attached or the next word. -G is not among them: gold's has no value. */
static const char letters_with_value[] = "AabceFfhILlmOoPRTuYyz";

struct reading {
	struct link_command *c;
	size_t i; /* the word being looked at */
	bool is_static, is_raw;
	VEC(bool) pushed; /* --push-state: is_static */
	bool has_library_at;
};

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

/* Objects that must stay in front: the linker joins pieces of them in order. */
static bool is_start_object(const char *name)
{
	const char *base = path_base_name(name);
	const char *crt = strstr(base, "crt");

	return crt && crt - base <= 1 && strlen(base) > 2 && !strcmp(base + strlen(base) - 2, ".o");
}

static void note_library_place(struct reading *r, size_t at)
{
	if (!r->has_library_at)
		r->c->library_at = at;
	r->has_library_at = true;
}

static void add_input(struct reading *r, const char *name, size_t arg, bool is_library)
{
	struct link_input input = {.arg = arg,
		.n_args = r->i - arg + 1,
		.name = name,
		.is_library = is_library,
		.is_static = r->is_static,
		.is_raw = r->is_raw};

	if (is_library || !is_start_object(name))
		note_library_place(r, arg);
	vec_push(&r->c->inputs, input);
}

static void add_script(struct reading *r, const char *name, size_t arg)
{
	struct link_input input = {.arg = arg,
		.n_args = r->i - arg + 1,
		.name = name,
		.is_static = r->is_static,
		.is_script = true};

	r->c->has_script = true;
	vec_push(&r->c->inputs, input);
}

/* -build-id and the like begin with b, too. */
static bool is_format(const char *value)
{
	return !strcmp(value, "binary") || !strcmp(value, "default") || !strncmp(value, "elf", 3);
}

static void set_format(struct reading *r, const char *value, size_t arg)
{
	r->is_raw =
		strcmp(value, "default") && strcmp(value, "elf64-x86-64") && strcmp(value, "elf");
	/* --push-state does not keep the format. */
	if (r->is_raw)
		note_library_place(r, arg);
}

/* gcc's plug-in: the first option without a dash is the program that it runs. */
static void take_plugin_option(struct reading *r, const char *value)
{
	if (!strcmp(path_base_name(value), "lto-wrapper") && r->c->wrapper.arg == SIZE_MAX)
		r->c->wrapper = (struct link_value){r->i, (size_t)(value - r->c->args.v[r->i])};
	r->c->skips_wrapper |= !strcmp(value, "-nop") || !strncmp(value, "-ltrans-objects=", 16);
}

/* `name` without dashes, its value ("" when the last word lacks it) and where it began. */
static void take_long_value(struct reading *r, const char *name, const char *value, size_t arg)
{
	if (!strcmp(name, "library"))
		add_input(r, value, arg, true);
	else if (!strcmp(name, "library-path"))
		vec_push(&r->c->folders, mem_strdup(value));
	else if (!strcmp(name, "output"))
		r->c->output = value;
	else if (!strcmp(name, "sysroot"))
		r->c->sysroot = value;
	else if (!strcmp(name, "format"))
		set_format(r, value, arg);
	else if (!strcmp(name, "script"))
		add_script(r, value, arg);
	else if (!strcmp(name, "plugin"))
		r->c->plugin = value;
	else if (!strcmp(name, "plugin-opt"))
		take_plugin_option(r, value);
}

static void take_flag(struct reading *r, const char *name)
{
	static const char *const statics[] = {"Bstatic", "dn", "non_shared", "static", NULL};
	static const char *const dynamics[] = {"Bdynamic", "dy", "call_shared", NULL};
	static const char *const shareds[] = {"shared", "Bshareable", NULL};
	static const char *const relocatables[] = {"r", "i", "Ur", "relocatable", NULL};

	if (is_one_of(name, statics))
		r->is_static = true;
	else if (is_one_of(name, dynamics))
		r->is_static = false;
	else if (is_one_of(name, shareds))
		r->c->result = LINK_RESULT_SHARED;
	else if (is_one_of(name, relocatables))
		r->c->result = LINK_RESULT_RELOCATABLE;
	else if (!strcmp(name, "nostdlib"))
		r->c->only_given_folders = true;
	else if (!strcmp(name, "push-state"))
		vec_push(&r->pushed, r->is_static);
	else if (!strcmp(name, "pop-state") && r->pushed.n)
		r->is_static = r->pushed.v[--r->pushed.n];
}

static const char *next_word(struct reading *r)
{
	return r->i + 1 < r->c->args.n ? r->c->args.v[++r->i] : "";
}

static void take_letter(struct reading *r, char letter, const char *attached)
{
	size_t arg = r->i;
	const char *value = *attached ? attached : next_word(r);

	if (letter == 'l')
		add_input(r, value, arg, true);
	else if (letter == 'L')
		vec_push(&r->c->folders, mem_strdup(value));
	else if (letter == 'o')
		r->c->output = value;
	else if (letter == 'T')
		add_script(r, value, arg);
	else if (letter == 'm' && strcmp(value, "elf_x86_64") &&
		 r->c->result == LINK_RESULT_PROGRAM)
		r->c->result = LINK_RESULT_OTHER;
	else if (letter == 'b' && (!*attached || is_format(value)))
		set_format(r, value, arg);
}

static bool take_long(struct reading *r, const char *name, bool has_two_dashes)
{
	const char *equals = strchr(name, '=');
	char *alone = mem_strndup(name, equals ? (size_t)(equals - name) : strlen(name));
	bool is_known = is_one_of(alone, long_with_value);
	size_t arg = r->i;

	/* With one dash these are -l ibrary, -o utput and so on. */
	if (!has_two_dashes && strchr("loL", name[0]))
		is_known = false;
	if (is_known)
		take_long_value(r, alone, equals ? equals + 1 : next_word(r), arg);
	free(alone);
	return is_known;
}

static void take_option(struct reading *r, const char *word)
{
	bool has_two_dashes = word[1] == '-';
	const char *name = word + 1 + has_two_dashes;
	static const char *const flags[] = {"Bstatic", "Bdynamic", "Bshareable", "Bsymbolic",
		"call_shared", "export-dynamic", "emit-relocs", "fatal-warnings", "build-id", NULL};

	if (!*name || take_long(r, name, has_two_dashes))
		return;
	if (!has_two_dashes && !is_one_of(name, flags) && strchr(letters_with_value, name[0]))
		take_letter(r, name[0], name + 1);
	else
		take_flag(r, name);
}

int link_command_read(struct link_command *c, char *const *args, size_t n, struct err *err)
{
	struct link_command fresh = {.output = "a.out", .wrapper = {SIZE_MAX, 0}};
	struct expansion expansion = {&fresh.args, 0, err};
	struct reading r = {.c = &fresh};
	int rc = expand_words(&expansion, args, n);

	if (rc < 0) {
		link_command_release(&fresh);
		return rc;
	}
	for (; r.i < fresh.args.n; r.i++) {
		const char *word = fresh.args.v[r.i];

		if (word[0] == '-' && word[1])
			take_option(&r, word);
		else
			add_input(&r, word, r.i, false);
	}
	if (!r.has_library_at)
		fresh.library_at = fresh.args.n;
	vec_release(&r.pushed);
	*c = fresh;
	return 0;
}

void link_command_release(struct link_command *c)
{
	for (size_t i = 0; i < c->inputs.n; i++)
		free(c->inputs.v[i].path);
	vec_release(&c->inputs);
	link_words_release(&c->args);
	link_words_release(&c->folders);
	link_words_release(&c->own_folders);
	link_words_release(&c->script_folders);
}

/* ---- the new command line ---- */

char *link_command_replace(struct link_command *c, const struct link_value *value, const char *text)
{
	char *word = c->args.v[value->arg];
	char *old = mem_strdup(word + value->offset);

	c->args.v[value->arg] = mem_printf("%.*s%s", (int)value->offset, word, text);
	free(word);
	return old;
}

static void put_additions(const struct link_additions *a, struct link_words *out)
{
	if (a->object) {
		vec_push(out, mem_strdup("-u"));
		vec_push(out, mem_strdup(a->object_symbol));
		vec_push(out, mem_strdup(a->object));
	}
	if (!a->library)
		return;
	vec_push(out, mem_strdup("--push-state"));
	vec_push(out, mem_strdup("--whole-archive"));
	vec_push(out, mem_strdup(a->library));
	vec_push(out, mem_strdup("--pop-state"));
}

void link_command_rewrite(const struct link_command *c, char *const *replaced,
	const struct link_additions *additions, struct link_words *out)
{
	size_t input_i = 0;

	for (size_t i = 0; i < c->args.n;) {
		const struct link_input *input =
			input_i < c->inputs.n && c->inputs.v[input_i].arg == i
				? &c->inputs.v[input_i]
				: NULL;

		if (i == c->library_at)
			put_additions(additions, out);
		if (input && replaced[input_i]) {
			if (input->is_script)
				vec_push(out, mem_strdup("-T"));
			vec_push(out, mem_strdup(replaced[input_i]));
			i += input->n_args;
		} else {
			vec_push(out, mem_strdup(c->args.v[i++]));
		}
		input_i += input != NULL;
	}
	if (c->library_at == c->args.n)
		put_additions(additions, out);
}
