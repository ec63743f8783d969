// See `algorithm.h`.
#pragma once
