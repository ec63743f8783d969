#pragma once

#include <cstring>
#include <exception>

// The message of an exception that libtorch throws, as a string that the caller
// frees with `gavel_free`; null means success.
template <typename Body> char *guarded(Body body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const std::exception &error) {
    return strdup(error.what());
  } catch (...) {
    return strdup("an exception that is not a std::exception");
  }
}
