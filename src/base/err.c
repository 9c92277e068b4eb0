/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	int n;

	if (!err)
		return ERR_FAILED;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
	return err->code;
}

int err_sys(struct err *err, int errnum, const char *fmt, ...)
{
	int code = ERR_FAILED;
	va_list ap;
	int n;

	if (errnum == ENOENT || errnum == ESRCH)
		code = ERR_NOT_FOUND;
	else if (errnum == EACCES || errnum == EPERM)
		code = ERR_PERMISSION;
	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", strerror(errnum));
	return code;
}
