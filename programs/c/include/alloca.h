#pragma once
#include <stddef.h>
void *alloca(unsigned size);
