#pragma once
#ifndef NULL
#define NULL ((void *)0)
#endif
#define offsetof(type, member) ((size_t) & (((type *)0)->member))
typedef unsigned int size_t;
typedef int ptrdiff_t;
typedef int ssize_t;
typedef int wchar_t;
typedef double max_align_t;
