#include <fairlead/verbs/memory_window.hpp>

#include <cerrno>
#include <mutex>

#include "verbs/domain_state.hpp"

namespace fairlead::verbs {

struct WindowState {
  WindowState(std::shared_ptr<DomainState> its_domain, WindowType its_type, std::uint32_t its_key)
      : domain(std::move(its_domain)), type(its_type), key(its_key) {
    domain->members.add();
  }
  ~WindowState() { remove(); }
  WindowState(const WindowState&) = delete;
  WindowState& operator=(const WindowState&) = delete;

  /// Returns false if it is removed already.
  bool remove() {
    const std::scoped_lock lock(mutex);
    if (!domain) return false;
    if (!domain->context->is_dead()) domain->context->pair_core->remove_window(key);
    domain->members.drop();
    domain.reset();
    return true;
  }

  std::mutex mutex;
  std::shared_ptr<DomainState> domain;  // null after removal
  const WindowType type;
  const std::uint32_t key;
};

Result<MemoryWindow> MemoryWindow::allocate(const ProtectionDomain& domain, WindowType type) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  if (type != WindowType::type_1 && type != WindowType::type_2)
    return failure(EINVAL, "memory window: there are types 1 and 2");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  auto key = owner->context->pair_core->add_window(type, owner->number);
  if (!key) return failure(std::move(key.error()));
  return MemoryWindow(std::make_shared<WindowState>(owner, type, *key));
}

MemoryWindow& MemoryWindow::operator=(MemoryWindow&&) noexcept = default;
MemoryWindow::~MemoryWindow() = default;

Result<> MemoryWindow::deallocate() {
  if (!state_ || !state_->remove()) return failure(EINVAL, "this memory window is deallocated already");
  return {};
}

WindowType MemoryWindow::type() const noexcept {
  return state_->type;
}
std::uint32_t MemoryWindow::rkey() const noexcept {
  return state_->key;
}

}  // namespace fairlead::verbs
