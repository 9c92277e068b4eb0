/* SPDX-License-Identifier: MIT */
/*
 * Readable names through libiberty, guarded: a mangled name is a small program that can ask for
 * exponentially much text, so the input has a maximum, libiberty's recursion limit stays on, and
 * its output is taken piecewise and left by longjmp when it gets too long. Both callback functions
 * keep their state on the stack, so nothing is lost by leaving them.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/buf.h"
#include "base/mem.h"
#include "symbols/symtab.h"

#define MANGLED_BYTES_MAX   8192
#define DEMANGLED_BYTES_MAX 65536

struct output {
	struct buf text;
	jmp_buf too_long;
};

static void take_piece(const char *piece, size_t n, void *ctx)
{
	struct output *out = ctx;

	if (n > DEMANGLED_BYTES_MAX - out->text.n)
		longjmp(out->too_long, 1);
	buf_put(&out->text, piece, n);
}

/* Rust's legacy names are valid C++ names, so Rust is asked first; it recognises its own hash. */
static bool demangle_into(struct output *out, const char *name)
{
	if (setjmp(out->too_long))
		return false;
	if (rust_demangle_callback(name, 0, take_piece, out))
		return true;
	buf_reset(&out->text);
	return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, take_piece, out);
}

bool symbol_is_mangled(const char *name)
{
	while (*name == '_' && name[1] == '_')
		name++; /* "__Z", "___Z": blocks and some object formats */
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 ||
	       strncmp(name, "_GLOBAL_", 8) == 0;
}

#define PLT_SUFFIX "@plt"

/* The stub of a mangled function: the suffix is ours, the demangler does not know it. */
static char *demangle_stub(const char *name)
{
	char *function = mem_strndup(name, strlen(name) - strlen(PLT_SUFFIX));
	char *readable = symbol_demangle(function);
	char *result = mem_printf("%s" PLT_SUFFIX, readable);

	free(function);
	free(readable);
	return result;
}

char *symbol_demangle(const char *name)
{
	size_t n = strnlen(name, MANGLED_BYTES_MAX + 1);
	struct output out = {0};
	char *result = NULL;

	if (!symbol_is_mangled(name) || n > MANGLED_BYTES_MAX)
		return mem_strdup(name);
	if (n > strlen(PLT_SUFFIX) && strcmp(name + n - strlen(PLT_SUFFIX), PLT_SUFFIX) == 0)
		return demangle_stub(name);
	if (demangle_into(&out, name) && out.text.n)
		result = mem_strndup((const char *)out.text.p, out.text.n);
	buf_release(&out.text);
	return result ? result : mem_strdup(name);
}
