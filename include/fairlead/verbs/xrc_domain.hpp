#pragma once
// XRC: one queue pair (a target) serves all shared receive queues of a domain, and each request names its shared
// receive queue. So a process needs one target per peer, however many queues there are.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>
#include <fairlead/verbs/device.hpp>

namespace fairlead::verbs {

struct XrcDomainState;

struct XrcDomainOptions {
  int descriptor = -1;         ///< of a file: all opens of the same file give the same domain, which keeps the file
                               ///< open; -1: a new domain
  bool may_create = true;      ///< false: EAGAIN unless the file's domain is open already
  bool has_to_create = false;  ///< true: EINVAL if the file's domain is open already
};

/// Shared receive queues and the targets that serve them, of one device in one process. Copies are one handle.
class XrcDomain {
 public:
  /// EBADF: no such descriptor.
  [[nodiscard]] static Result<XrcDomain> open(const Context& context, const XrcDomainOptions& options = {});
  /// EBUSY, and nothing changed, while the domain contains objects and no other handle to it is open. EINVAL: this
  /// handle, or a copy of it, was already closed.
  Result<> close();

  const std::shared_ptr<XrcDomainState>& state() const noexcept { return state_; }

 private:
  explicit XrcDomain(std::shared_ptr<XrcDomainState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<XrcDomainState> state_;
};

}  // namespace fairlead::verbs
