#pragma once
#include <stddef.h>
typedef long time_t;
typedef long clock_t;
struct timespec { time_t tv_sec; long tv_nsec; };
#define CLOCKS_PER_SEC 1000000L
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
time_t time(time_t *now);
clock_t clock(void);
double difftime(time_t a, time_t b);
int clock_gettime(int clock, struct timespec *now);
