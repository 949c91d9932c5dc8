#pragma once
// Text for people is not worth a crash: without memory it is left out.

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
