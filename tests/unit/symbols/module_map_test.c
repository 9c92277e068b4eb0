/* SPDX-License-Identifier: MIT */
/* Which image was where, when: by hand, and random histories against a plain model. */
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbols/resolve/module_map.h"

#define PAGE 0x1000u

static char path[64];
static struct trace_writer *w;
static uint32_t life;

static void begin(void)
{
	struct err err = {0};

	snprintf(path, sizeof(path), "module-map-%d.weir", (int)getpid());
	unlink(path);
	if (trace_writer_open(&w, path, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	for (uint32_t i = 1; i <= 9; i++)
		trace_writer_image(
			w, &(struct trace_image){.kind = IMAGE_KIND_ELF, .file_bytes = i});
}

static struct module_map *end(struct trace_reader **reader)
{
	struct module_map *m = NULL;
	struct trace_reader *r = NULL;
	struct err err = {0};

	if (trace_writer_close(w, &err) < 0 || trace_reader_open(&r, path, &err) < 0 ||
		module_map_new(&m, r, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	unlink(path);
	if (reader)
		*reader = r;
	else
		trace_reader_close(r); /* the map has copies */
	return m;
}

static void put(uint64_t time, uint32_t major, uint32_t minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(w, life, time, major, minor, numbers, n);
}

static void load(uint64_t time, uint64_t pid, uint64_t start, uint64_t page, uint64_t n_pages,
	uint64_t image)
{
	put(time, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){pid, start, page * PAGE, n_pages * PAGE, 5, image, 0, 0, image * PAGE},
		9);
}

static void load_at_start(uint64_t time, uint64_t pid, uint64_t start, uint64_t page,
	uint64_t n_pages, uint64_t image)
{
	put(time, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){pid, start, page * PAGE, n_pages * PAGE, 5, image, 0, 1, image * PAGE},
		9);
}

static void unload(uint64_t time, uint64_t pid, uint64_t start, uint64_t page, uint64_t n_pages,
	enum module_end how)
{
	put(time, RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD,
		(uint64_t[]){pid, start, page * PAGE, n_pages * PAGE, how}, 5);
}

static void snapshot(uint64_t time, uint64_t pid, uint64_t start, uint64_t page, uint64_t n_pages,
	uint64_t image, bool is_end)
{
	put(time, RECORD_MAJOR_MODULE, RECORD_MODULE_SNAPSHOT,
		(uint64_t[]){pid, start, page * PAGE, n_pages * PAGE, image, image * PAGE, is_end},
		7);
}

static void process(uint64_t time, uint64_t pid, uint64_t start)
{
	put(time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_START, (uint64_t[]){pid, 1, start, 0}, 4);
}

static void started(uint64_t time)
{
	put(time, RECORD_MAJOR_PHASE, RECORD_PHASE_STARTED, NULL, 0);
}

static void fork_(uint64_t time, uint64_t pid, uint64_t parent)
{
	put(time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_FORK, (uint64_t[]){pid, parent}, 2);
}

static void exec_(uint64_t time, uint64_t pid)
{
	put(time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_EXEC, (uint64_t[]){pid, 0}, 2);
}

static void exit_(uint64_t time, uint64_t pid)
{
	put(time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_END, (uint64_t[]){pid, 0}, 2);
}

static const struct trace_module_span *find(
	const struct module_map *m, uint32_t pid, uint64_t start, uint64_t page, uint64_t time)
{
	return module_map_find(m, &(struct module_query){pid, start, {page * PAGE + 0x123}, time});
}

/* 0 = nothing is there. */
static uint32_t image(
	const struct module_map *m, uint32_t pid, uint64_t start, uint64_t page, uint64_t time)
{
	const struct trace_module_span *s = find(m, pid, start, page, time);

	return s ? s->image : 0;
}

#define ANY  UINT64_MAX
#define LAST UINT64_MAX

static void two_modules_at_one_address(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 1, 4, 1);
	load(200, 10, 5, 1, 4, 2);
	unload(300, 10, 5, 1, 4, MODULE_END_MUNMAP);
	load(400, 10, 5, 2, 1, 3);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 1, 99), 0);
	CHECK_EQ(image(m, 10, 5, 1, 100), 1);
	CHECK_EQ(image(m, 10, 5, 4, 199), 1);
	CHECK_EQ(image(m, 10, 5, 4, 200), 2);
	CHECK_EQ(image(m, 10, 5, 4, 300), 0);
	CHECK_EQ(image(m, 10, 5, 2, 400), 3);
	CHECK_EQ(image(m, 10, 5, 1, 400), 0);
	CHECK_EQ(image(m, 10, 5, 5, 200), 0);
	CHECK_EQ(image(m, 10, 5, 1, LAST), 2);
	CHECK_EQ(image(m, 10, 5, 2, LAST), 3);
	CHECK_EQ(image(m, 11, 5, 2, 200), 0);
	CHECK_EQ(image(m, 10, 6, 2, 200), 0);
	CHECK_EQ(image(m, 10, ANY, 2, 200), 2);
	CHECK_EQ(find(m, 10, 5, 1, 100)->ended, MODULE_END_OVERLAP);
	CHECK_EQ(find(m, 10, 5, 1, 200)->ended, MODULE_END_MUNMAP);
	CHECK_EQ(find(m, 10, 5, 2, 400)->ended, MODULE_END_NONE);
	CHECK_EQ(find(m, 10, 5, 2, 400)->to, UINT64_MAX);
	CHECK_EQ(find(m, 10, 5, 1, 200)->bias, 2 * PAGE);
	CHECK_EQ(module_map_n(m), 3);
	CHECK_EQ(module_map_n_lost(m), 0);
	module_map_free(m);
}

