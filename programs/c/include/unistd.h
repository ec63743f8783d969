#pragma once
#include <stddef.h>
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
long read(int descriptor, void *to, size_t size);
long write(int descriptor, const void *from, size_t size);
_Noreturn void _exit(int status);
