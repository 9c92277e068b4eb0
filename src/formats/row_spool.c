/* SPDX-License-Identifier: MIT */
#include "formats/row_spool.h"

#include <errno.h>

/* A lane keeps fewer bytes than this in memory. */
#define LANE_BYTES_MAX (256 * 1024)

void row_spool_init(struct row_spool *s, size_t row_numbers)
{
	*s = (struct row_spool){.row_numbers = row_numbers};
}

void row_spool_release(struct row_spool *s)
{
	for (size_t i = 0; i < s->lanes.n; i++) {
		buf_release(&s->lanes.v[i].rows);
		vec_release(&s->lanes.v[i].blocks);
	}
	vec_release(&s->lanes);
	if (s->file)
		fclose(s->file);
}

static void put_away(struct row_spool *s, struct row_lane *lane)
{
	struct row_block block = {.n = lane->rows.n};

	if (!s->file)
		s->file = tmpfile();
	if (!s->file || fseek(s->file, 0, SEEK_END) != 0 || (block.offset = ftell(s->file)) < 0 ||
		fwrite(lane->rows.p, 1, block.n, s->file) != block.n) {
		s->is_broken = true;
		buf_reset(&lane->rows);
		return;
	}
	vec_push(&lane->blocks, block);
	buf_reset(&lane->rows);
}

void row_spool_put(struct row_spool *s, uint32_t lane, const uint64_t *numbers)
{
	struct row_lane *to;

	vec_ensure_zero(&s->lanes, lane + (size_t)1);
	to = &s->lanes.v[lane];
	buf_put_uleb_row(&to->rows, numbers, s->row_numbers);
	to->n_rows++;
	if (to->rows.n >= LANE_BYTES_MAX)
		put_away(s, to);
}

uint64_t row_spool_n_rows(const struct row_spool *s, uint32_t lane)
{
	return lane < s->lanes.n ? s->lanes.v[lane].n_rows : 0;
}

int row_spool_check(const struct row_spool *s, struct err *err)
{
	return s->is_broken ? err_set(err, ERR_FAILED,
				      "the folder of temporary files has no room for the samples")
			    : 0;
}

void row_reader_open(struct row_reader *r, struct row_spool *s, uint32_t lane)
{
	*r = (struct row_reader){.spool = s, .lane = lane < s->lanes.n ? &s->lanes.v[lane] : NULL};
}

/* The blocks of the file, then what is in memory. */
static bool next_block(struct row_reader *r)
{
	const struct row_block *block;

	if (!r->lane || r->block_i > r->lane->blocks.n)
		return false;
	if (r->block_i == r->lane->blocks.n) {
		r->block_i++;
		r->left = buf_span(&r->lane->rows);
		return r->left.n > 0;
	}
	block = &r->lane->blocks.v[r->block_i++];
	buf_reset(&r->block);
	if (fseek(r->spool->file, block->offset, SEEK_SET) != 0 ||
		fread(buf_put_zeros(&r->block, block->n), 1, block->n, r->spool->file) !=
			block->n) {
		r->spool->is_broken = true;
		return false;
	}
	r->left = buf_span(&r->block);
	return true;
}

static uint64_t take_number(struct span *from)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; from->n; shift += 7) {
		uint8_t byte = *from->p;

		from->p++;
		from->n--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return value;
}

bool row_reader_next(struct row_reader *r, uint64_t *numbers)
{
	if (!r->left.n && !next_block(r))
		return false;
	for (size_t i = 0; i < r->spool->row_numbers; i++)
		numbers[i] = take_number(&r->left);
	return true;
}

void row_reader_close(struct row_reader *r)
{
	buf_release(&r->block);
}
