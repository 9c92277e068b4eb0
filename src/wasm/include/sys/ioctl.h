/* SPDX-License-Identifier: MIT */
/* There is no terminal in a page. */
#ifndef WEIR_WASM_INCLUDE_SYS_IOCTL_H
#define WEIR_WASM_INCLUDE_SYS_IOCTL_H

#define TIOCGWINSZ 0

struct winsize {
	unsigned short ws_row, ws_col;
};

#define ioctl(fd, request, argument) ((void)(fd), (void)(argument), -1)

#endif
