#pragma once
#define and &&
#define or ||
#define not !
#define xor ^
#define not_eq !=
