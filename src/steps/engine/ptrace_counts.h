/* SPDX-License-Identifier: MIT */
/* 32-bit programs of `weir count`: single steps in the translator's loop (translate/tracer.h), as counts. */
#ifndef WEIR_STEPS_ENGINE_PTRACE_COUNTS_H
#define WEIR_STEPS_ENGINE_PTRACE_COUNTS_H

#include "translate/tracer.h"

extern const struct translate_stepper ptrace_stepper;

#endif
