/* SPDX-License-Identifier: MIT */
#include "cmd/count_lto.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/count_link.h"
#include "process/own_file.h"

#define WRAPPER_NAME	  "weir-lto-wrapper"
#define WRAPPER_BUILT	  "libexec/weir/" WRAPPER_NAME
#define WRAPPER_INSTALLED "../libexec/weir/" WRAPPER_NAME
#define OBJECT_NAME	  "(link-time optimisation)"
#define NAMES_BYTES_MAX	  (1u << 30)

/* ---- the linker's side ---- */

/* lld takes the plug-in's options, and no notice of them. */
static bool is_lld(const char *linker)
{
	char path[PATH_MAX];

	return strstr(path_base_name(linker), "lld") ||
	       (realpath(linker, path) && strstr(path_base_name(path), "lld"));
}

enum link_lto lto_link_way(const struct link_command *command, const char *linker)
{
	if (!command->plugin || is_lld(linker))
		return LINK_LTO_NO_PLUGIN;
	return command->wrapper.arg == SIZE_MAX || command->skips_wrapper ? LINK_LTO_LEFT
									  : LINK_LTO_COUNTED;
}

/* A file without a name that programs below this one find through /proc. */
static int pass_file(const char *variable)
{
	int fd = memfd_create("weir-lto", MFD_CLOEXEC);
	char *path = mem_printf("/proc/%d/fd/%d", (int)getpid(), fd);

	if (fd >= 0)
		setenv(variable, path, 1);
	free(path);
	return fd;
}

static int write_names(int fd, struct counted_files *c)
{
	struct buf text = {0};
	int rc;

	for (uint32_t i = 0; i < c->names.is_defined.n; i++)
		if (c->names.is_defined.v[i] && !c->names.is_left.v[i])
			buf_printf(&text, "%s\n", intern_get(&c->names.names, i));
	rc = fd_write_all(fd, buf_span(&text));
	buf_release(&text);
	return rc;
}

int lto_link_begin(struct lto_link *lto, struct counted_files *c, struct link_command *command,
	struct err *err)
{
	char *ours = own_file_find(WRAPPER_BUILT, WRAPPER_INSTALLED), *theirs;

	if (!ours)
		return err_set(err, ERR_NOT_FOUND,
			WRAPPER_BUILT ": is not beside the program (make builds it)");
	lto->names = pass_file(COUNT_ENV_LTO_NAMES);
	lto->report = pass_file(COUNT_ENV_LTO_REPORT);
	if (lto->names < 0 || lto->report < 0 || write_names(lto->names, c) < 0) {
		free(ours);
		return err_sys(err, errno, "no file in memory for link-time optimisation");
	}
	theirs = link_command_replace(command, &command->wrapper, ours);
	setenv(COUNT_ENV_LTO_WRAPPER, theirs, 1);
	free(theirs);
	free(ours);
	return 0;
}

void lto_link_end(struct lto_link *lto, struct counted_files *c, const char *output)
{
	char *path = mem_printf("%s %s", output, OBJECT_NAME);
	struct insert_report report = {0};
	struct file_map map;

	/* Empty: nothing was optimised. */
	if (file_map_open_fd(&map, lto->report, path, NULL) == 0) {
		if (map.bytes.n && insert_report_get(&report, map.bytes, NULL) == 0) {
			insert_setup_match(&c->setup, &report);
			counted_files_say(c, path, &report);
		}
		file_map_release(&map);
	}
	insert_report_release(&report);
	free(path);
	close(lto->names);
	close(lto->report);
}

/* ---- in the place of lto-wrapper ---- */

bool is_lto_wrapper_name(const char *path)
{
	return !strcmp(path_base_name(path), WRAPPER_NAME);
}

/* Runs the true one; what it prints is the name of an object in each line. */
static int run_wrapper(char **argv, struct buf *printed)
{
	int mine = dup(STDOUT_FILENO), fd = memfd_create("weir-lto", MFD_CLOEXEC), status;
	struct file_map map;

	if (mine < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
		fputs("weir: no file for what lto-wrapper prints\n", stderr);
		return STATUS_FAILED;
	}
	status = count_run_child(argv[0], argv);
	dup2(mine, STDOUT_FILENO);
	close(mine);
	if (file_map_open_fd(&map, fd, "lto-wrapper", NULL) == 0) {
		buf_put(printed, map.bytes.p, map.bytes.n);
		file_map_release(&map);
	}
	close(fd);
	return status;
}