static void a_hole_leaves_both_sides(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 10, 1);
	unload(200, 10, 5, 3, 2, MODULE_END_MUNMAP);
	load(300, 10, 5, 6, 1, 2);
	m = end(NULL);
	for (uint64_t page = 0; page < 10; page++) {
		CHECK_EQ(image(m, 10, 5, page, 150), 1);
		CHECK_EQ(image(m, 10, 5, page, 250), page == 3 || page == 4 ? 0 : 1);
		CHECK_EQ(image(m, 10, 5, page, 350), page == 3 || page == 4 ? 0
						     : page == 6	    ? 2
									    : 1);
	}
	CHECK_EQ(module_map_n(m), 6);
	for (size_t i = 1; i < module_map_n(m); i++)
		CHECK(module_map_get(m, i - 1)->start < module_map_get(m, i)->start ||
			module_map_get(m, i - 1)->from < module_map_get(m, i)->from);
	CHECK_EQ(find(m, 10, 5, 0, 350)->from, 100);
	CHECK_EQ(find(m, 10, 5, 9, 350)->from, 100);
	module_map_free(m);
}

static void a_repeated_load_changes_nothing(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 10, 1);
	load(200, 10, 5, 4, 2, 1);
	load(300, 10, 5, 0, 10, 1);
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 1);
	CHECK_EQ(module_map_get(m, 0)->from, 100);
	CHECK_EQ(module_map_get(m, 0)->to, UINT64_MAX);
	CHECK(module_map_get(m, 0)->is_used);
	module_map_free(m);
}

static void from_the_start(void)
{
	struct module_map *m;

	begin();
	process(50, 10, 5);
	started(60);
	load_at_start(100, 10, 5, 0, 2, 1);
	load(200, 10, 5, 4, 2, 2);
	unload(250, 10, 5, 4, 2, MODULE_END_MUNMAP);
	load_at_start(300, 10, 5, 4, 4, 3); /* a contradiction where something else was */
	load_at_start(300, 10, 5, 9, 1, 4);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 0, 10), 1);
	CHECK(find(m, 10, 5, 0, 10)->at_start);
	CHECK_EQ(image(m, 10, 5, 4, 10), 0);
	CHECK_EQ(image(m, 10, 5, 4, 220), 2);
	CHECK_EQ(image(m, 10, 5, 4, 260), 0);
	CHECK_EQ(image(m, 10, 5, 4, 300), 3);
	CHECK_EQ(image(m, 10, 5, 9, 0), 4);
	module_map_free(m);
}

static void exec_and_exit_end_everything(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 2, 1);
	load(100, 10, 5, 5, 2, 2);
	exec_(200, 10);
	load(210, 10, 5, 0, 2, 3);
	exit_(300, 10);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 5, 199), 2);
	CHECK_EQ(image(m, 10, 5, 5, 200), 0);
	CHECK_EQ(image(m, 10, 5, 0, 205), 0);
	CHECK_EQ(image(m, 10, 5, 0, 299), 3);
	CHECK_EQ(image(m, 10, 5, 0, 300), 0);
	CHECK_EQ(find(m, 10, 5, 5, 199)->ended, MODULE_END_EXEC);
	CHECK_EQ(find(m, 10, 5, 0, 299)->ended, MODULE_END_EXIT);
	module_map_free(m);
}

