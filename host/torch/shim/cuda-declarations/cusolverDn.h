// See `nccl.h`.
#pragma once

typedef struct cusolverDnContext *cusolverDnHandle_t;
