/* SPDX-License-Identifier: MIT */
#include "process/images.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "arch/x86_code.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "process/mapped_file.h"
#include "symbols/image_identity.h"
#include "symbols/debug_file.h"

#define VDSO_BYTES_MAX (64 * 1024)

/* What only this file knows about an image. */
struct image_content {
	struct image image;
	struct file_map file;
	char *opened;	 /* the path it was opened by; owned */
	struct stat st;	 /* of the file, when it was opened */
	bool is_dropped; /* the file has been changed, its ELF view is not used any more */
	uint8_t *memory; /* a vdso's bytes, owned */
	struct cfi_table *cfi;
	bool cfi_made;
};

struct images {
	struct intern keys;		 /* id = number */
	const struct image_place *place; /* NULL: what is recorded runs here and now */
	VEC(struct image_content *) items;
	/* Files in memory that were looked into, by device, inode and path: whether they are images. */
	struct intern memory_files;
	VEC(bool) memory_file_is_elf;
};

struct images *images_new(void)
{
	return mem_zalloc(sizeof(struct images));
}

void images_set_place(struct images *t, const struct image_place *place)
{
	t->place = place;
}

void images_free(struct images *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->items.n; i++) {
		struct image_content *c = t->items.v[i];

		cfi_table_free(c->cfi);
		if (c->image.has_elf || c->is_dropped)
			elf_file_release(&c->image.elf);
		file_map_release(&c->file);
		free(c->opened);
		free(c->memory);
		free((char *)c->image.path);
		free((char *)c->image.problem);
		free(c);
	}
	vec_release(&t->items);
	intern_release(&t->keys);
	intern_release(&t->memory_files);
	vec_release(&t->memory_file_is_elf);
	free(t);
}

/* Of files in memory (path_is_in_memory()) it is not the whole answer. */
static enum image_kind kind_of_path(const char *path)
{
	static const char *const made_at_run_time[] = {"//anon", "[heap]", "[stack",
		"[anon:", "/memfd:", "/dev/zero", "/SYSV", "anon_inode:", "/dev/shm/",
		"/anon_hugepage"};

	if (!strcmp(path, "[vdso]"))
		return IMAGE_KIND_VDSO;
	if (!path[0])
		return IMAGE_KIND_JIT;
	for (size_t i = 0; i < sizeof(made_at_run_time) / sizeof(made_at_run_time[0]); i++)
		if (!strncmp(path, made_at_run_time[i], strlen(made_at_run_time[i])))
			return IMAGE_KIND_JIT;
	return path[0] == '/' ? IMAGE_KIND_ELF : IMAGE_KIND_OTHER;
}

/* What is in it decides about a file in memory; a program that maps one piece after the other (compilers
 * do) has it opened once. */
static bool memory_file_is_elf(struct images *t, const struct image_query *q, const char *path)
{
	const struct proc_mapping *m = &q->mapping;
	char *key = mem_printf("%u:%u:%lu:%s", m->major, m->minor, m->inode, path);
	size_t n_known = t->memory_file_is_elf.n;
	uint32_t i;

	if (t->place) {
		free(key);
		return q->build_id.n > 0;
	}
	if (q->build_id.n || !m->inode) {
		free(key);
		return mapped_file_is_elf((pid_t)q->pid, m, q->build_id);
	}
	i = intern_text(&t->memory_files, key);
	free(key);
	if (i == n_known)
		vec_push(&t->memory_file_is_elf, mapped_file_is_elf((pid_t)q->pid, m, q->build_id));
	return t->memory_file_is_elf.v[i];
}

static enum image_kind kind_of_mapping(
	struct images *t, const struct image_query *q, const char *path)
{
	enum image_kind kind = kind_of_path(path);

	if (kind == IMAGE_KIND_JIT && path_is_in_memory(path) && memory_file_is_elf(t, q, path))
		return IMAGE_KIND_ELF;
	return kind;
}

/* Whether the very file that is mapped has other contents now; one that was replaced has not. */
static bool is_changed(const struct image_content *c)
{
	struct stat now;

	if (file_map_is_cut(&c->file))
		return true;
	if (!c->opened || stat(c->opened, &now) < 0 || now.st_ino != c->st.st_ino ||
		now.st_dev != c->st.st_dev)
		return false;
	return now.st_size != c->st.st_size || now.st_mtim.tv_sec != c->st.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != c->st.st_mtim.tv_nsec;
}