/* The first thread ends a process, says the record; others live on and hit something. */
static void a_process_lives_on_after_its_first_thread(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 2, 1);
	exit_(200, 10);
	load(300, 10, 5, 4, 1, 2);
	unload(400, 10, 5, 0, 9, MODULE_END_EXIT);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 0, 250), 1);
	CHECK_EQ(image(m, 10, 5, 4, 350), 2);
	CHECK_EQ(image(m, 10, 5, 0, 400), 0);
	CHECK_EQ(find(m, 10, 5, 0, 250)->ended, MODULE_END_EXIT);
	CHECK_EQ(find(m, 10, 5, 0, 250)->to, 400);
	module_map_free(m);
}

static void a_pid_that_is_used_again(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	process(0, 20, 6);
	started(1);
	load(100, 10, 5, 0, 2, 1);
	fork_(200, 10, 20); /* nobody saw the old one end */
	load(210, 10, 200, 0, 2, 2);
	exit_(300, 10);
	process(400, 10, 390);
	load(410, 10, 390, 0, 2, 3);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 0, 150), 1);
	CHECK_EQ(image(m, 10, 5, 0, 250), 0);
	CHECK_EQ(find(m, 10, 5, 0, 150)->ended, MODULE_END_REUSED);
	CHECK_EQ(find(m, 10, 5, 0, 150)->to, 200);
	CHECK_EQ(image(m, 10, 200, 0, 250), 2);
	CHECK_EQ(find(m, 10, 200, 0, 250)->ended, MODULE_END_EXIT);
	CHECK_EQ(find(m, 10, 200, 0, 250)->to, 300);
	CHECK_EQ(image(m, 10, 390, 0, 420), 3);
	/* Without a start: the process that the time falls into. */
	CHECK_EQ(image(m, 10, ANY, 0, 150), 1);
	CHECK_EQ(image(m, 10, ANY, 0, 250), 2);
	CHECK_EQ(image(m, 10, ANY, 0, 420), 3);
	CHECK_EQ(image(m, 10, ANY, 0, LAST), 3);
	module_map_free(m);
}

static void a_child_has_what_its_parent_had(void)
{
	const struct trace_module_span *s;
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 4, 1);
	fork_(200, 11, 10);
	fork_(210, 12, 11); /* of a child that has nothing of its own */
	load(300, 10, 5, 0, 4, 2);
	load(310, 11, 200, 2, 1, 3);
	unload(320, 11, 200, 3, 1, MODULE_END_MUNMAP);
	fork_(330, 13, 11);
	exec_(400, 12);
	m = end(NULL);
	CHECK_EQ(image(m, 12, 210, 1, 209), 0); /* it was not yet there */
	CHECK_EQ(image(m, 12, 210, 1, 350), 1); /* not 2: that came later */
	CHECK_EQ(image(m, 12, 210, 1, 400), 0);
	CHECK_EQ(image(m, 12, 210, 1, LAST), 1);
	CHECK_EQ(image(m, 12, 210, 5, 350), 0);
	s = find(m, 12, 210, 1, 350);
	CHECK(s && s->pid == 10);
	CHECK_EQ(image(m, 11, 200, 1, 350), 1);
	CHECK_EQ(image(m, 11, 200, 2, 305), 1);
	CHECK_EQ(image(m, 11, 200, 2, 350), 3);
	CHECK_EQ(image(m, 11, 200, 3, 319), 1);
	CHECK_EQ(image(m, 11, 200, 3, 320), 0);
	CHECK_EQ(image(m, 13, 330, 1, 500), 1);
	CHECK_EQ(image(m, 13, 330, 2, 500), 3);
	CHECK_EQ(image(m, 13, 330, 3, 500), 0);
	module_map_free(m);
}

/* The recorder raised the time of the fork record; the load record has the true start. */
static void a_fork_record_that_came_late(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 4, 1);
	fork_(205, 11, 10);
	load(300, 11, 200, 6, 1, 2);
	m = end(NULL);
	CHECK_EQ(image(m, 11, 200, 6, 300), 2);
	CHECK_EQ(image(m, 11, 200, 0, 300), 1);
	module_map_free(m);
}

