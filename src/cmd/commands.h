/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CMD_COMMANDS_H
#define WEIR_CMD_COMMANDS_H

#include "cmd/options.h"

extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_view;
extern const struct command command_diff;
extern const struct command command_import;
extern const struct command command_export;
extern const struct command command_symbols;
extern const struct command command_count;
extern const struct command command_insert;
extern const struct command command_probe;
extern const struct command command_steps;
extern const struct command command_doctor;
extern const struct command command_help;

/* Whether the program, called by this name, is the linker of `weir count`: ld, ld.gold, ... */
bool is_linker_name(const char *path);
/* The linker: argv as a linker has it. */
int count_link_main(int argc, char **argv);
/* weir called by the name of a compiler driver: that driver, with our linkers in front of others. */
bool is_driver_name(const char *path);
int count_driver_main(char **argv);
/* weir called by gcc's plug-in of the linker, in the place of lto-wrapper. */
bool is_lto_wrapper_name(const char *path);
int count_lto_main(char **argv);

/* weir called by the name that it has on another machine: the far side of --host. */
bool is_agent_name(const char *path);
int agent_main(void);

/* Opens the trace and writes its summary to a stream. */
int report_summary(const char *trace_path, FILE *out, struct err *err);

/* `weir -- CMD ARGS`: record, then the summary on stderr. */
int run_and_report(int argc, char **argv);

#endif