static void each_line(const struct buf *text,
	void (*each)(struct counted_files *c, const char *line), struct counted_files *c)
{
	char *lines = mem_strndup((const char *)text->p, text->n), *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		each(c, line);
	free(lines);
}

static void take_name(struct counted_files *c, const char *name)
{
	link_names_define(&c->names, name);
}

static void take_object(struct counted_files *c, const char *path)
{
	counted_files_open(c, path);
}

static void take_names(struct counted_files *c)
{
	const char *path = getenv(COUNT_ENV_LTO_NAMES);
	struct buf text = {0};

	if (path && file_read(&text, path, NAMES_BYTES_MAX, NULL) == 0 && text.n)
		each_line(&text, take_name, c);
	buf_release(&text);
}

/* The object has the bytes of its copy then: a new file, since the old one may have other names. */
static int replace_object(const struct counted_file *f, struct err *err)
{
	struct file_map map;
	struct stat st;
	int rc = file_map_open(&map, f->copy, err);

	if (rc == 0) {
		rc = file_replace(f->file.path, map.bytes,
			stat(f->file.path, &st) == 0 ? st.st_mode & 07777 : 0600, err);
		file_map_release(&map);
	}
	return rc;
}

static void add_report(struct insert_report *to, struct insert_report *from)
{
	to->n_objects += from->n_objects;
	to->n_left_alone += from->n_left_alone;
	to->n_blocks += from->n_blocks;
	to->old_text += from->old_text;
	to->new_text += from->new_text;
	for (size_t i = 0; i < from->functions.n; i++)
		vec_push(&to->functions, from->functions.v[i]);
	for (size_t i = 0; i < from->notes.n; i++)
		vec_push(&to->notes, from->notes.v[i]);
	from->functions.n = from->notes.n = 0; /* they have another owner */
}

static void give_report(struct counted_files *c)
{
	const char *path = getenv(COUNT_ENV_LTO_REPORT);
	struct insert_report sum = {0};
	struct buf bytes = {0};
	FD_AUTO fd = -1;

	for (size_t i = 0; i < c->files.n; i++)
		add_report(&sum, &c->files.v[i].report);
	insert_report_put(&sum, &bytes);
	fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		fd_write_all(fd, buf_span(&bytes));
	insert_report_release(&sum);
	buf_release(&bytes);
}

static int insert_objects(struct counted_files *c, const struct buf *printed, struct err *err)
{
	int rc = 0;

	take_names(c);
	each_line(printed, take_object, c);
	counted_files_insert(c);
	for (size_t i = 0; i < c->files.n && !rc; i++)
		if (c->files.v[i].copy)
			rc = replace_object(&c->files.v[i], err);
	give_report(c);
	return rc;
}

static int insert_printed(const struct buf *printed, const struct insert_arguments *a)
{
	struct counted_files c;
	struct err err = {0};
	int status = counted_files_init(&c, a);

	c.setup.options.object_name = OBJECT_NAME;
	if (status == STATUS_DONE && counted_files_begin(&c, &err) == 0) {
		if (insert_objects(&c, printed, &err) < 0)
			status = command_fail(&err);
		counted_files_end(&c);
	} else if (status == STATUS_DONE) {
		status = command_fail(&err);
	}
	counted_files_release(&c);
	return status;
}

int count_lto_main(char **argv)
{
	char *wrapper = getenv(COUNT_ENV_LTO_WRAPPER);
	struct insert_arguments a = {0};
	struct link_words words = {0};
	struct buf printed = {0};
	int status = STATUS_FAILED;

	if (!wrapper) {
		fputs("weir: " WRAPPER_NAME ": is run by the linker of 'weir count' only\n",
			stderr);
		return status;
	}
	argv[0] = wrapper;
	if (!count_options_from_environment(&a, &words))
		status = STATUS_USAGE;
	else
		status = run_wrapper(argv, &printed);
	if (status == STATUS_DONE && printed.n)
		status = insert_printed(&printed, &a);
	/* The plug-in removes what it is told of, after a failure too. */
	if (printed.n)
		fwrite(printed.p, 1, printed.n, stdout);
	buf_release(&printed);
	link_words_release(&words);
	insert_arguments_release(&a);
	return status;
}