void images_drop_changed(struct images *t)
{
	for (size_t i = 0; i < t->items.n; i++) {
		struct image_content *c = t->items.v[i];

		if (c->image.kind != IMAGE_KIND_ELF || !c->image.has_elf || !is_changed(c))
			continue;
		c->image.has_elf = false;
		c->is_dropped = true;
		c->image.problem = mem_strdup("the file was changed after it had been mapped");
	}
}

static void look_for_dlclose(void *ctx, const struct elf_symbol *symbol)
{
	*(bool *)ctx |= !strcmp(symbol->name, "dlclose");
}

bool image_unloads_code(const struct elf_file *elf)
{
	static const char name[] = "\0dlclose"; /* with the zeros around it */
	const struct elf_section *names = elf_file_find_section(elf, ".dynstr");
	struct span texts = names ? elf_file_section_bytes(elf, names) : (struct span){NULL, 0};
	bool is_its_own = false;

	if (!texts.n || !memmem(texts.p, texts.n, name, sizeof(name)))
		return false;
	elf_file_each_function(elf, true, look_for_dlclose, &is_its_own);
	return !is_its_own;
}

static int read_file(struct image_content *c, const struct mapped_file *f, struct err *err)
{
	int rc = mapped_file_read_elf(f, &c->file, &c->image.elf, err);

	if (rc < 0)
		return rc;
	c->opened = mem_strdup(f->path);
	c->st = f->st;
	c->image.has_elf = true;
	c->image.unloads = image_unloads_code(&c->image.elf);
	c->image.file_bytes = (uint64_t)f->st.st_size;
	c->image.file_mtime_ns =
		(uint64_t)f->st.st_mtim.tv_sec * 1000000000u + (uint64_t)f->st.st_mtim.tv_nsec;
	return 0;
}

static int open_mapped(struct mapped_file *f, const struct image_place *place,
	const struct image_query *q, struct err *err)
{
	if (!place)
		return mapped_file_open(f, (pid_t)q->pid, &q->mapping, q->build_id, err);
	return mapped_file_open_past(f,
		&(struct mapped_file_past){place->root, place->is_elsewhere}, &q->mapping,
		q->build_id, err);
}

static void open_file(
	struct image_content *c, const struct image_place *place, const struct image_query *q)
{
	struct mapped_file f;
	struct err err;
	int rc = open_mapped(&f, place, q, &err);

	if (rc == 0) {
		rc = read_file(c, &f, &err);
		mapped_file_close(&f);
	}
	if (rc < 0) {
		c->image.kind = IMAGE_KIND_OTHER;
		c->image.problem = mem_strdup(err.text);
	}
}

/* Of a recording that was made earlier: whether ours is what it had. */
static void judge_vdso(
	struct image_content *c, const struct image_place *place, const struct image_query *q)
{
	struct span id =
		c->image.has_elf ? elf_file_build_id(&c->image.elf) : (struct span){NULL, 0};

	if (q->build_id.n ? id.n >= q->build_id.n && !memcmp(id.p, q->build_id.p, q->build_id.n)
			  : place->is_same_kernel)
		return;
	if (c->image.has_elf)
		elf_file_release(&c->image.elf);
	c->image.has_elf = false;
	free((char *)c->image.problem);
	c->image.problem = mem_strdup("it is that of another kernel");
}

/* The vdso has no file: its bytes come from the process or, for our own width, from ourselves. */
static void open_vdso(
	struct image_content *c, const struct image_place *place, const struct image_query *q)
{
	size_t n = (size_t)(q->mapping.end - q->mapping.start);
	struct err err;

	if (n > VDSO_BYTES_MAX)
		n = VDSO_BYTES_MAX;
	c->memory = mem_zalloc(n);
	if (place || !proc_read_memory((pid_t)q->pid, q->mapping.start, c->memory, n)) {
		const void *own = (const void *)getauxval(AT_SYSINFO_EHDR);

		/* A 32-bit vdso lies below 4 GiB; ours would not fit it. */
		if (!own || q->mapping.start < (uint64_t)1 << 32) {
			c->image.problem = mem_strdup("its memory could not be read");
			return;
		}
		memcpy(c->memory, own, n);
	}
	if (elf_file_init(&c->image.elf, (struct span){c->memory, n}, &err) < 0) {
		c->image.problem = mem_strdup(err.text);
		return;
	}
	c->image.has_elf = true;
}

