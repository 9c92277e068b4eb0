/* SPDX-License-Identifier: MIT */
/*
 * A failure is a negative code and one sentence with subject and place, written by whoever
 * discovered it; callers put context in front.
 */
#ifndef WEIR_BASE_ERR_H
#define WEIR_BASE_ERR_H

enum err_code {
	ERR_FAILED = -1,      /* the operating system or the request said no */
	ERR_FORMAT = -2,      /* bytes from outside are not what they claim to be */
	ERR_NOT_FOUND = -3,   /* the thing asked for is not there */
	ERR_PERMISSION = -4,  /* it is there, but not for us */
	ERR_LIMIT = -5,	      /* a stated maximum would be passed */
	ERR_UNSUPPORTED = -6, /* valid, but not known to this version or machine */
	ERR_CHANGED = -7      /* somebody else changed it meanwhile: try again */
};

struct err {
	int code;	/* enum err_code, 0 when nothing failed */
	char text[600]; /* one sentence, no newline */
};

/* Writes the sentence and returns `code`, so that `return err_set(...)` reads well. `err` may be
 * NULL when the caller only wants the code. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "CONTEXT: " in front of the sentence and returns the code that is already there. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The sentence for a failed system call: "SUBJECT: WHAT: strerror(errnum)". The code follows from
 * errnum (ENOENT, ESRCH -> not found; EACCES, EPERM -> permission). */
int err_sys(struct err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
