/* SPDX-License-Identifier: MIT */
/*
 * buffer ROUNDS: short reads into a large local buffer, as many programs do. Most pages of the
 * buffer are never touched, so there is a hole in the stack between the innermost frames and main.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES 65536
#define READ_BYTES   512

static __attribute__((noinline)) unsigned long read_often(long rounds, int fd)
{
	unsigned char buffer[BUFFER_BYTES];
	unsigned long sum = 0;

	for (long i = 0; i < rounds; i++) {
		ssize_t n = read(fd, buffer, READ_BYTES);

		for (ssize_t j = 0; j < n; j++)
			sum = sum * 31 + buffer[j];
	}
	return sum;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 1;
	printf("%lu\n", read_often(argc > 1 ? atol(argv[1]) : 1000, fd));
	return 0;
}