static char *make_key(enum image_kind kind, const struct image_query *q, const char *path)
{
	struct buf b = {0};

	buf_printf(&b, "%d:", (int)kind);
	if (kind == IMAGE_KIND_VDSO)
		buf_printf(&b, "%d", q->mapping.start >= (uint64_t)1 << 32 ? 64 : 32);
	else if (kind == IMAGE_KIND_JIT)
		buf_printf(&b, "%u:%lu", q->pid, q->process_start_ns);
	else
		buf_printf(&b, "%s", path);
	if (kind == IMAGE_KIND_ELF && q->build_id.n) {
		buf_put_u8(&b, ':');
		buf_put_hex(&b, q->build_id);
	} else if (kind == IMAGE_KIND_ELF) {
		buf_printf(&b, ":%u:%u:%lu", q->mapping.major, q->mapping.minor, q->mapping.inode);
	}
	buf_text(&b);
	return (char *)b.p;
}

static struct image_content *open_image(enum image_kind kind, const struct image_place *place,
	const struct image_query *q, const char *path)
{
	struct image_content *c = mem_zalloc(sizeof(*c));
	struct image *image = &c->image;
	struct span id = q->build_id;

	image->kind = kind;
	image->inode = q->mapping.inode;
	image->path = kind == IMAGE_KIND_JIT ? mem_strdup("[jit]") : mem_strdup(path);
	image->is_jvm = kind == IMAGE_KIND_ELF && !strcmp(path_base_name(path), "libjvm.so");
	if (kind == IMAGE_KIND_JIT)
		image->pid = q->pid;
	if (kind == IMAGE_KIND_ELF)
		open_file(c, place, q);
	if (kind == IMAGE_KIND_VDSO)
		open_vdso(c, place, q);
	if (kind == IMAGE_KIND_VDSO && place)
		judge_vdso(c, place, q);
	if (!id.n && image->has_elf)
		id = elf_file_build_id(&image->elf);
	image->build_id_n = (uint8_t)(id.n < BUILD_ID_MAX ? id.n : BUILD_ID_MAX);
	if (id.n)
		memcpy(image->build_id, id.p, image->build_id_n);
	return c;
}

uint32_t images_ensure(struct images *t, const struct image_query *query)
{
	char *path = mem_strndup(query->mapping.path, path_plain_bytes(query->mapping.path));
	struct image_query told = *query;
	enum image_kind kind;
	uint32_t number;
	char *key;

	if (t->place && !told.build_id.n)
		told.build_id = t->place->build_id(t->place->ctx, path);
	kind = kind_of_mapping(t, &told, path);
	key = make_key(kind, &told, path);
	number = intern_text(&t->keys, key);
	if (number == t->items.n)
		vec_push(&t->items, open_image(kind, t->place, &told, path));
	free(key);
	free(path);
	return number;
}

struct image *images_get(struct images *t, uint32_t number)
{
	return &t->items.v[number]->image;
}

uint32_t images_n(const struct images *t)
{
	return (uint32_t)t->items.n;
}

uint64_t images_bias(struct images *t, uint32_t number, uint64_t start, struct foff offset)
{
	const struct image *image = &t->items.v[number]->image;
	struct iaddr at;

	if (image->kind == IMAGE_KIND_JIT)
		return 0;
	if (image->has_elf && elf_file_offset_to_iaddr(&image->elf, offset, &at))
		return start - at.v;
	return start - offset.v;
}

bool images_has_path(const struct images *t, uint32_t number, const char *path)
{
	const struct image *image = &t->items.v[number]->image;
	char *plain = mem_strndup(path, path_plain_bytes(path));
	enum image_kind kind = kind_of_path(plain);
	bool same;

	if (kind == IMAGE_KIND_VDSO || image->kind == IMAGE_KIND_JIT)
		same = image->kind == kind;
	else
		same = !strcmp(image->path, plain);

	free(plain);
	return same;
}

const char *images_opened(struct images *t, uint32_t number)
{
	return t->items.v[number]->opened;
}