static void snapshots_alone_resolve(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	snapshot(1, 10, 5, 0, 2, 1, false);
	snapshot(1, 10, 5, 4, 2, 2, false);
	snapshot(1, 10, 5, 8, 2, 3, false);
	started(2);
	snapshot(900, 10, 5, 0, 2, 1, true);  /* as before */
	snapshot(900, 10, 5, 4, 2, 4, true);  /* another in its place */
	snapshot(900, 10, 5, 12, 2, 5, true); /* new; and 8 is gone */
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 0, 500), 1);
	CHECK_EQ(image(m, 10, 5, 4, 500), 2); /* the start snapshot comes first */
	CHECK_EQ(image(m, 10, 5, 4, LAST), 4);
	CHECK_EQ(image(m, 10, 5, 8, 500), 3);
	CHECK_EQ(image(m, 10, 5, 8, 900), 0);
	CHECK_EQ(image(m, 10, 5, 12, 500), 5); /* then the end snapshot */
	CHECK_EQ(find(m, 10, 5, 0, 500)->ended, MODULE_END_NONE);
	CHECK_EQ(find(m, 10, 5, 4, 500)->ended, MODULE_END_SNAPSHOT);
	CHECK_EQ(find(m, 10, 5, 8, 500)->ended, MODULE_END_SNAPSHOT);
	CHECK(find(m, 10, 5, 0, 500)->at_start && !find(m, 10, 5, 0, 500)->is_used);
	CHECK(!find(m, 10, 5, 12, 500)->at_start);
	CHECK_EQ(module_map_n(m), 5);
	module_map_free(m);
}

static void snapshots_and_exec(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	snapshot(1, 10, 5, 0, 2, 1, false);
	started(2);
	fork_(100, 11, 10);
	exec_(200, 10);
	snapshot(900, 10, 5, 0, 2, 2, true);
	exec_(300, 11); /* clamped to 900 by the writer: 11 runs until then what 10 was */
	snapshot(950, 11, 100, 0, 2, 3, true);
	exit_(950, 11);
	m = end(NULL);
	CHECK_EQ(image(m, 10, 5, 1, 199), 1);
	CHECK_EQ(find(m, 10, 5, 1, 199)->ended, MODULE_END_EXEC);
	CHECK_EQ(image(m, 10, 5, 1, 200), 2);
	CHECK_EQ(image(m, 11, 100, 1, 250), 1);
	CHECK_EQ(image(m, 11, 100, 1, 920), 3);
	CHECK_EQ(find(m, 11, 100, 1, 920)->ended, MODULE_END_EXIT);
	module_map_free(m);
}

/* Records decide; snapshots fill in what no record speaks of. */
static void snapshots_beside_records(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	snapshot(1, 10, 5, 0, 2, 1, false);
	snapshot(1, 10, 5, 4, 2, 2, false);
	started(2);
	load_at_start(100, 10, 5, 0, 2, 1);
	load(200, 10, 5, 4, 1, 3);
	snapshot(900, 10, 5, 0, 2, 1, true);
	snapshot(900, 10, 5, 5, 1, 2, true);
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 4);
	CHECK_EQ(image(m, 10, 5, 0, 50), 1);
	CHECK(find(m, 10, 5, 0, 50)->is_used);
	CHECK_EQ(image(m, 10, 5, 4, 50), 2);
	CHECK_EQ(image(m, 10, 5, 4, 250), 3);
	CHECK_EQ(image(m, 10, 5, 4, 900), 0);
	CHECK_EQ(image(m, 10, 5, 5, 950), 2);
	module_map_free(m);
}

static void the_index_comes_first(void)
{
	const struct trace_module_span spans[] = {
		{10, 5, 0, 4 * PAGE, 50, 200, 7, PAGE, MODULE_END_MUNMAP, false, true},
		{10, 5, 0, 2 * PAGE, 200, UINT64_MAX, 8, PAGE, MODULE_END_NONE, false, true},
		{11, 300, 0, PAGE, 310, 400, 9, PAGE, MODULE_END_EXEC, false, true},
	};
	struct module_map *m;

	begin();
	process(0, 10, 5);
	started(1);
	load(100, 10, 5, 0, 4, 1); /* not looked at */
	fork_(300, 11, 10);
	fork_(350, 12, 11);
	exec_(400, 11);
	trace_writer_module_spans(w, spans, 3);
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 3);
	CHECK_EQ(image(m, 10, 5, 3, 60), 7);
	CHECK_EQ(image(m, 10, 5, 3, 200), 0);
	CHECK_EQ(image(m, 10, 5, 1, 200), 8);
	CHECK_EQ(image(m, 11, 300, 1, 350), 8); /* from its parent */
	CHECK_EQ(image(m, 11, 300, 0, 350), 9);
	CHECK_EQ(image(m, 11, 300, 0, 305), 0); /* its own is later, but hides the parent's */
	CHECK_EQ(image(m, 11, 300, 1, 400), 0);
	CHECK_EQ(image(m, 12, 350, 0, 500), 9); /* from its parent */
	CHECK_EQ(image(m, 12, 350, 1, 500), 8); /* from the parent's parent */
	CHECK_EQ(image(m, 12, 350, 3, 500), 0);
	module_map_free(m);
}

