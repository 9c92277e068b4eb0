/* SPDX-License-Identifier: MIT */
/* Any bytes as a question to a small trace: an answer, or a refusal with a sentence and nothing else; and as a list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/view/engine.h"
#include "formats/import_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char events[] =
	"0 enter main\n1 enter a\n3 sample=2 main a b\n5 enter a\n7 leave a\n"
	"8 leave a\n9 enter b;c\n12 add bytes 5\n14 leave b;c\n20 leave main\n";

static struct view_engine *engine_of_events(void)
{
	char path[] = "/tmp/view-question-fuzz.XXXXXX";
	struct span text = {(const uint8_t *)events, sizeof(events) - 1};
	struct trace_writer *w;
	struct trace_reader *reader;
	struct err err = {0};
	int fd = mkstemp(path);

	if (fd < 0 || trace_writer_open(&w, path, &err) < 0 ||
		import_events(text, "fuzz", w, &err) < 0 || trace_writer_close(w, &err) < 0 ||
		trace_reader_open(&reader, path, &err) < 0)
		abort();
	close(fd);
	unlink(path);
	return view_engine_new(reader, NULL, NULL);
}

static void read_list(const uint8_t *data, size_t n)
{
	char *text = mem_strndup((const char *)data, n);

	for (size_t of_item = 1; of_item <= QUESTION_ITEM_MAX; of_item++) {
		struct question_list list = {text, "list"};
		double numbers[QUESTION_ITEM_MAX];
		struct err err = {0};
		size_t taken = 0;
		int rc;

		while ((rc = question_list_next(&list, numbers, of_item, &err)) > 0)
			if (++taken > n)
				abort();
		if (rc < 0 && !err.text[0])
			abort();
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct view_engine *engine;
	struct buf answer = {0};
	struct err err = {0};

	if (!engine)
		engine = engine_of_events();
	if (view_answer(engine, (const char *)data, n, &answer, &err) < 0) {
		if (!err.text[0] || answer.n)
			abort();
	} else if (answer.n < 2 || (answer.p[0] != '{' && memcmp(answer.p, "WV01", 4) != 0)) {
		abort();
	}
	buf_release(&answer);
	read_list(data, n);
	return 0;
}
