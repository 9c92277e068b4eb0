/* SPDX-License-Identifier: MIT */
#include "query/diff/diff_keys.h"

#include <string.h>

#include "base/path_name.h"
#include "query/folded_name.h"

void diff_keys_init(struct diff_keys *k, const struct name_map *map)
{
	memset(k, 0, sizeof(*k));
	k->map = map;
	vec_push(&k->paths, ((struct diff_path){0, 0}));
}

void diff_keys_release(struct diff_keys *k)
{
	intern_release(&k->names);
	vec_release(&k->paths);
	map_release(&k->path_of);
}

uint32_t diff_key(struct diff_keys *k, const char *name, const char *image, bool is_before)
{
	const char *now = is_before && k->map ? name_map_find(k->map, name) : NULL;
	struct buf key = {0};
	uint32_t id;

	image = path_base_name(image);
	buf_put_text(&key, now ? now : name);
	buf_put(&key, image, path_plain_bytes(image));
	id = intern_bytes(&k->names, key.p, key.n);
	buf_release(&key);
	return id + 1;
}

const char *diff_key_name(const struct diff_keys *k, uint32_t key)
{
	return intern_get(&k->names, key - 1);
}

const char *diff_key_image(const struct diff_keys *k, uint32_t key)
{
	const char *name = diff_key_name(k, key);

	return name + strlen(name) + 1;
}

size_t diff_keys_n(const struct diff_keys *k)
{
	return k->names.n_items + 1;
}

uint32_t diff_path(struct diff_keys *k, uint32_t parent, uint32_t key)
{
	bool created;
	uint64_t *place = map_ensure(&k->path_of, (uint64_t)parent << 32 | key, &created);

	if (created) {
		*place = k->paths.n;
		vec_push(&k->paths, ((struct diff_path){parent, key}));
	}
	return (uint32_t)*place;
}

void diff_path_put(const struct diff_keys *k, uint32_t path, struct buf *out)
{
	VEC(uint32_t) keys = {0};

	for (; path; path = k->paths.v[path].parent)
		vec_push(&keys, k->paths.v[path].key);
	for (size_t i = keys.n; i-- > 0;) {
		if (keys.n > FOLDED_NAMES_MAX && i == keys.n - FOLDED_NAMES_MAX / 2 - 1) {
			buf_put_cstr(out, ";[...]");
			i = FOLDED_NAMES_MAX / 2;
			continue;
		}
		if (i + 1 < keys.n)
			buf_put_u8(out, ';');
		folded_name_put(out, diff_key_name(k, keys.v[i]));
	}
	vec_release(&keys);
}
