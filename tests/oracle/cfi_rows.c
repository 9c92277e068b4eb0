/* SPDX-License-Identifier: MIT */
/*
 * cfi_rows FILE: for each hexadecimal address on standard input, the rule there in the words of
 * `readelf -wF`: "CFA reg=where ...", or "none".
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "dwarf/cfi_rule.h"
#include "dwarf/cfi_table.h"

static const char *const names_64[CPU_N_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp",
	"rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ra"};
static const char *const names_32[CPU_N_REGS] = {"eax", "edx", "ecx", "ebx", "esi", "edi", "ebp",
	"esp", "?", "?", "?", "?", "?", "?", "?", "?", "ra"};

/* The register's DWARF number. */
static int number_of(int reg, const char *const *names)
{
	static const int of_386[] = {0, 2, 1, 3, 6, 7, 5, 4};

	return names == names_32 && reg < 8 ? of_386[reg] : reg;
}

static void print_place(const struct cfi_place *p, const char *const *names)
{
	switch (p->how) {
	case CFI_HOW_UNDEFINED: /* readelf has one letter for it and for registers not mentioned */
		return;
	case CFI_HOW_AT_OFFSET:
		printf(" %s=c%+d", names[p->reg], p->value);
		return;
	case CFI_HOW_IS_OFFSET:
		printf(" %s=v%+d", names[p->reg], p->value);
		return;
	case CFI_HOW_REGISTER:
		printf(" %s=r%d", names[p->reg], number_of(p->value, names));
		return;
	default:
		printf(" %s=%s", names[p->reg], p->how == CFI_HOW_AT_EXPR ? "exp" : "vexp");
	}
}

static void print_rule(const struct cfi_rule *rule, const char *const *names)
{
	if (!rule) {
		puts("none");
		return;
	}
	if (rule->cfa_reg == CFI_CFA_EXPR)
		printf("exp");
	else if (rule->cfa_reg < CPU_N_REGS)
		printf("%s%+d", names[rule->cfa_reg], rule->cfa_value);
	else
		printf("?");
	for (int i = 0; i < rule->n_places; i++)
		print_place(&rule->places[i], names);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct file_map file;
	struct elf_file elf;
	struct err err;
	struct cfi_table *t;
	unsigned long long addr;

	if (argc != 2 || file_map_open(&file, argv[1], &err) < 0 ||
		elf_file_init(&elf, file.bytes, &err) < 0) {
		fprintf(stderr, "usage: cfi_rows FILE <ADDRESSES\n");
		return 2;
	}
	t = cfi_table_new(&elf);
	while (scanf("%llx", &addr) == 1)
		print_rule(cfi_table_find(t, (struct iaddr){addr}),
			elf.machine == EM_386 ? names_32 : names_64);
	cfi_table_free(t);
	elf_file_release(&elf);
	file_map_release(&file);
	return 0;
}
