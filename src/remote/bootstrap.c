/* SPDX-License-Identifier: MIT */
#include "remote/bootstrap.h"

__asm__(".section .rodata\nbootstrap_sh:\n.incbin \"src/remote/bootstrap.sh\"\nbootstrap_sh_end:\n.byte 0\n.previous\n");
extern const uint8_t bootstrap_sh[], bootstrap_sh_end[];

void bootstrap_write(struct buf *to, const struct agent_files *files, const char *nonce, bool keep)
{
	buf_printf(to, "weir_nonce=%s weir_hash=%s weir_keep=%d weir_bytes=%zu\nweir_sums='", nonce,
		files->hash, keep, files->bytes.n);
	for (size_t i = 0; i < files->v.n; i++)
		buf_printf(to, "%s  %s\n", files->v.v[i].sum, files->v.v[i].name);
	buf_printf(to, "'\nweir_unpack() {\n");
	for (size_t i = 0; i < files->v.n; i++) {
		buf_printf(to, "weir_part %zu %zu ", files->v.v[i].first, files->v.v[i].n_blocks);
		buf_put_shell_word(to, files->v.v[i].name);
		buf_printf(to, "\n");
	}
	buf_printf(to, "}\n");
	buf_put(to, bootstrap_sh, (size_t)(bootstrap_sh_end - bootstrap_sh));
}
