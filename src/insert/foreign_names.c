/* SPDX-License-Identifier: MIT */
/*
 * Names of the C library, its start-up code and the run-time libraries of compilers. The tables are
 * in byte order, for bsearch.
 */
#include "insert/foreign_names.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

static const char *const twice_names[] = {"__getcontext", "__sigsetjmp", "__sigsetjmp_cancel",
	"__vfork", "_setjmp", "getcontext", "savectx", "setjmp", "sigsetjmp", "swapcontext",
	"vfork"};

static const char *const cutting_names[] = {"_Fork", "__fork", "__getcontext", "__libc_fork",
	"__sigsetjmp", "__sigsetjmp_cancel", "__vfork", "_setjmp", "fork", "getcontext",
	"pthread_kill", "raise", "savectx", "setjmp", "sigsetjmp", "swapcontext", "vfork"};

static const char *const skipping_names[] = {
	"__morestack", "__morestack_large_model", "__morestack_non_split"};

/* Those above are among them. */
static const char *const untimed_names[] = {"_Exit", "_Fork", "_ITM_deregisterTMCloneTable",
	"_ITM_registerTMCloneTable", "___tls_get_addr", "__assert", "__assert_fail",
	"__assert_perror_fail", "__chk_fail", "__clone", "__cxa_finalize", "__deregister_frame",
	"__deregister_frame_info", "__fentry__", "__fortify_fail", "__getcontext", "__gmon_start__",
	"__libc_csu_init", "__libc_fork", "__libc_init_first", "__libc_start_main", "__longjmp_chk",
	"__monstartup", "__morestack", "__morestack_large_model", "__morestack_non_split",
	"__pthread_register_cancel", "__pthread_unregister_cancel", "__pthread_unwind_next",
	"__register_frame", "__register_frame_info", "__restore_rt", "__rust_start_panic",
	"__sched_cpualloc", "__sched_cpufree", "__sigsetjmp", "__sigsetjmp_cancel",
	"__stack_chk_fail", "__tls_get_addr", "__vfork", "_dl_runtime_resolve", "_dl_start_user",
	"_dl_tlsdesc_return", "_exit", "_longjmp", "_mcleanup", "_mcount", "_pthread_cleanup_pop",
	"_pthread_cleanup_push", "_setjmp", "abort", "arch_prctl", "clone", "clone3", "err",
	"error", "error_at_line", "errx", "execl", "execle", "execlp", "execv", "execve",
	"execveat", "execvp", "execvpe", "exit", "fexecve", "fork", "getcontext", "longjmp",
	"makecontext", "mcount", "pthread_exit", "pthread_kill", "quick_exit", "raise", "savectx",
	"setcontext", "setjmp", "siglongjmp", "sigreturn", "sigsetjmp", "swapcontext", "thr_exit",
	"thrd_exit", "verr", "verrx", "vfork"};

static const char *const untimed_prefixes[] = {"_Unwind_", "__asan_", "__cxa_", "__gcov_",
	"__gxx_personality", "__hwasan_", "__llvm_", "__lsan_", "__msan_", "__sanitizer_",
	"__tsan_", "__ubsan_", "__x86_indirect_thunk", "__x86_return_thunk", "_mcount",
	"weir_count_"};

static const char *const jump_thunk_prefixes[] = {
	"__llvm_lvi_thunk_", "__llvm_retpoline_", "__x86_indirect_thunk_"};

/* operator new and delete, in all their forms. */
static const char *const short_prefixes[] = {"_Zda", "_Zdl", "_Zna", "_Znw"};