static void a_load_without_bias(void)
{
	struct module_map *m;

	begin();
	process(0, 10, 5);
	put(100, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, PAGE, PAGE, 5, 1, 0, 0}, 8);
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 1);
	CHECK_EQ(module_map_get(m, 0)->bias, MODULE_BIAS_UNKNOWN);
	CHECK_EQ(image(m, 10, 5, 1, 200), 0);
	module_map_free(m);
}

/* Segments of an image whose parts are loaded one by one, and load records that give no bias. */
static void a_part_is_found_by_its_segment(void)
{
	const struct trace_segment segments[] = {
		{0x1000, 0x1000, 0x800, 0x800, 5},    /* r-x, a page */
		{0x8010, 0x3010, 0x1900, 0x1900, 5},  /* r-x, two pages */
		{0x20000, 0x9000, 0x3000, 0x3000, 5}, /* r-x, three pages */
		{0x40000, 0x5000, 0x1000, 0x1000, 6}, /* rw- */
	};
	const struct trace_segment only[] = {{0x2000, 0, 0x7000, 0x7000, 5}};
	struct module_map *m;

	begin();
	trace_writer_image_facts(w, &(struct trace_image_facts){1, 62, 0, 4, segments});
	trace_writer_image_facts(w, &(struct trace_image_facts){2, 62, 0, 1, only});
	process(0, 10, 5);
	/* by its place in the file */
	put(100, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, 0x108000, 0x2000, 5, 1, 0x3000, 0}, 8);
	/* by its size */
	put(101, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, 0x720000, 0x3000, 5, 1, 0, 0}, 8);
	/* by its address */
	put(102, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, 0x1000, 0x4000, 5, 1, 0, 0}, 8);
	/* the only one */
	put(103, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, 0x902000, 0x1000, 5, 2, 0, 0}, 8);
	/* none of them */
	put(104, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, 0xa00000, 0x9000, 5, 1, 0, 0}, 8);
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 5);
	CHECK_EQ(module_map_get(m, 0)->bias, 0);
	CHECK_EQ(module_map_get(m, 1)->bias, 0x100000);
	CHECK_EQ(module_map_get(m, 2)->bias, 0x700000);
	CHECK_EQ(module_map_get(m, 3)->bias, 0x900000);
	CHECK_EQ(module_map_get(m, 4)->bias, MODULE_BIAS_UNKNOWN);
	module_map_free(m);
}

static void senseless_records_are_counted(void)
{
	struct module_map *m;

	begin();
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD, (uint64_t[]){10, 5}, 2);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD, (uint64_t[]){10, 5, PAGE, 0, 5, 1, 0, 0, 0},
		9);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, UINT64_MAX, 1, 5, 1, 0, 0, 0}, 9);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, PAGE, PAGE, 5, 10, 0, 0, 0}, 9);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){10, 5, PAGE, PAGE, 5, 0, 0, 0, 0}, 9);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){UINT64_MAX, 5, PAGE, PAGE, 5, 1, 0, 0, 0}, 9);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_SNAPSHOT,
		(uint64_t[]){10, 5, PAGE, PAGE, 0, 0, 0}, 7);
	put(1, RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD, (uint64_t[]){10, 5, PAGE, 0, 1}, 5);
	put(1, RECORD_MAJOR_PROCESS, RECORD_PROCESS_FORK, (uint64_t[]){1}, 1);
	put(1, RECORD_MAJOR_PROCESS, RECORD_PROCESS_FORK, (uint64_t[]){1, UINT64_MAX}, 2);
	put(1, RECORD_MAJOR_PROCESS, RECORD_PROCESS_EXEC, (uint64_t[]){77, 0},
		2); /* unknown: fine */
	m = end(NULL);
	CHECK_EQ(module_map_n_lost(m), 10);
	CHECK_EQ(module_map_n(m), 0);
	CHECK(!find(m, 10, 5, 1, 1) && !find(m, 0, ANY, 0, LAST));
	module_map_free(m);
	begin();
	m = end(NULL);
	CHECK_EQ(module_map_n(m), 0);
	module_map_free(m);
	module_map_free(NULL);
	CHECK_STR(module_end_name(MODULE_END_REUSED), "pid reused");
	CHECK_STR(module_end_name(MODULE_END_SNAPSHOT), "gone at the end");
	CHECK_STR(module_end_name(MODULE_END_NONE), "");
	CHECK_STR(module_end_name((enum module_end)99), "");
}

