// See `nccl.h`.
#pragma once