static const char *const short_names[] = {"_ZNSt6localeC1ERKS_", "_ZNSt6localeC1Ev",
	"_ZNSt6localeD1Ev", "_ZNSt8ios_baseC2Ev", "_ZNSt8ios_baseD2Ev", "__acos_finite",
	"__acosf_finite", "__acosh_finite", "__acoshf_finite", "__acoshl_finite", "__acosl_finite",
	"__asin_finite", "__asinf_finite", "__asinl_finite", "__atan2_finite", "__atan2f_finite",
	"__atan2l_finite", "__atanh_finite", "__atanhf_finite", "__atanhl_finite", "__cosh_finite",
	"__coshf_finite", "__coshl_finite", "__ctype_b_loc", "__ctype_get_mb_cur_max",
	"__ctype_tolower_loc", "__ctype_toupper_loc", "__cxa_atexit", "__errno_location",
	"__exp10_finite", "__exp10f_finite", "__exp10l_finite", "__exp2_finite", "__exp2f_finite",
	"__exp2l_finite", "__exp_finite", "__expf_finite", "__expl_finite", "__explicit_bzero_chk",
	"__finite", "__finitef", "__fmod_finite", "__fmodf_finite", "__fmodl_finite",
	"__fpclassify", "__fpclassifyf", "__hypot_finite", "__hypotf_finite", "__hypotl_finite",
	"__isinf", "__isinff", "__isnan", "__isnanf", "__isoc23_strtol", "__isoc23_strtoll",
	"__isoc23_strtoul", "__isoc23_strtoull", "__j0_finite", "__j0f_finite", "__j0l_finite",
	"__j1_finite", "__j1f_finite", "__j1l_finite", "__jn_finite", "__jnf_finite",
	"__jnl_finite", "__lgamma_r_finite", "__lgamma_rf_finite", "__lgamma_rl_finite",
	"__libc_current_sigrtmax", "__libc_current_sigrtmin", "__log10_finite", "__log10f_finite",
	"__log10l_finite", "__log2_finite", "__log2f_finite", "__log2l_finite", "__log_finite",
	"__logf_finite", "__logl_finite", "__memcpy_chk", "__memmove_chk", "__mempcpy_chk",
	"__memset_chk", "__pow_finite", "__powf_finite", "__powl_finite", "__pthread_key_create",
	"__rawmemchr", "__remainder_finite", "__remainderf_finite", "__remainderl_finite",
	"__scalb_finite", "__scalbf_finite", "__scalbl_finite", "__sched_cpucount", "__signbit",
	"__signbitf", "__sinh_finite", "__sinhf_finite", "__sinhl_finite", "__sqrt_finite",
	"__sqrtf_finite", "__sqrtl_finite", "__stpcpy", "__stpcpy_chk", "__stpncpy_chk",
	"__strcat_chk", "__strcpy_chk", "__strdup", "__strncat_chk", "__strncpy_chk", "__strndup",
	"__strtok_r", "__wcscpy_chk", "__wmemcpy_chk", "__xpg_basename", "__y0_finite",
	"__y0f_finite", "__y0l_finite", "__y1_finite", "__y1f_finite", "__y1l_finite",
	"__yn_finite", "__ynf_finite", "__ynl_finite", "_dl_find_object", "_obstack_newchunk",
	"abs", "acos", "acosf", "acosh", "acoshf", "acoshl", "acosl", "aligned_alloc", "asin",
	"asinf", "asinh", "asinhf", "asinhl", "asinl", "atan", "atan2", "atan2f", "atan2l", "atanf",
	"atanh", "atanhf", "atanhl", "atanl", "atexit", "atof", "atoi", "atol", "atoll",
	"atomic_thread_fence", "basename", "bcmp", "bcopy", "btowc", "bzero", "cabs", "cabsf",
	"cabsl", "calloc", "carg", "cargf", "cargl", "cbrt", "cbrtf", "cbrtl", "ccos", "ccosf",
	"ccosl", "ceil", "ceilf", "ceill", "cexp", "cexpf", "cexpl", "cfree", "cimag", "cimagf",
	"cimagl", "clearerr", "clock_gettime", "clog", "clogf", "clogl", "conj", "conjf", "conjl",
	"copysign", "copysignf", "copysignl", "cos", "cosf", "cosh", "coshf", "coshl", "cosl",
	"cpow", "cpowf", "cpowl", "creal", "crealf", "creall", "csin", "csinf", "csinl", "csqrt",
	"csqrtf", "csqrtl", "dirname", "div", "drand48", "erand48", "erf", "erfc", "erfcf", "erfcl",
	"erff", "erfl", "exp", "exp10", "exp10f", "exp10l", "exp2", "exp2f", "exp2l", "expf",
	"expl", "explicit_bzero", "expm1", "expm1f", "expm1l", "fabs", "fabsf", "fabsl", "fdim",
	"fdimf", "fdiml", "feof", "feof_unlocked", "ferror", "ferror_unlocked", "ffs", "ffsl",
	"ffsll", "fgetc_unlocked", "fileno", "fileno_unlocked", "finite", "floor", "floorf",
	"floorl", "fma", "fmaf", "fmal", "fmax", "fmaxf", "fmaxl", "fmin", "fminf", "fminl", "fmod",
	"fmodf", "fmodl", "fputc_unlocked", "free", "frexp", "frexpf", "frexpl", "getc_unlocked",
	"getchar_unlocked", "getenv", "gettimeofday", "htonl", "htons", "hypot", "hypotf", "hypotl",
	"ilogb", "ilogbf", "ilogbl", "index", "isalnum", "isalpha", "isascii", "isblank", "iscntrl",
	"isdigit", "isgraph", "isinf", "islower", "isnan", "isprint", "ispunct", "isspace",
	"isupper", "iswalnum", "iswalpha", "iswctype", "iswdigit", "iswlower", "iswprint",
	"iswpunct", "iswspace", "iswupper", "isxdigit", "j0", "j0f", "j0l", "j1", "j1f", "j1l",
	"jn", "jnf", "jnl", "jrand48", "labs", "ldexp", "ldexpf", "ldexpl", "ldiv", "lgamma",
	"lgamma_r", "lgamma_rf", "lgamma_rl", "lgammaf", "lgammal", "llabs", "lldiv", "llrint",
	"llrintf", "llrintl", "llround", "llroundf", "llroundl", "localeconv", "log", "log10",
	"log10f", "log10l", "log1p", "log1pf", "log1pl", "log2", "log2f", "log2l", "logb", "logbf",
	"logbl", "logf", "logl", "lrand48", "lrint", "lrintf", "lrintl", "lround", "lroundf",
	"lroundl", "malloc", "malloc_usable_size", "mblen", "mbrlen", "mbrtowc", "mbsinit",
	"mbtowc", "memalign", "memccpy", "memchr", "memcmp", "memcpy", "memmem", "memmove",
	"mempcpy", "memrchr", "memset", "modf", "modff", "modfl", "mrand48", "nan", "nanf", "nanl",
	"nearbyint", "nearbyintf", "nearbyintl", "nextafter", "nextafterf", "nextafterl",
	"nexttoward", "nexttowardf", "nexttowardl", "nl_langinfo", "nrand48", "ntohl", "ntohs",
	"obstack_free", "on_exit", "posix_memalign", "pow", "powf", "powl", "pthread_attr_destroy",
	"pthread_attr_init", "pthread_cond_broadcast", "pthread_cond_destroy", "pthread_cond_init",
	"pthread_cond_signal", "pthread_equal", "pthread_getspecific", "pthread_key_create",
	"pthread_mutex_destroy", "pthread_mutex_init", "pthread_mutex_lock",
	"pthread_mutex_trylock", "pthread_mutex_unlock", "pthread_mutexattr_destroy",
	"pthread_mutexattr_init", "pthread_mutexattr_settype", "pthread_rwlock_rdlock",
	"pthread_rwlock_unlock", "pthread_rwlock_wrlock", "pthread_self", "pthread_setspecific",
	"pthread_spin_lock", "pthread_spin_trylock", "pthread_spin_unlock", "putc_unlocked",
	"putchar_unlocked", "rand", "rand_r", "random", "rawmemchr", "realloc", "reallocarray",
	"remainder", "remainderf", "remainderl", "remquo", "remquof", "remquol", "rindex", "rint",
	"rintf", "rintl", "round", "roundeven", "roundevenf", "roundevenl", "roundf", "roundl",
	"scalb", "scalbf", "scalbl", "scalbln", "scalblnf", "scalblnl", "scalbn", "scalbnf",
	"scalbnl", "sched_getcpu", "secure_getenv", "sigaddset", "sigdelset", "sigemptyset",
	"sigfillset", "sigismember", "significand", "significandf", "significandl", "sin", "sincos",
	"sincosf", "sincosl", "sinf", "sinh", "sinhf", "sinhl", "sinl", "sqrt", "sqrtf", "sqrtl",
	"srand", "srand48", "srandom", "stpcpy", "stpncpy", "strcasecmp", "strcasestr", "strcat",
	"strchr", "strchrnul", "strcmp", "strcoll", "strcpy", "strcspn", "strdup", "strerror",
	"strerror_r", "strlcat", "strlcpy", "strlen", "strncasecmp", "strncat", "strncmp",
	"strncpy", "strndup", "strnlen", "strpbrk", "strrchr", "strsep", "strsignal", "strspn",
	"strstr", "strtod", "strtof", "strtoimax", "strtok", "strtok_r", "strtol", "strtold",
	"strtoll", "strtoul", "strtoull", "strtoumax", "strverscmp", "strxfrm", "swab", "tan",
	"tanf", "tanh", "tanhf", "tanhl", "tanl", "tgamma", "tgammaf", "tgammal", "time", "toascii",
	"tolower", "toupper", "towlower", "towupper", "trunc", "truncf", "truncl", "ungetc",
	"valloc", "wcrtomb", "wcscat", "wcschr", "wcscmp", "wcscpy", "wcsdup", "wcslen", "wcsncat",
	"wcsncmp", "wcsncpy", "wcsnlen", "wcsrchr", "wcsstr", "wctob", "wctomb", "wmemchr",
	"wmemcmp", "wmemcpy", "wmemmove", "wmemset", "y0", "y0f", "y0l", "y1", "y1f", "y1l", "yn",
	"ynf", "ynl"};

