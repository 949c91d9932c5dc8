#pragma once
// Runs code that makes text for people. Without memory the text is omitted, and the process continues.

#include <new>
#include <utility>

namespace fairlead::base {

/// Calls `what`; returns false if there was no memory for it.
template <typename Say>
bool say(Say&& what) try {
  std::forward<Say>(what)();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace fairlead::base
