#pragma once
// What is only said to people, or kept for that, is not worth a process: without memory it is left out.

#include <new>
#include <utility>

namespace fairlead::base {

/// False if there was no memory for it.
template <typename Say>
bool say(Say&& what) try {
  std::forward<Say>(what)();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace fairlead::base
