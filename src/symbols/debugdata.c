/* SPDX-License-Identifier: MIT */
#include <lzma.h>

#include "symbols/elf_tables.h"

#define DEBUGDATA_BYTES_MAX	((size_t)512 << 20) /* uncompressed */
#define DEBUGDATA_RATIO_MAX	64		    /* symbol tables shrink by 5 to 10 */
#define DEBUGDATA_SLACK_BYTES	((size_t)1 << 20)   /* allowed whatever the ratio */
#define DEBUGDATA_XZ_MEMORY_MAX ((uint64_t)128 << 20)
#define STEP_BYTES		65536

static const char *xz_problem(lzma_ret rc)
{
	switch (rc) {
	case LZMA_MEMLIMIT_ERROR:
		return "needs too much memory";
	case LZMA_FORMAT_ERROR:
		return "is not in xz format";
	case LZMA_OPTIONS_ERROR:
		return "uses xz options that are not known";
	case LZMA_BUF_ERROR:
		return "is cut short";
	default:
		return "is damaged";
	}
}

static int decode(lzma_stream *xz, struct buf *out, size_t max_bytes, struct err *err)
{
	uint8_t step[STEP_BYTES];
	size_t start = out->n;
	lzma_ret rc = LZMA_OK;

	while (rc == LZMA_OK) {
		xz->next_out = step;
		xz->avail_out = sizeof(step);
		rc = lzma_code(xz, LZMA_FINISH);
		if (rc != LZMA_OK && rc != LZMA_STREAM_END)
			break;
		buf_put(out, step, sizeof(step) - xz->avail_out);
		if (out->n - start > max_bytes)
			return err_set(err, ERR_LIMIT, ".gnu_debugdata is larger than %zu bytes",
				max_bytes);
	}
	return rc == LZMA_STREAM_END ? 0 : err_set(err, ERR_FORMAT, ".gnu_debugdata %s", xz_problem(rc));
}

int debugdata_read(const struct elf_file *elf, struct buf *out, struct err *err)
{
	const struct elf_section *s = elf_file_find_section(elf, ".gnu_debugdata");
	struct span in = s ? elf_file_section_bytes(elf, s) : (struct span){NULL, 0};
	size_t max_bytes = DEBUGDATA_BYTES_MAX;
	lzma_stream xz = LZMA_STREAM_INIT;
	int rc;

	if (!in.n)
		return err_set(err, ERR_NOT_FOUND, "has no .gnu_debugdata");
	if (in.n < max_bytes / DEBUGDATA_RATIO_MAX - DEBUGDATA_SLACK_BYTES)
		max_bytes = in.n * DEBUGDATA_RATIO_MAX + DEBUGDATA_SLACK_BYTES;
	if (lzma_stream_decoder(&xz, DEBUGDATA_XZ_MEMORY_MAX, 0) != LZMA_OK)
		return err_set(err, ERR_FAILED, ".gnu_debugdata: the xz decoder does not start");
	xz.next_in = in.p;
	xz.avail_in = in.n;
	rc = decode(&xz, out, max_bytes, err);
	lzma_end(&xz);
	return rc;
}