/* --- random histories --------------------------------------------------------------------- */

enum { N_PIDS = 5, N_PAGES = 12, N_STEPS = 120, N_HISTORIES = 150 };

/* One process at one moment. */
struct model {
	bool is_there;
	uint64_t start;
	uint8_t cells[N_PAGES]; /* image, 0 = nothing */
};

static uint64_t seed = 88172645463325252u;

static uint64_t roll(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

static uint64_t time_of(int step)
{
	return 1000 + (uint64_t)step * 10;
}

/* Changes the model by one random event and writes its record. */
static void random_event(struct model *world, int step)
{
	uint32_t pid = (uint32_t)roll(N_PIDS);
	struct model *m = &world[pid], *parent = &world[roll(N_PIDS)];
	uint64_t time = time_of(step), page = roll(N_PAGES), n = 1 + roll(N_PAGES - page);
	uint8_t which = (uint8_t)(1 + roll(4));

	switch (m->is_there ? roll(12) : 11) {
	case 0:
		exec_(time, pid);
		memset(m->cells, 0, sizeof(m->cells));
		break;
	case 1:
		exit_(time, pid);
		*m = (struct model){0};
		break;
	case 2:
	case 3:
	case 4:
		unload(time, pid, m->start, page, n, MODULE_END_MUNMAP);
		memset(m->cells + page, 0, n);
		break;
	case 11:
		if (parent == m || !parent->is_there)
			return;
		fork_(time, pid, (uint32_t)(parent - world));
		*m = *parent;
		m->start = time;
		break;
	default:
		load(time, pid, m->start, page, n, which);
		memset(m->cells + page, which, n);
		break;
	}
}

static uint64_t n_wrong;

/* One question to the map, at a time within the step. */
static void ask(const struct module_map *m, struct model (*history)[N_PIDS], int step, uint32_t pid,
	uint32_t page)
{
	const struct model *now = &history[step][pid];
	uint64_t time = time_of(step) + roll(10);
	const struct trace_module_span *s =
		find(m, pid, now->is_there ? now->start : ANY, page, time);
	uint32_t expected = now->is_there ? now->cells[page] : 0;

	if ((s ? s->image : 0) != expected || (s && s->bias != expected * PAGE))
		n_wrong++;
	if (!s || s->pid != pid || s->process_start != now->start)
		return; /* nothing, or a parent's span, with the parent's times */
	if (s->from > time || s->to <= time)
		n_wrong++;
	for (int k = 0; k < N_STEPS; k++) {
		const struct model *then = &history[k][pid];
		bool is_within = time_of(k) >= s->from && time_of(k) < s->to;

		if (is_within && (!then->is_there || then->start != now->start ||
					 then->cells[page] != s->image))
			n_wrong++;
		/* It ends only where something happens. */
		if (time_of(k) == s->to && then->is_there && then->start == now->start &&
			then->cells[page] == s->image && s->ended != MODULE_END_EXEC)
			n_wrong++;
	}
}

static void ask_everything(const struct module_map *m, struct model (*history)[N_PIDS])
{
	for (int step = 0; step < N_STEPS; step++)
		for (uint32_t pid = 0; pid < N_PIDS; pid++)
			for (uint32_t page = 0; page < N_PAGES; page++)
				ask(m, history, step, pid, page);
}

/* Rows of one process never overlap. */
static void check_disjoint(const struct module_map *m)
{
	for (size_t i = 0; i < module_map_n(m); i++)
		for (size_t k = i + 1; k < module_map_n(m); k++) {
			const struct trace_module_span *a = module_map_get(m, i);
			const struct trace_module_span *b = module_map_get(m, k);

			n_wrong += a->pid == b->pid && a->process_start == b->process_start &&
				   a->start < b->end && b->start < a->end && a->from < b->to &&
				   b->from < a->to;
		}
}

static void random_histories(void)
{
	static struct model history[N_STEPS][N_PIDS];
	uint64_t n_rows = 0, n_forked = 0;

	for (int h = 0; h < N_HISTORIES; h++) {
		struct model world[N_PIDS] = {{0}};
		struct module_map *m;

		begin();
		for (uint32_t pid = 0; pid < 2; pid++) {
			process(1, pid, 0);
			world[pid].is_there = true;
		}
		started(2);
		for (int step = 0; step < N_STEPS; step++) {
			random_event(world, step);
			memcpy(history[step], world, sizeof(world));
			for (uint32_t pid = 0; pid < N_PIDS; pid++)
				n_forked += world[pid].start == time_of(step);
		}
		m = end(NULL);
		CHECK_EQ(module_map_n_lost(m), 0);
		ask_everything(m, history);
		check_disjoint(m);
		n_rows += module_map_n(m);
		module_map_free(m);
	}
	CHECK_EQ(n_wrong, 0);
	CHECK(n_rows > 5000 && n_forked > 500);
	printf("%" PRIu64 " rows, %" PRIu64 " forks\n", n_rows, n_forked);
}

/* The same answers from an index as from the records that it was made of. */
static void index_and_records_agree(void)
{
	n_wrong = 0;
	for (int h = 0; h < 30; h++) {
		struct model world[N_PIDS] = {{0}};
		struct trace_module_span *spans = NULL;
		struct module_map *by_records = NULL, *by_index = NULL;
		struct trace_reader *r;
		uint64_t saved = 0;
		size_t n = 0;

		for (int round = 0; round < 2; round++) {
			if (!round)
				saved = seed;
			else
				seed = saved;
			memset(world, 0, sizeof(world));
			begin();
			process(1, 0, 0);
			world[0].is_there = true;
			started(2);
			for (int step = 0; step < N_STEPS; step++)
				random_event(world, step);
			if (!round) {
				by_records = end(&r);
				n = module_map_n(by_records);
				spans = mem_calloc(n, sizeof(*spans));
				for (size_t i = 0; i < n; i++)
					spans[i] = *module_map_get(by_records, i);
				trace_reader_close(r);
				continue;
			}
			trace_writer_module_spans(w, spans, n);
			by_index = end(NULL);
		}
		for (int step = 0; step < N_STEPS; step++)
			for (uint32_t pid = 0; pid < N_PIDS; pid++)
				for (uint32_t page = 0; page < N_PAGES; page++)
					n_wrong +=
						image(by_records, pid, ANY, page, time_of(step)) !=
						image(by_index, pid, ANY, page, time_of(step));
		module_map_free(by_records);
		module_map_free(by_index);
		free(spans);
	}
	CHECK_EQ(n_wrong, 0);
}

int main(void)
{
	static const struct test tests[] = {
		{"two modules at one address resolve each by its time", two_modules_at_one_address},
		{"a hole in a mapping leaves what is on both sides", a_hole_leaves_both_sides},
		{"a load record of what is there already changes nothing",
			a_repeated_load_changes_nothing},
		{"what was there from the start resolves from the start", from_the_start},
		{"exec and exit end every mapping", exec_and_exit_end_everything},
		{"a process lives on after its first thread",
			a_process_lives_on_after_its_first_thread},
		{"a pid that is used again is another process", a_pid_that_is_used_again},
		{"a forked child has what its parent had at the fork",
			a_child_has_what_its_parent_had},
		{"a fork record with a raised time still makes the child",
			a_fork_record_that_came_late},
		{"snapshots alone resolve, start first, then end", snapshots_alone_resolve},
		{"snapshots do not reach over exec", snapshots_and_exec},
		{"snapshots fill in what no record speaks of", snapshots_beside_records},
		{"the address index comes before the records", the_index_comes_first},
		{"a load record without a bias is listed but resolves nothing",
			a_load_without_bias},
		{"a part without a bias is found by its segment", a_part_is_found_by_its_segment},
		{"senseless records are counted", senseless_records_are_counted},
		{"random histories agree with a plain model", random_histories},
		{"an index gives the answers of the records it was made of",
			index_and_records_agree},
	};

	return RUN_TESTS(tests);
}
