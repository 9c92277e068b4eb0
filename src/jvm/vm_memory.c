/* SPDX-License-Identifier: MIT */
#include "jvm/vm_memory.h"

#define PAGE_BYTES 4096

bool vm_read(const struct vm_memory *m, uint64_t addr, void *to, size_t n)
{
	struct span found;

	if (m->pid)
		return proc_read_memory(m->pid, addr, to, n);
	found = span_sub(m->bytes, addr - m->base, n);
	if (!found.p)
		return false;
	memcpy(to, found.p, n);
	return true;
}

bool vm_read_u64(const struct vm_memory *m, uint64_t addr, uint64_t *to)
{
	return vm_read(m, addr, to, sizeof(*to));
}

bool vm_read_u32(const struct vm_memory *m, uint64_t addr, uint32_t *to)
{
	return vm_read(m, addr, to, sizeof(*to));
}

bool vm_read_parts(const struct vm_memory *m, struct proc_part *parts, size_t n)
{
	if (m->pid)
		return proc_read_parts(m->pid, parts, n);
	for (size_t i = 0; i < n; i++)
		parts[i].is_read = vm_read(m, parts[i].addr, parts[i].to, parts[i].bytes);
	return true;
}

/* Of the library's constants, which are in its file. */
static const char *constant_text(const struct vm_memory *m, uint64_t addr, size_t max)
{
	if (!m->elf)
		return NULL;
	return span_short_cstr(elf_file_bytes_at(m->elf, (struct iaddr){addr - m->bias}), 0, max);
}

bool vm_read_text(const struct vm_memory *m, uint64_t addr, char *to, size_t bytes)
{
	const char *constant = constant_text(m, addr, bytes);
	size_t n = 0;

	if (constant) {
		memcpy(to, constant, strlen(constant) + 1);
		return true;
	}
	while (n < bytes - 1) {
		size_t some = PAGE_BYTES - (addr + n) % PAGE_BYTES;
		char *end;

		some = some < 64 ? some : 64;
		some = some < bytes - 1 - n ? some : bytes - 1 - n;
		if (!vm_read(m, addr + n, to + n, some))
			return false;
		end = memchr(to + n, 0, some);
		if (end)
			return true;
		n += some;
	}
	to[n] = 0;
	return true;
}
