/* SPDX-License-Identifier: MIT */
/* weir insert: one object or archive, step by step; `weir count` does it for a whole link. */
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/output.h"
#include "cmd/commands.h"
#include "cmd/insert_options.h"
#include "elf/archive.h"
#include "elf/elf_object.h"
#include "insert/foreign_names.h"

static const struct option_spec insert_options[] = {
	{'o', "output", OPTION_TEXT, "OUT", "where to write; needed", INSERT_OPTION(output)},
	INSERT_OPTION_ROWS,
	{0, "mode", OPTION_TEXT, "NAME", "tree, counts; for tests: nops, nothing",
		INSERT_OPTION(mode)},
	{0, "json", OPTION_FLAG, NULL, "what was done, as JSON", INSERT_OPTION(json)},
	{'v', "verbose", OPTION_FLAG, NULL, "what was done, function by function",
		INSERT_OPTION(verbose)},
	{'q', "quiet", OPTION_FLAG, NULL, "no sentences about what was left alone",
		INSERT_OPTION(quiet)},
	{0},
};

/* Without the rest of the link, only names of the C library are known to be foreign. */
static bool is_known_foreign(void *context, const char *name)
{
	const struct insert_setup *setup = context;
	enum foreign_timing timing = setup->timing;

	return timing != FOREIGN_TIMING_NONE &&
	       (foreign_name_waits(name) ||
		       (timing == FOREIGN_TIMING_ALL && foreign_name_is_short(name)));
}

static bool is_timed(void *context, const char *name)
{
	return insert_setup_times(context, name);
}

/* Whatever else is there is not what an earlier run or a compiler wrote. */
static int check_output(const char *out, struct err *err)
{
	struct file_map map;
	int rc = 0;

	if (output_place(out) != OUTPUT_PLACE_FOREIGN && output_place(out) != OUTPUT_PLACE_OURS)
		return 0;
	rc = file_map_open(&map, out, err);
	if (rc < 0)
		return rc;
	if (!elf_object_is(map.bytes) && !archive_is(map.bytes))
		rc = err_set(err, ERR_FAILED,
			"'%s': exists and is neither an object nor an archive; choose another name or remove it",
			out);
	file_map_release(&map);
	return rc;
}

static int insert_into(const char *in, const char *out, struct insert_setup *setup,
	struct insert_report *report, struct err *err)
{
	struct file_map map;
	struct buf bytes = {0};
	struct stat st;
	int rc = file_map_open(&map, in, err);

	if (rc < 0)
		return rc;
	if (!elf_object_is(map.bytes) && !archive_is(map.bytes)) {
		file_map_release(&map);
		return err_set(err, ERR_FORMAT,
			"'%s': is neither a relocatable object for x86-64 nor an archive", in);
	}
	rc = insert_file(map.bytes, in, &setup->options, &bytes, report, err);
	if (rc == 0) {
		insert_setup_match(setup, report);
		if (insert_setup_unmatched(setup, err))
			rc = err->code;
	}
	if (rc < 0)
		err_prefix(err, "'%s'", in);
	else
		rc = check_output(out, err);
	if (rc == 0)
		rc = file_replace(
			out, buf_span(&bytes), stat(in, &st) == 0 ? st.st_mode & 0777 : 0644, err);
	buf_release(&bytes);
	file_map_release(&map);
	return rc;
}

static int run_with(const struct command *command, const struct insert_arguments *a, const char *in)
{
	struct insert_report report = {0};
	struct insert_setup setup;
	struct err err = {0};
	int rc, status = insert_setup_init(&setup, command, a);

	if (status != STATUS_DONE)
		return status;
	setup.options.is_foreign = is_known_foreign;
	setup.options.is_timed = is_timed;
	setup.options.foreign_context = &setup;
	rc = insert_into(in, a->output, &setup, &report, &err);
	if (rc < 0) {
		status = command_fail(&err);
	} else if (a->json) {
		insert_print_json(in, a->output, &report, stdout);
	} else if (a->verbose) {
		insert_print_functions(&report, false, stdout);
		insert_print_summary(in, &report, stdout);
	} else if (!a->quiet) {
		insert_print_notes(in, &report);
	}
	insert_report_release(&report);
	insert_setup_release(&setup);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct insert_arguments a = {0};
	int status;

	if (options_begin(command, &a, &argc, &argv, &status)) {
		if (argc != 1)
			status = options_usage_error(command, "needs one object or archive");
		else if (!a.output)
			status = options_usage_error(command, "needs -o OUT");
		else
			status = run_with(command, &a, argv[0]);
	}
	insert_arguments_release(&a);
	return status;
}

const struct command command_insert = {
	.name = "insert",
	.synopsis = "[OPTIONS] IN -o OUT",
	.summary = "puts counting code into an object file or an archive",
	.options = insert_options,
	.details =
		"IN is a relocatable object for x86-64 (x.o) or an archive (libx.a). Programs linked from OUT\n"
		"need libweircount.a; 'weir count LINK-COMMAND' does all of it for a whole link.\n"
		"A function that cannot be changed safely is copied as it is; -v tells which and why.\n",
	.run = run,
};