static const char *const waiting_names[] = {"_IO_getc", "_IO_putc", "__dprintf_chk", "__fgets_chk",
	"__fgets_unlocked_chk", "__fprintf_chk", "__fread_chk", "__fread_unlocked_chk", "__fxstat",
	"__fxstat64", "__fxstatat", "__fxstatat64", "__getcwd_chk", "__getdelim", "__gets_chk",
	"__isoc23_fscanf", "__isoc23_scanf", "__isoc99_fscanf", "__isoc99_scanf",
	"__isoc99_vfscanf", "__isoc99_vscanf", "__lxstat", "__lxstat64", "__open64_2", "__open_2",
	"__openat64_2", "__openat_2", "__poll_chk", "__ppoll_chk", "__pread64_chk", "__pread_chk",
	"__printf_chk", "__read_chk", "__readlink_chk", "__realpath_chk", "__recv_chk",
	"__recvfrom_chk", "__vdprintf_chk", "__vfprintf_chk", "__vprintf_chk", "__xstat",
	"__xstat64", "accept", "accept4", "access", "aio_read", "aio_return", "aio_suspend",
	"aio_write", "alarm", "bind", "brk", "canonicalize_file_name", "chdir", "chmod", "chown",
	"chroot", "clock_nanosleep", "close", "close_range", "closedir", "cnd_timedwait",
	"cnd_wait", "connect", "copy_file_range", "creat", "creat64", "dlclose", "dlmopen",
	"dlopen", "dprintf", "dup", "dup2", "dup3", "eaccess", "epoll_create", "epoll_create1",
	"epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "euidaccess", "eventfd",
	"eventfd_read", "eventfd_write", "faccessat", "fallocate", "fallocate64", "fchdir",
	"fchmod", "fchmodat", "fchown", "fchownat", "fclose", "fcloseall", "fcntl", "fcntl64",
	"fdatasync", "fdopen", "fdopendir", "fflush", "fflush_unlocked", "fgetc", "fgetpos",
	"fgets", "fgets_unlocked", "flock", "fopen", "fopen64", "fprintf", "fputc", "fputs",
	"fputs_unlocked", "fread", "fread_unlocked", "freopen", "freopen64", "fscanf", "fseek",
	"fseeko", "fseeko64", "fsetpos", "fstat", "fstat64", "fstatat", "fstatat64", "fstatfs",
	"fstatfs64", "fstatvfs", "fsync", "ftell", "ftello", "ftello64", "ftruncate", "ftruncate64",
	"fts_close", "fts_open", "fts_read", "ftw", "ftw64", "futimens", "futimes", "fwrite",
	"fwrite_unlocked", "getaddrinfo", "getc", "getchar", "getcwd", "getdelim", "getdents64",
	"getentropy", "getgrgid", "getgrgid_r", "getgrnam", "getgrnam_r", "gethostbyaddr",
	"gethostbyname", "gethostbyname_r", "getline", "getlogin", "getnameinfo", "getpeername",
	"getpwnam", "getpwnam_r", "getpwuid", "getpwuid_r", "getrandom", "gets", "getsockname",
	"getsockopt", "glob", "glob64", "grantpt", "inotify_add_watch", "inotify_init",
	"inotify_init1", "io_getevents", "io_setup", "io_submit", "ioctl", "isatty", "kill",
	"lchown", "link", "linkat", "lio_listio", "listen", "lockf", "lockf64", "lseek", "lseek64",
	"lstat", "lstat64", "madvise", "mkdir", "mkdirat", "mkdtemp", "mkfifo", "mkfifoat", "mknod",
	"mknodat", "mkostemp", "mkostemp64", "mkstemp", "mkstemp64", "mkstemps", "mkstemps64",
	"mlock", "mlockall", "mmap", "mmap64", "mount", "mprotect", "mq_open", "mq_receive",
	"mq_send", "mq_timedreceive", "mq_timedsend", "mremap", "msgget", "msgrcv", "msgsnd",
	"msync", "mtx_timedlock", "munlock", "munlockall", "munmap", "nanosleep", "nftw", "nftw64",
	"open", "open64", "open_by_handle_at", "openat", "openat64", "opendir", "openlog", "pause",
	"pclose", "perror", "pipe", "pipe2", "poll", "popen", "posix_fadvise", "posix_fadvise64",
	"posix_fallocate", "posix_fallocate64", "posix_openpt", "posix_spawn", "posix_spawnp",
	"ppoll", "pread", "pread64", "preadv", "preadv2", "preadv64", "preadv64v2", "printf",
	"pselect", "pthread_barrier_wait", "pthread_cond_clockwait", "pthread_cond_timedwait",
	"pthread_cond_wait", "pthread_create", "pthread_join", "pthread_mutex_timedlock",
	"pthread_timedjoin_np", "pthread_tryjoin_np", "ptsname", "putc", "putchar", "puts",
	"pwrite", "pwrite64", "pwritev", "pwritev2", "pwritev64", "pwritev64v2", "read",
	"readahead", "readdir", "readdir64", "readdir_r", "readlink", "readlinkat", "readv",
	"realpath", "recv", "recvfrom", "recvmmsg", "recvmsg", "rename", "renameat", "renameat2",
	"res_query", "rewind", "rmdir", "sbrk", "scandir", "scandir64", "scanf", "sched_yield",
	"select", "sem_clockwait", "sem_close", "sem_open", "sem_post", "sem_timedwait", "sem_wait",
	"semget", "semop", "semtimedop", "send", "sendfile", "sendfile64", "sendmmsg", "sendmsg",
	"sendto", "setbuf", "setsockopt", "setvbuf", "shm_open", "shm_unlink", "shmat", "shmdt",
	"shmget", "shutdown", "signalfd", "sigsuspend", "sigtimedwait", "sigwait", "sigwaitinfo",
	"sleep", "socket", "socketpair", "splice", "stat", "stat64", "statfs", "statfs64",
	"statvfs", "statvfs64", "statx", "symlink", "symlinkat", "sync", "sync_file_range",
	"syncfs", "syscall", "syslog", "system", "tcdrain", "tcflush", "tcgetattr", "tcsetattr",
	"tee", "thrd_create", "thrd_join", "thrd_sleep", "timerfd_create", "timerfd_settime",
	"tmpfile", "tmpfile64", "truncate", "truncate64", "ttyname", "umount", "umount2", "unlink",
	"unlinkat", "unlockpt", "usleep", "utime", "utimensat", "utimes", "vdprintf", "vfprintf",
	"vfscanf", "vmsplice", "vprintf", "vscanf", "wait", "wait3", "wait4", "waitid", "waitpid",
	"write", "writev"};

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

