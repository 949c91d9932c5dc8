#pragma once
// Memory windows: a part of a memory region under a key of its own, with rights of its own, that comes and goes by work
// requests, in order with the others of a queue pair.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/verbs/memory.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_request.hpp>

namespace fairlead::verbs {

struct WindowState;

/// Move-only; the destructor deallocates, bound or not. Bound by SendOpcode::bind_window; invalidated by invalidate, by
/// the peer's send_invalidate (type 2 both), by a binding of length 0 (type 1), and at the end of the queue pair that
/// has bound it (type 2). A region with bound windows answers EBUSY when it is removed or changed.
class MemoryWindow {
 public:
  [[nodiscard]] static Result<MemoryWindow> allocate(const ProtectionDomain& domain, WindowType type);

  MemoryWindow(MemoryWindow&&) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) noexcept;
  ~MemoryWindow();

  /// Its keys are dead at once.
  Result<> deallocate();

  WindowType type() const noexcept;
  /// The key that it was allocated with. Its upper 24 bits are those of all its keys.
  std::uint32_t rkey() const noexcept;

 private:
  explicit MemoryWindow(std::shared_ptr<WindowState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<WindowState> state_;
};

/// The next key of a window: another in the lower 8 bits.
constexpr std::uint32_t next_key(std::uint32_t key) {
  return (key & ~0xFFU) | ((key + 1) & 0xFFU);
}

}  // namespace fairlead::verbs
