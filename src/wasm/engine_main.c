/* SPDX-License-Identifier: MIT */
/*
 * The engine in a page. The page puts bytes into memory that it has asked for, and calls:
 *
 *   weir_alloc(n)       memory for n bytes, the page's until weir_open or weir_ask takes it
 *   weir_open(p, n)     the trace; 0, or 1 and the answer is a sentence
 *   weir_open_before(p, n)   in front of weir_open: the trace that it is compared with; likewise
 *   weir_ask(p, n)      a question; likewise
 *   weir_answer(), weir_answer_bytes()   the answer, until the next call
 */
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/view/engine.h"
#include "trace/reader.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static struct view_engine *engine;
static struct trace_reader *before; /* NULL: the trace is not compared with another */
static struct buf answer;

EXPORT(weir_alloc) void *weir_alloc(size_t n)
{
	return malloc(n ? n : 1);
}

static int say(const struct err *err)
{
	buf_reset(&answer);
	buf_put_cstr(&answer, err->text);
	return 1;
}

EXPORT(weir_open_before) int weir_open_before(const uint8_t *trace, size_t n, const char *name)
{
	struct err err = {0};

	return trace_reader_open_bytes(&before, (struct span){trace, n}, true, name, &err) < 0
		       ? say(&err)
		       : 0;
}

EXPORT(weir_open) int weir_open(const uint8_t *trace, size_t n, const char *name)
{
	struct trace_reader *reader;
	struct err err = {0};

	if (trace_reader_open_bytes(&reader, (struct span){trace, n}, true, name, &err) < 0)
		return say(&err);
	engine = view_engine_new(reader, before, NULL);
	return 0;
}

EXPORT(weir_ask) int weir_ask(char *question, size_t n)
{
	struct err err = {0};
	int rc;

	buf_reset(&answer);
	rc = view_answer(engine, question, n, &answer, &err);
	free(question);
	return rc < 0 ? say(&err) : 0;
}

EXPORT(weir_answer) const void *weir_answer(void)
{
	return answer.p;
}

EXPORT(weir_answer_bytes) size_t weir_answer_bytes(void)
{
	return answer.n;
}