static bool is_in(const char *name, const char *const *table, size_t n)
{
	return bsearch(name, table, n, sizeof(table[0]), compare_names);
}

static bool begins_with_one(const char *name, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool foreign_name_returns_twice(const char *name)
{
	return is_in(name, twice_names, N_OF(twice_names));
}

bool foreign_name_cuts(const char *name)
{
	return is_in(name, cutting_names, N_OF(cutting_names));
}

bool foreign_name_skips_return(const char *name)
{
	return is_in(name, skipping_names, N_OF(skipping_names));
}

bool foreign_name_is_jump_thunk(const char *name)
{
	return begins_with_one(name, jump_thunk_prefixes, N_OF(jump_thunk_prefixes));
}

bool foreign_name_is_return_thunk(const char *name)
{
	return !strcmp(name, "__x86_return_thunk");
}

const char *foreign_name_gate(const char *name)
{
	static const char *const gates[][2] = {{"prctl", "weir_count_gate_prctl"},
		{"syscall", "weir_count_gate_syscall"}, {"seccomp_load", "weir_count_gate_load"}};

	for (size_t i = 0; i < N_OF(gates); i++)
		if (!strcmp(name, gates[i][0]))
			return gates[i][1];
	return NULL;
}

bool foreign_name_is_untimed(const char *name)
{
	return is_in(name, untimed_names, N_OF(untimed_names)) ||
	       begins_with_one(name, untimed_prefixes, N_OF(untimed_prefixes));
}

bool foreign_name_is_short(const char *name)
{
	return is_in(name, short_names, N_OF(short_names)) ||
	       begins_with_one(name, short_prefixes, N_OF(short_prefixes));
}

bool foreign_name_waits(const char *name)
{
	return is_in(name, waiting_names, N_OF(waiting_names));
}
