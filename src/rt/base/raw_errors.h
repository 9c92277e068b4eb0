/* SPDX-License-Identifier: MIT */
#ifndef WEIR_RT_BASE_RAW_ERRORS_H
#define WEIR_RT_BASE_RAW_ERRORS_H

/* Errors of system calls that are looked at, or said to the tool outside: the kernel's numbers. */
#define RAW_EPERM	 1
#define RAW_ENOENT	 2
#define RAW_ESRCH	 3
#define RAW_EINTR	 4
#define RAW_EIO		 5
#define RAW_EAGAIN	 11
#define RAW_ENOMEM	 12
#define RAW_EACCES	 13
#define RAW_EFAULT	 14
#define RAW_EBUSY	 16
#define RAW_EEXIST	 17
#define RAW_ENOTDIR	 20
#define RAW_EISDIR	 21
#define RAW_EINVAL	 22
#define RAW_EMFILE	 24
#define RAW_EFBIG	 27
#define RAW_ENOSPC	 28
#define RAW_EROFS	 30
#define RAW_EPIPE	 32
#define RAW_ENAMETOOLONG 36
#define RAW_ENOSYS	 38
#define RAW_EOPNOTSUPP	 95
#define RAW_ECONNREFUSED 111
#define RAW_EDQUOT	 122

#endif
