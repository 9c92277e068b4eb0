/* SPDX-License-Identifier: MIT */
/* The numbers of perf.data: what perf adds to the records of the kernel (perf_event_open(2)). */
#ifndef WEIR_PERFDATA_PERF_LAYOUT_H
#define WEIR_PERFDATA_PERF_LAYOUT_H

#define PERF_MAGIC	    "PERFILE2"
#define PERF_MAGIC_SWAPPED  "2ELIFREP" /* of a machine with the other byte order */
#define PERF_MAGIC_OLD	    "PERFFILE" /* before Linux 3.1 */
#define PERF_MAGIC_BYTES    8
#define PERF_PIPE_HEADER    16	/* bytes: magic, size; everything else is in records */
#define PERF_FILE_HEADER    104 /* magic, size, size of an attribute, four parts of the file */
#define PERF_FEATURES_MAX   256 /* bits of the header */
#define PERF_BUILD_ID_BYTES 20

/* Records of perf's own; those of the kernel have lower numbers. */
enum perf_record {
	PERF_USER_FIRST = 64,
	PERF_USER_ATTR = 64,
	PERF_USER_EVENT_TYPE = 65,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_BUILD_ID = 67,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_AUXTRACE_ERROR = 72,
	PERF_USER_EVENT_UPDATE = 78,
	PERF_USER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_COMPRESSED2 = 83,
	PERF_USER_LAST = 86
};
#define PERF_KERNEL_TEXT_POKE 20
#define PERF_KERNEL_LAST      22 /* the kinds of the kernel that are known */
#define PERF_KERNEL_DEFERRED  22 /* the program's part of a call chain, later */

#define PERF_UPDATE_NAME 2 /* of an EVENT_UPDATE */

enum perf_feature {
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_N_CPUS = 7,
	PERF_FEATURE_CPU = 8,
	PERF_FEATURE_COMMAND = 11,
	PERF_FEATURE_EVENTS = 12,
	PERF_FEATURE_SAMPLE_TIME = 21,
	PERF_FEATURE_CLOCK = 29
};

#endif