uint32_t images_trace_id(struct images *t, uint32_t number, struct trace_writer *w)
{
	struct image *image = images_get(t, number);
	struct trace_image entry = {.kind = image->kind,
		.bits = !image->has_elf	   ? 0
			: image->elf.is_64 ? 64
					   : 32,
		.build_id_n = image->build_id_n,
		.file_bytes = image->file_bytes,
		.file_mtime_ns = image->file_mtime_ns,
		.pid = image->pid};

	if (image->trace_id)
		return image->trace_id;
	entry.path = trace_writer_string(w, image->path);
	memcpy(entry.build_id, image->build_id, sizeof(entry.build_id));
	image->trace_id = trace_writer_image(w, &entry);
	return image->trace_id;
}

static void write_facts(const struct image *image, struct trace_writer *w)
{
	const struct elf_file *elf = &image->elf;
	struct trace_segment segments[TRACE_SEGMENTS_MAX];
	struct trace_image_facts facts = {
		.image = image->trace_id, .machine = elf->machine, .segments = segments};

	for (size_t i = 0; i < elf->n_segments && facts.n_segments < TRACE_SEGMENTS_MAX; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD)
			segments[facts.n_segments++] = (struct trace_segment){.addr = s->addr.v,
				.offset = s->offset.v,
				.file_bytes = s->file_size,
				.mem_bytes = s->mem_size,
				.flags = s->flags};
	}
	if (!image->build_id_n)
		facts.content_hash = image_content_hash(elf);
	trace_writer_image_facts(w, &facts);
}

void images_write_facts(struct images *t, struct trace_writer *w)
{
	struct map written = {0}; /* ids: a file may be known by build-id and by inode */

	for (size_t i = 0; i < t->items.n; i++) {
		const struct image *image = &t->items.v[i]->image;
		bool created;

		if (!image->trace_id || !image->has_elf)
			continue;
		map_ensure(&written, image->trace_id, &created);
		if (created)
			write_facts(image, w);
	}
	map_release(&written);
}

const struct cfi_table *images_cfi(struct images *t, uint32_t number)
{
	struct image_content *c = t->items.v[number];
	struct debug_file debug = {0};

	if (c->cfi_made || !c->image.has_elf)
		return c->cfi;
	c->cfi_made = true;
	c->cfi = cfi_table_new(&c->image.elf);
	if (c->image.kind == IMAGE_KIND_ELF &&
		debug_file_open(&debug, &c->image.elf, c->image.path, NULL) == 0)
		cfi_table_add_debug_frame(c->cfi, &debug.elf);
	debug_file_close(&debug);
	return c->cfi;
}

void images_module(struct images *t, uint32_t number, uint64_t bias, struct unwind_module *module)
{
	const struct image *image = images_get(t, number);

	*module = (struct unwind_module){
		.cfi = images_cfi(t, number),
		.bias = bias,
		.entry = image->has_elf ? image->elf.entry : (struct iaddr){0},
		.cookie = number,
	};
}

const struct mapping *images_find_module(struct images *t, const struct addrspace *space,
	struct vaddr pc, struct unwind_module *module)
{
	const struct mapping *m = addrspace_find(space, pc);

	if (m)
		images_module(t, m->image, m->bias, module);
	return m;
}

bool image_follows_call(const struct image *image, struct iaddr pc)
{
	struct span bytes;

	if (!image->has_elf)
		return true;
	bytes = elf_file_bytes_at(&image->elf, (struct iaddr){pc.v - X86_CALL_BYTES_MAX});
	return bytes.n < X86_CALL_BYTES_MAX ||
	       x86_follows_call(bytes.p + X86_CALL_BYTES_MAX, X86_CALL_BYTES_MAX);
}

bool images_follows_call(struct images *t, const struct addrspace *space, struct vaddr pc)
{
	struct vaddr before = {pc.v - X86_CALL_BYTES_MAX};
	const struct mapping *m = addrspace_find(space, before);

	return !m || image_follows_call(images_get(t, m->image), (struct iaddr){pc.v - m->bias});
}

bool image_ends_thread(const struct image *image, struct iaddr pc)
{
	return image->has_elf &&
	       x86_ends_thread(elf_file_bytes_at(&image->elf, pc), image->elf.is_64);
}

bool images_ends_thread(struct images *t, const struct addrspace *space, struct vaddr pc)
{
	const struct mapping *m = addrspace_find(space, pc);

	return m && image_ends_thread(images_get(t, m->image), (struct iaddr){pc.v - m->bias});
}
