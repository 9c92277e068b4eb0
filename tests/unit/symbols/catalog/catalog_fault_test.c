/* SPDX-License-Identifier: MIT */
/* The merged symbol file when the power is cut or the system says no, in the middle of a change. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog_maker.h"
#include "check.h"

static struct err err;

/* --- power cuts --- */

#define OPS_MAX	    64
#define PIECE_BYTES 64

/* What a change did to the file, in order. */
static struct op {
	bool is_sync;
	uint64_t offset;
	struct buf bytes;
} ops[OPS_MAX];
static size_t n_ops;

static ssize_t log_write(int fd, const void *p, size_t n, off_t offset)
{
	if (n_ops == OPS_MAX) {
		errno = EIO;
		return -1;
	}
	ops[n_ops] = (struct op){.offset = (uint64_t)offset};
	buf_put(&ops[n_ops++].bytes, p, n);
	return pwrite(fd, p, n, offset);
}

static int log_sync(int fd)
{
	(void)fd;
	ops[n_ops++] = (struct op){.is_sync = true};
	return 0;
}

static const struct catalog_io logging_io = {log_write, log_sync, rename};

static void release_ops(void)
{
	for (size_t i = 0; i < n_ops; i++)
		buf_release(&ops[i].bytes);
	n_ops = 0;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Puts each piece of the write onto the disk, or not. Real disks write sectors as a whole; smaller
 * pieces are harder to survive. */
static void put_pieces(struct buf *disk, const struct op *op, unsigned permille)
{
	for (size_t at = 0; at < op->bytes.n; at += PIECE_BYTES) {
		size_t n = op->bytes.n - at < PIECE_BYTES ? op->bytes.n - at : PIECE_BYTES;

		if (next_random() % 1000 >= permille)
			continue;
		while (disk->n < op->offset + at + n)
			buf_put_u8(disk, 0);
		memcpy(disk->p + op->offset + at, op->bytes.p + at, n);
	}
}

/* The disk after a power cut behind the first `n_done` operations: what was synced is there, of the
 * rest some pieces. */
static void cut_power(struct buf *disk, struct span before, size_t n_done, bool trust_syncs)
{
	size_t synced = 0;

	buf_reset(disk);
	buf_put(disk, before.p, before.n);
	for (size_t i = 0; i < n_done; i++)
		if (ops[i].is_sync && trust_syncs)
			synced = i;
	for (size_t i = 0; i < n_done; i++)
		if (!ops[i].is_sync)
			put_pieces(disk, &ops[i],
				i < synced ? 1000 : (unsigned)(next_random() % 4 * 333));
}

/* Cuts the power everywhere in the change from 3 to 6 images. Returns how often the state was
 * neither the old nor the new one, or the old one although the change was durable. */
static int cut_power_everywhere(struct span before, bool trust_syncs)
{
	struct buf disk = {0};
	int n_bad = 0;

	for (size_t n_done = 0; n_done <= n_ops; n_done++) {
		for (int i = 0; i < 150; i++) {
			struct catalog *c;
			bool is_old, is_new;

			cut_power(&disk, before, n_done, trust_syncs);
			if (catalog_open_bytes(&c, buf_span(&disk), "disk", &err) < 0) {
				n_bad++;
				continue;
			}
			is_old = has_exactly(c, 3);
			is_new = has_exactly(c, 6);
			n_bad += !(is_new || (is_old && n_done < n_ops));
			catalog_close(c);
		}
	}
	buf_release(&disk);
	return n_bad;
}

static void test_power_cut(void)
{
	struct buf before = {0};

	for (uint32_t k = 0; k < 3; k++)
		CHECK_EQ(made_apply("power.wsym", k, 1, 0, &err), 0);
	read_whole("power.wsym", &before);
	catalog_set_io(&logging_io);
	CHECK_EQ(made_apply("power.wsym", 3, 3, 0, &err), 0);
	catalog_set_io(NULL);
	CHECK(n_ops >= 4 && ops[n_ops - 1].is_sync && ops[n_ops - 3].is_sync);
	for (size_t i = 0; i < n_ops; i++)
		CHECK(ops[i].is_sync || ops[i].offset >= before.n ||
			(ops[i].offset % 4096 == 0 && ops[i].bytes.n == 512));
	CHECK_EQ(cut_power_everywhere(buf_span(&before), true), 0);
	/* The check itself: a disk that ignores syncs must be seen to lose images. */
	CHECK(cut_power_everywhere(buf_span(&before), false) > 0);
	release_ops();
	buf_release(&before);
}

/* --- failing calls --- */

/* This many calls go through, the next one fails (a write: is short, with is_short), then all go
 * through again. */
static int calls_left, failure;
static bool is_short;

static bool may_go_on(void)
{
	return calls_left-- != 0;
}

static ssize_t failing_write(int fd, const void *p, size_t n, off_t offset)
{
	if (may_go_on())
		return pwrite(fd, p, n, offset);
	if (is_short && n > 1)
		return pwrite(fd, p, n / 2, offset);
	errno = failure;
	return -1;
}

static int failing_sync(int fd)
{
	if (may_go_on())
		return fdatasync(fd);
	errno = failure;
	return -1;
}

static int failing_rename(const char *from, const char *to)
{
	if (may_go_on())
		return rename(from, to);
	errno = failure;
	return -1;
}

static const struct catalog_io failing_io = {failing_write, failing_sync, failing_rename};

static void test_failing_calls(void)
{
	struct stat before, after;
	int n_failed = 0, rc;

	failure = ENOSPC;
	for (int n = 0; n < 10; n++) {
		unlink("fail.wsym");
		CHECK_EQ(made_apply("fail.wsym", 0, 3, 0, &err), 0);
		CHECK_EQ(stat("fail.wsym", &before), 0);
		calls_left = n;
		catalog_set_io(&failing_io);
		rc = made_apply("fail.wsym", 3, 3, 0, &err);
		catalog_set_io(NULL);
		CHECK_EQ(stat("fail.wsym", &after), 0);
		if (rc < 0) {
			n_failed++;
			CHECK(strstr(err.text, "fail.wsym': cannot write") != NULL);
			CHECK(strstr(err.text, "No space left on device") != NULL);
		}
		/* Only the sync of the new root comes too late to say that nothing happened. */
		CHECK(file_has_exactly("fail.wsym", rc < 0 && n < 3 ? 3 : 6));
		CHECK(n >= 2 || after.st_size == before.st_size);
		CHECK_EQ(made_apply("fail.wsym", 3, 4, 0, &err), 0);
		CHECK(file_has_exactly("fail.wsym", 7));
	}
	CHECK_EQ(n_failed, 4); /* body, sync, root, sync */
}

static void test_failing_replacement(void)
{
	int n_failed = 0, rc;

	failure = EIO;
	for (int n = 0; n < 10; n++) {
		unlink("fail2.wsym");
		calls_left = n;
		catalog_set_io(&failing_io);
		rc = made_apply("fail2.wsym", 0, 3, 0, &err);
		catalog_set_io(NULL);
		CHECK_EQ(access("fail2.wsym", F_OK) == 0, rc == 0);
		CHECK(access("fail2.wsym.new", F_OK) < 0);
		n_failed += rc < 0;

		CHECK_EQ(made_apply("fail2.wsym", 0, 3, 1, &err), 0);
		CHECK_EQ(made_apply("fail2.wsym", 0, 3, 0, &err), 0);
		calls_left = n;
		catalog_set_io(&failing_io);
		rc = catalog_compact("fail2.wsym", &err);
		catalog_set_io(NULL);
		CHECK(file_has_exactly("fail2.wsym", 3));
		CHECK(access("fail2.wsym.new", F_OK) < 0);
		n_failed += rc < 0;
	}
	CHECK_EQ(n_failed, 10); /* body, sync, root, sync, rename; twice */
}

static void test_short_writes(void)
{
	is_short = true;
	for (int n = 0; n < 4; n += 2) { /* the body, the root */
		unlink("short.wsym");
		CHECK_EQ(made_apply("short.wsym", 0, 3, 0, &err), 0);
		calls_left = n;
		catalog_set_io(&failing_io);
		CHECK_EQ(made_apply("short.wsym", 3, 3, 0, &err), 0);
		catalog_set_io(NULL);
		CHECK(calls_left < 0);
		CHECK(file_has_exactly("short.wsym", 6));
	}
	is_short = false;
}

int main(void)
{
	static const struct test tests[] = {
		{"a power cut at any point gives the old or the new state", test_power_cut},
		{"a failing call leaves the old state and no longer file", test_failing_calls},
		{"a failing call leaves no half file when one is created or replaced",
			test_failing_replacement},
		{"short writes are continued", test_short_writes},
	};

	return RUN_TESTS(tests);
}
