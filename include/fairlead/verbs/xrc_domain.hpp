#pragma once
// XRC: one queue pair (a target) stands before all shared receive queues of a domain, and each request names the one it
// is for. So a process needs one target for each peer, however many queues there are.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/verbs/device.hpp>

namespace fairlead::verbs {

struct XrcDomainState;

struct XrcDomainOptions {
  int descriptor = -1;         ///< of a file: who opens the same file gets the same domain, which
                               ///< keeps the file open; -1: a domain of its own
  bool may_create = true;      ///< else EAGAIN if nobody has the file's domain open
  bool has_to_create = false;  ///< EINVAL if somebody has
};

/// Shared receive queues, and queue pairs that stand before them, of one device in one process. Copies are one handle.
class XrcDomain {
 public:
  /// EBADF: no such descriptor.
  [[nodiscard]] static Result<XrcDomain> open(const Context& context, const XrcDomainOptions& options = {});
  /// EBUSY, and nothing changed, while something is in the domain and no other handle to it is open. EINVAL: it, or a
  /// copy of it, was closed.
  Result<> close();

  const std::shared_ptr<XrcDomainState>& state() const noexcept { return state_; }

 private:
  explicit XrcDomain(std::shared_ptr<XrcDomainState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<XrcDomainState> state_;
};

}  // namespace fairlead::verbs
