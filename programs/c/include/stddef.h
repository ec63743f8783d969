#pragma once
#ifndef NULL
#define NULL ((void *)0)
#endif
#define offsetof(type, member) ((size_t) & (((type *)0)->member))
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long ssize_t;
typedef int wchar_t;
typedef double max_align_t;
