/* SPDX-License-Identifier: MIT */
/* What a perf.data says of the machine, the command and the files, in sections or in records. */
#ifndef WEIR_PERFDATA_PERF_FEATURES_H
#define WEIR_PERFDATA_PERF_FEATURES_H

#include <stdint.h>

#include "base/map.h"
#include "base/span.h"
#include "perfdata/perf_events.h"
#include "symbols/image_identity.h"
#include "trace/defs.h"

#define PERF_BUILD_IDS_MAX ((size_t)1 << 20)

struct perf_build_id {
	char *path; /* of the file that has it; owned */
	uint8_t n, bytes[BUILD_ID_MAX];
};

/* Zero-initialise it. Texts are owned; NULL: not known, as 0 is of numbers. */
struct perf_features {
	char *host, *os_release, *machine, *cpu, *command;
	uint32_t n_cpus;
	uint64_t first_ns, last_ns; /* of the samples */
	bool has_clock;
	uint32_t clock_id;
	uint64_t wall_ns,
		clock_ns; /* the same moment, by the wall's clock and that of the samples */
	VEC(struct perf_build_id) build_ids;
	struct map by_path;	      /* hash of a path -> index + 1 */
	struct image_identity kernel; /* that was recorded */
};
void perf_features_init(struct perf_features *f);
void perf_features_release(struct perf_features *f);

/* What a section, or the body of a record, has; others than those that are of use are passed over. False: it makes no
 * sense. Names of events go to `events`. */
bool perf_features_take(
	struct perf_features *f, uint64_t feature, struct span bytes, struct perf_events *events);
/* The body of a build-id record, with the `misc` of its header. */
bool perf_features_take_build_id(struct perf_features *f, uint16_t misc, struct span body);
/* A mapping of the kernel says where it was loaded. */
void perf_features_take_kernel(struct perf_features *f, const char *name, uint64_t address);
/* Empty: not known. */
struct span perf_features_build_id(const struct perf_features *f, const char *path);

#endif
