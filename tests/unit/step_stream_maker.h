/* SPDX-License-Identifier: MIT */
/* Makes step streams packet by packet, as docs/format/step-stream.md says. */
#ifndef WEIR_TESTS_STEP_STREAM_MAKER_H
#define WEIR_TESTS_STEP_STREAM_MAKER_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define AGAIN 0x80000000u

static struct buf stream; /* being made */
static uint64_t n_steps, n_marks, n_accesses;
static uint32_t n_codes, n_threads;

static void begin(void)
{
	stream.n = 0;
	n_steps = n_marks = n_accesses = 0;
	n_codes = n_threads = 0;
	buf_put_cstr(&stream, "weirstep");
	buf_put_u32(&stream, 1);
	buf_put_u32(&stream, 0);
}

static void packet(uint32_t type, const struct buf *payload)
{
	buf_put_u32(&stream, type);
	buf_put_u32(&stream, (uint32_t)payload->n);
	buf_put(&stream, payload->p, payload->n);
	while (stream.n & 7)
		buf_put_u8(&stream, 0);
}

static void thread(uint32_t pid, uint32_t tid, const char *name)
{
	struct buf b = {0};

	buf_put_u32(&b, n_threads++);
	buf_put_u32(&b, pid);
	buf_put_u32(&b, tid);
	buf_put_u32(&b, 0);
	buf_put_u64(&b, 77);
	buf_put_cstr(&b, name);
	packet(1, &b);
	buf_release(&b);
}

static void image(uint32_t number, uint32_t kind, const char *path)
{
	struct buf b = {0};

	buf_put_u32(&b, number);
	buf_put_u32(&b, kind);
	buf_put_u32(&b, 64);
	buf_put_u32(&b, kind == 4 ? 100 : 0);
	buf_put_u64(&b, 4096);
	buf_put_u64(&b, 123456789);
	for (uint8_t i = 0; i < 32; i++)
		buf_put_u8(&b, i < 20 ? i + 1 : 0);
	buf_put_u32(&b, 20);
	buf_put_cstr(&b, path);
	packet(2, &b);
	buf_release(&b);
}

struct code_row {
	uint32_t space;
	uint64_t addr;
	uint32_t image;
	uint64_t image_addr;
	uint8_t bits;
	const char *bytes;
};

static uint32_t code(struct code_row row)
{
	size_t n = row.bytes ? strlen(row.bytes) : 0;
	struct buf b = {0};

	buf_put_u32(&b, n_codes);
	buf_put_u32(&b, row.space);
	buf_put_u64(&b, row.addr);
	buf_put_u32(&b, row.image);
	buf_put_u8(&b, row.bits);
	buf_put_u8(&b, (uint8_t)n);
	buf_put_u16(&b, 0);
	buf_put_u64(&b, row.image_addr);
	buf_put(&b, row.bytes, n);
	for (; n < 16; n++)
		buf_put_u8(&b, 0);
	packet(3, &b);
	buf_release(&b);
	return n_codes++;
}

/* Plain code of space 1. */
static uint32_t nop(uint64_t addr)
{
	return code((struct code_row){1, addr, 0, 0, 64, "\x90"});
}

static void at(uint32_t number, uint64_t time)
{
	struct buf b = {0};

	buf_put_u32(&b, number);
	buf_put_u32(&b, 0);
	buf_put_u64(&b, time);
	packet(4, &b);
	buf_release(&b);
}

static void steps(const uint32_t *words, size_t n)
{
	struct buf b = {0};

	for (size_t i = 0; i < n; i++) {
		buf_put_u32(&b, words[i]);
		n_steps += !(words[i] & AGAIN);
	}
	packet(5, &b);
	buf_release(&b);
}
#define STEPS(...)                                                                                 \
	steps((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void mark(uint32_t kind, int64_t a, int64_t b, int64_t c, const char *text)
{
	struct buf p = {0};

	buf_put_u32(&p, kind);
	buf_put_u32(&p, 0);
	buf_put_u64(&p, (uint64_t)a);
	buf_put_u64(&p, (uint64_t)b);
	buf_put_u64(&p, (uint64_t)c);
	buf_put_cstr(&p, text);
	packet(6, &p);
	buf_release(&p);
	n_marks++;
}

static void data_access(uint64_t addr, uint8_t how, uint8_t n, const char *value)
{
	struct buf b = {0};

	buf_put_u64(&b, addr);
	buf_put_u8(&b, how);
	buf_put_u8(&b, n);
	buf_put_u8(&b, value != NULL);
	for (int i = 0; i < 5; i++)
		buf_put_u8(&b, 0);
	if (value)
		buf_put(&b, value, n);
	packet(7, &b);
	buf_release(&b);
	n_accesses++;
}

static void end(void)
{
	struct buf b = {0};

	buf_put_u64(&b, n_steps);
	buf_put_u64(&b, n_marks);
	buf_put_u64(&b, n_accesses);
	buf_put_u32(&b, n_codes);
	buf_put_u32(&b, n_threads);
	packet(8, &b);
	buf_release(&b);
}

#endif
