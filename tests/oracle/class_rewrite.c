/* SPDX-License-Identifier: MIT */
/*
 * class_rewrite FROM TO FIRST_ID [count]: every class file below FROM, with calls in every method, below TO; with `count`
 * methods count their bytecodes, too. What it prints:
 * "ID NAME", and "ID NAME: REASON" for those that could not be changed.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "classfile/class_rewrite.h"

#define FILES_MAX 64

static const char *from, *to, *done;
static uint32_t next_id;
static int n_failed;

static void make_folders(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0777);
		*p = '/';
	}
}

static void write_file(const char *relative, struct span bytes)
{
	char *path = mem_printf("%s/%s", to, relative);
	FILE *f;

	make_folders(path);
	f = fopen(path, "wb");
	if (!f || fwrite(bytes.p, 1, bytes.n, f) != bytes.n || fclose(f)) {
		fprintf(stderr, "%s: cannot be written\n", path);
		n_failed++;
	}
	free(path);
}

static void rewrite(const char *path, struct span bytes)
{
	const struct class_calls calls = {"java/lang/WeirHook", "enter", "leave", done};
	struct class_file c;
	struct class_wish *wishes;
	struct buf out = {0};
	struct err err;

	if (class_file_read(&c, bytes, &err) < 0) {
		fprintf(stderr, "%s: %s\n", path, err.text);
		n_failed++;
		return;
	}
	wishes = mem_calloc(c.methods.n + 1, sizeof(*wishes));
	for (size_t i = 0; i < c.methods.n; i++)
		wishes[i].id = next_id++;
	class_rewrite(&c, &calls, wishes, &out);
	for (size_t i = 0; i < c.methods.n; i++) {
		char *name = class_method_full_name(&c, &c.methods.v[i]);

		printf("%u %s%s%s\n", wishes[i].id, name, wishes[i].reason ? ": " : "",
			wishes[i].reason ? wishes[i].reason : "");
		free(name);
	}
	write_file(path + strlen(from) + 1, out.n ? buf_span(&out) : bytes);
	buf_release(&out);
	free(wishes);
	class_file_release(&c);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	size_t n = strlen(path);
	struct buf bytes = {0};
	struct err err;

	(void)st;
	(void)walk;
	if (kind != FTW_F || n < 6 || strcmp(path + n - 6, ".class") != 0 ||
		strcmp(path + n - 17 * (n >= 17), "module-info.class") == 0)
		return 0;
	if (file_read(&bytes, path, CLASS_FILE_BYTES_MAX, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		n_failed++;
	} else {
		rewrite(path, buf_span(&bytes));
	}
	buf_release(&bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5)
		return 2;
	from = argv[1];
	to = argv[2];
	done = argc == 5 ? "done" : NULL;
	next_id = (uint32_t)strtoul(argv[3], NULL, 10);
	nftw(from, visit, FILES_MAX, FTW_PHYS);
	return n_failed != 0;
}
