#pragma once
// Memory windows. A window gives peers a part of a memory region under a separate key with separate rights. Work
// requests bind and invalidate windows, in order with the other requests of a queue pair.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/verbs/memory.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_request.hpp>

namespace fairlead::verbs {

struct WindowState;

/// Move-only; the destructor deallocates the window, bound or not. SendOpcode::bind_window binds a window. A window of
/// type 1 is unbound by a binding of length 0. A window of type 2 is unbound by invalidate, by the peer's
/// send_invalidate, and by the end of the queue pair that bound it. Removing or changing a region with bound windows
/// returns EBUSY.
class MemoryWindow {
 public:
  [[nodiscard]] static Result<MemoryWindow> allocate(const ProtectionDomain& domain, WindowType type);

  MemoryWindow(MemoryWindow&&) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) noexcept;
  ~MemoryWindow();

  /// Its keys become invalid at once.
  [[nodiscard]] Result<> deallocate();

  WindowType type() const noexcept;
  /// The key assigned by allocate(). All keys of the window share its upper 24 bits.
  std::uint32_t rkey() const noexcept;

 private:
  explicit MemoryWindow(std::shared_ptr<WindowState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<WindowState> state_;
};

/// The next key of a window; only the lower 8 bits differ.
constexpr std::uint32_t next_key(std::uint32_t key) {
  return (key & ~0xFFU) | ((key + 1) & 0xFFU);
}

}  // namespace fairlead::verbs
