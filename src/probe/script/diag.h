/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a script: collected, several at once, each with its place, a stable tag, a
 * sentence and sometimes a hint. Everything is compiled for two modes, so the same thing is often
 * found twice; it is kept once.
 */
#ifndef WEIR_PROBE_SCRIPT_DIAG_H
#define WEIR_PROBE_SCRIPT_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/span.h"

/* Bytes of a source: [from, to). */
struct place {
	uint32_t source_i; /* which of the sources */
	uint32_t from, to;
	uint32_t use; /* in a macro: which use of it, from 1 on (diags.uses); 0 = none */
};

static inline bool place_is_same(struct place a, struct place b)
{
	return a.source_i == b.source_i && a.from == b.from && a.to == b.to;
}

/* A macro's body that stands in the place of its use. */
struct macro_use {
	char *name; /* of the macro */
	struct place place;
};

/* A script as it was given; several may be run at once and are compiled as one. */
struct source {
	char *name; /* "mixed.wr", or "-e" */
	char *text; /* NUL-terminated */
	size_t n;
};
struct sources {
	VEC(struct source) v;
};
void sources_add(struct sources *s, const char *name, struct span text);
void sources_release(struct sources *s);

enum diag_severity { DIAG_ERROR, DIAG_WARNING };

struct diag {
	enum diag_severity severity;
	const char *tag; /* one of the names in diag_tags[] */
	struct place place;
	char *text; /* one sentence, no newline, no full stop */
	char *hint; /* what to do; or NULL */
};

#define DIAGS_MAX 50 /* kept of each severity; further ones are only counted */

struct diags {
	const struct sources *sources; /* borrowed */
	VEC(struct diag) v;
	VEC(struct macro_use) uses;
	size_t n_errors, n_warnings; /* all, kept or not */
	bool hides_warnings;	     /* they are kept, and not shown */
	bool last_is_kept;	     /* the one that diag_hint belongs to is the last of v */
};

void diags_init(struct diags *d, const struct sources *sources);
void diags_release(struct diags *d);

/* The same place and tag a second time adds nothing. An error gives false, so that callers may
 * return it. */
bool diag_error(struct diags *d, struct place place, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_warning(struct diags *d, struct place place, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds a hint to the message that was last added; ignored when that was a repetition. Gives false, too.
 */
bool diag_hint(struct diags *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A use of a macro: the number for the places of what stands there. */
uint32_t diags_add_use(struct diags *d, const char *name, struct place place);

/* Line and column of a place, both from 1; columns count characters (UTF-8), a tab is one. */
void place_line(const struct sources *s, struct place place, uint32_t *line, uint32_t *column);

/* All messages by place, as text:
 *   FILE:LINE:COL: error: SENTENCE [TAG]
 *       the line
 *          ^~~~
 *     hint: ...
 *     in the macro NAME, used at FILE:LINE:COL
 * or as a JSON array of {file, line, column, end_column, severity, tag, message, hint}; end_column
 * is the first one behind the place, on its first line. In a macro a member "uses" follows, an array
 * of {macro, file, line, column}, the innermost first. Control characters of the script are shown
 * as U+FFFD, so that no script can talk to the terminal. */
void diags_text(const struct diags *d, struct buf *out);
void diags_json(const struct diags *d, struct buf *out);

/* Every tag, in alphabetical order, up to a NULL; docs/probe-language.md has a table of them. */
extern const char *const diag_tags[];

#endif
