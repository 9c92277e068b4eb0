/* SPDX-License-Identifier: MIT */
#include "record/hooks/hello.h"

#include <inttypes.h>
#include <stdlib.h>

static enum hello_state bad(struct err *err, const char *what, uint64_t value)
{
	err_set(err, ERR_FORMAT, "hook library: %s (%" PRIu64 ")", what, value);
	return HELLO_BAD;
}

static enum hello_state check_head(const struct hook_hello *h, struct err *err)
{
	if (h->magic != HOOK_ABI_MAGIC)
		return bad(err, "its first number is not the expected one", h->magic);
	if (h->version != HOOK_ABI_VERSION)
		return bad(err, "another version than this weir's", h->version);
	if (h->kind < HOOK_HELLO_START || h->kind > HOOK_HELLO_CLASSES)
		return bad(err, "a kind of hello that is not known", h->kind);
	if (h->bits != 32 && h->bits != 64)
		return bad(err, "neither a 32- nor a 64-bit program", h->bits);
	if (h->n_modules > HELLO_MODULES_MAX)
		return bad(err, "too many modules", h->n_modules);
	if (h->region_bytes > UINT64_MAX - h->region_start)
		return bad(err, "a region beyond the end of memory", h->region_start);
	return HELLO_WHOLE;
}

static enum hello_state parse_module(struct hello *out, struct cursor *c, struct err *err)
{
	struct hook_module m;
	struct span path;

	if (!cursor_take(c, &m, sizeof(m)))
		return HELLO_MORE;
	if (m.path_bytes > HELLO_PATH_BYTES_MAX)
		return bad(err, "a path that is too long", m.path_bytes);
	if (m.start > m.end)
		return bad(err, "a module that ends before it starts", m.start);
	path = cursor_bytes(c, m.path_bytes);
	if (c->failed)
		return HELLO_MORE;
	vec_push(&out->modules,
		((struct hello_module){.bias = m.bias,
			.start = m.start,
			.end = m.end,
			.path = mem_strndup(path.n ? (const char *)path.p : "", path.n)}));
	return HELLO_WHOLE;
}

static enum hello_state parse_classes(struct hello *out, struct cursor *c, struct err *err)
{
	const struct hook_classes *head = &out->classes;

	if (out->head.n_modules)
		return bad(err, "modules beside classes", out->head.n_modules);
	if (!cursor_take(c, &out->classes, sizeof(out->classes)))
		return HELLO_MORE;
	if (head->bytes > HOOK_CLASSES_BYTES_MAX)
		return bad(err, "classes that are too long", head->bytes);
	if (head->n_names > head->bytes || !head->n_names != !(head->flags & HOOK_CLASS_NAMES))
		return bad(err, "another number of names than it may have", head->n_names);
	out->class_bytes = cursor_bytes(c, head->bytes);
	return c->failed ? HELLO_MORE : HELLO_WHOLE;
}

enum hello_state hello_parse(struct hello *out, struct span bytes, struct err *err)
{
	struct hello h = {0};
	struct cursor c = cursor_of(bytes);
	enum hello_state state = HELLO_MORE;

	if (cursor_take(&c, &h.head, sizeof(h.head)))
		state = check_head(&h.head, err);
	for (uint32_t i = 0; state == HELLO_WHOLE && i < h.head.n_modules; i++)
		state = parse_module(&h, &c, err);
	if (state == HELLO_WHOLE && h.head.kind == HOOK_HELLO_CLASSES)
		state = parse_classes(&h, &c, err);
	if (state == HELLO_WHOLE && cursor_left(&c))
		state = bad(err, "more bytes than it announced", cursor_left(&c));
	if (state == HELLO_MORE && bytes.n > HELLO_BYTES_MAX)
		state = bad(err, "a hello that is too long", bytes.n);
	if (state == HELLO_WHOLE)
		*out = h;
	else
		hello_release(&h);
	return state;
}

void hello_release(struct hello *h)
{
	for (size_t i = 0; i < h->modules.n; i++)
		free((char *)h->modules.v[i].path);
	vec_release(&h->modules);
}

enum hello_state hello_parse_results(
	struct span bytes, uint32_t n_plans, struct span *results, struct err *err)
{
	struct cursor c = cursor_of(bytes);
	struct hook_results head;
	uint64_t need;

	if (!cursor_take(&c, &head, sizeof(head)))
		return HELLO_MORE;
	if (head.magic != HOOK_ABI_MAGIC)
		return bad(err, "its results do not begin as expected", head.magic);
	if (head.n_results != n_plans)
		return bad(err, "another number of results than of plans", head.n_results);
	need = (uint64_t)head.n_results * sizeof(struct hook_result);
	if (cursor_left(&c) < need)
		return HELLO_MORE;
	*results = (struct span){c.p, (size_t)need};
	return HELLO_WHOLE;
}

bool hello_is_failure(struct span bytes, uint32_t *error)
{
	struct cursor c = cursor_of(bytes);
	struct hook_results head;

	if (!cursor_take(&c, &head, sizeof(head)) || head.magic != HOOK_FAILED_MAGIC)
		return false;
	*error = head.n_results;
	return true;
}
