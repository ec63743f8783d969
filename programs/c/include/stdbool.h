#pragma once
#define bool _Bool
#define true ((_Bool)1)
#define false ((_Bool)0)
#define __bool_true_false_are_defined 1
