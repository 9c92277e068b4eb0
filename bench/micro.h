/* SPDX-License-Identifier: MIT */
/* The micro-benchmarks: each prints lines "NAME<tab>VALUE<tab>UNIT<tab>REMARK". */
#ifndef WEIR_BENCH_MICRO_H
#define WEIR_BENCH_MICRO_H

/* The smallest of this many rounds counts. */
#define MICRO_ROUNDS 5

void micro_print(const char *name, double value, const char *unit, const char *remark_fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Says why and ends: a benchmark of something that went wrong is worse than none. */
void micro_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void micro_unwind(void);	       /* walks stacks of this very process */
void micro_trace(const char *path);    /* writes a trace of 1 M samples there, reads it, builds */
void micro_image(const char *path);    /* tables of one ELF file */
void micro_kallsyms(const char *path); /* names of the kernel */

#endif
