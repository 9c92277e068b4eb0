/* SPDX-License-Identifier: MIT */
/* Any bytes as a script, through the whole compiler in both modes; what comes out is written as a
 * stream, read back and shown. Points that look at files of this machine are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "probe/compile/compile.h"
#include "probe/stream/stream_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Words of points whose finding would read files, debug information or tracefs. */
static bool needs_machine(const char *text)
{
	static const char *const words[] = {"uprobe", "uretprobe", "u:", "ur:", "usdt",
		"U:", "tracepoint", "t:", "rt:", "probe:", "func", "fentry", "fexit", "hardware",
		"h:", "f:", "fr:", "k:", "kr:", "curtask", "ppid", "kernel"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static void through_file(const struct stream *s)
{
	struct stream *again = NULL;
	struct buf bytes = {0}, text = {0};
	struct err err = {0};

	stream_file_write(s, &bytes);
	if (stream_file_read(buf_span(&bytes), &again, &err) < 0)
		abort();
	stream_dump(again, &text);
	stream_free(again);
	buf_release(&bytes);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct compile_options options = {.wants_all_modes = true, .is_unsafe = n % 2};
	char *text = strndup((const char *)data, n);
	struct sources sources = {0};
	struct stream *stream;
	struct diags diags;

	if (!needs_machine(text)) {
		sources_add(
			&sources, "fuzz.wr", (struct span){(const uint8_t *)text, strlen(text)});
		diags_init(&diags, &sources);
		stream = compile_scripts(&sources, &options, &diags);
		if (stream)
			through_file(stream);
		stream_free(stream);
		diags_release(&diags);
		sources_release(&sources);
	}
	free(text);
	return 0;
}
