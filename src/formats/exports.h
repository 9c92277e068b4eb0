/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of other tools. What is wrong with `out` the caller finds by ferror(). */
#ifndef WEIR_FORMATS_EXPORTS_H
#define WEIR_FORMATS_EXPORTS_H

#include <stdio.h>

#include "base/err.h"
#include "calltree/build.h"

/*
 * The profile format of callgrind, version 1, as callgrind_annotate and KCachegrind read it. Counts
 * of blocks go to their source lines, and calls are by function; of other traces the call tree is
 * written, by the metric of the profile.
 */
int export_callgrind(const struct profile *profile, FILE *out, struct err *err);

/*
 * Folded stacks, one line a call path: "comm;outer;...;inner COUNT". The count is the base of the
 * path in the profile's metric; paths without base have no line. Where samples hang below events
 * their part is taken out of the event's base, so that all add up. Threads of the same name are
 * added up. The middle of a path of more than 1024 names is left out. ';' and line ends in names
 * become ':' and blanks. Does not fail.
 */
int export_folded(const struct profile *profile, FILE *out, struct err *err);

/* Coverage as lcov's tools read it (genhtml, lcov --summary, editors): a tracefile of geninfo(1).
 * Fails when the trace has no counts of blocks, or none with source lines. */
int export_lcov(const struct profile *profile, FILE *out, struct err *err);

/* The profile format of the pprof tools: a gzipped protobuf message (profile.proto). Samples keep
 * their addresses, images and lines; a trace with events alone is exported from its tree, without
 * addresses. */
int export_pprof(const struct profile *profile, FILE *out, struct err *err);

/* OTLP profiles (ProfilesData) in the numbering of opentelemetry-proto 1.10, as a collector takes them: of a trace
 * with samples those, else the call tree. */
int export_otlp(const struct profile *profile, FILE *out, struct err *err);
#define OTLP_POST_PATH	  "/v1development/profiles" /* of collectors */
#define OTLP_CONTENT_TYPE "application/x-protobuf"

/*
 * Formats with a time line. What is in them of samples is in the metric of the profile. Counts and trees that were
 * kept in the program have no times: speedscope and Firefox get their call paths, each as one sample.
 */

/* speedscope: samples and, to the nanosecond, calls of each thread. */
int export_speedscope(const struct profile *profile, FILE *out, struct err *err);

/* A processed profile of Firefox Profiler, version 66, gzipped: samples of each thread with their times; calls,
 * waits, losses and ends of threads as markers. */
int export_firefox(const struct profile *profile, FILE *out, struct err *err);

/* A Perfetto trace of track events and perf samples, to the nanosecond. Fails for a profile without times. */
int export_perfetto(const struct profile *profile, FILE *out, struct err *err);

/* Chrome's trace events as JSON. Fails for a profile without times. */
int export_chrome(const struct profile *profile, FILE *out, struct err *err);

#endif
