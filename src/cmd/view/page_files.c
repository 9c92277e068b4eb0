/* SPDX-License-Identifier: MIT */
/* The Makefile says where they are, and builds this anew when they change. */
#include "cmd/view/page_files.h"

#include <string.h>

/* Bytes of a file between two symbols. */
#define PAGE_BYTES(symbol, file)                                                                   \
	__asm__(".section .rodata\n" #symbol ":\n.incbin \"" file "\"\n" #symbol                   \
		"_end:\n.byte 0\n"                                                                 \
		".previous\n");                                                                    \
	extern const uint8_t symbol[], symbol##_end[]

PAGE_BYTES(page_html, WEIR_WEB "/page.html");
PAGE_BYTES(page_js, WEIR_WEB "/page.js");
PAGE_BYTES(page_css, WEIR_WEB "/page.css");
PAGE_BYTES(engine_wasm, WEIR_WEB "/engine.wasm");

const struct page_file *page_file_find(const char *name)
{
	static struct page_file files[] = {
		{"page.html", "text/html; charset=utf-8", {page_html, 0}},
		{"page.js", "text/javascript; charset=utf-8", {page_js, 0}},
		{"page.css", "text/css; charset=utf-8", {page_css, 0}},
		{"engine.wasm", "application/wasm", {engine_wasm, 0}},
	};
	static const uint8_t *const ends[] = {
		page_html_end, page_js_end, page_css_end, engine_wasm_end};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		files[i].bytes.n = (size_t)(ends[i] - files[i].bytes.p);
		if (!strcmp(files[i].name, name))
			return &files[i];
	}
	return NULL;
}
