/* SPDX-License-Identifier: MIT */
/* Any bytes as a class file: what comes out of the rewriter is a class file with the same methods. */
#include <stdlib.h>

#include "classfile/class_rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_same(const struct class_file *a, struct span bytes)
{
	struct class_file b;
	struct err err;

	if (class_file_read(&b, bytes, &err) < 0 || a->methods.n != b.methods.n ||
		strcmp(a->name, b.name) != 0)
		abort();
	for (size_t i = 0; i < a->methods.n; i++)
		if (strcmp(a->methods.v[i].name, b.methods.v[i].name) != 0 ||
			strcmp(a->methods.v[i].descriptor, b.methods.v[i].descriptor) != 0)
			abort();
	class_file_release(&b);
}

static void rewrite_once(const uint8_t *data, size_t n, const char *done)
{
	const struct class_calls calls = {"java/lang/WeirHook", "enter", "leave", done};
	struct class_file c;
	struct class_wish *wishes;
	struct buf out = {0};
	struct err err = {0};
	size_t n_done, n_refused = 0;

	if (class_file_read(&c, (struct span){data, n}, &err) < 0) {
		if (!err.text[0])
			abort();
		return;
	}
	wishes = mem_calloc(c.methods.n + 1, sizeof(*wishes));
	for (size_t i = 0; i < c.methods.n; i++)
		wishes[i].id = (uint32_t)(i % 2 ? 7 + i : 40000 + i);
	n_done = class_rewrite(&c, &calls, wishes, &out);
	for (size_t i = 0; i < c.methods.n; i++) {
		free(class_method_full_name(&c, &c.methods.v[i]));
		n_refused += wishes[i].reason != NULL;
	}
	if (n_done + n_refused != c.methods.n || (n_done != 0) != (out.n != 0))
		abort();
	if (n_done)
		check_same(&c, buf_span(&out));
	buf_release(&out);
	free(wishes);
	class_file_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	rewrite_once(data, n, NULL);
	rewrite_once(data, n, "done");
	return 0;
}
