#pragma once
// The state that a context shares with all objects made in it: the device's engine, limits, and owners of events.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <fairlead/verbs/device.hpp>

#include "base/interface_watch.hpp"
#include "base/process_mark.hpp"
#include "engine/core.hpp"
#include "verbs/event_owners.hpp"
#include "verbs/probed_memory.hpp"
#include "verbs/use_count.hpp"

namespace fairlead::verbs {

class EventThread;

struct ContextState {
  ContextState(const Device& its_device, const ContextOptions& options);
  ~ContextState();
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  /// Returns whether a parent process opened the context before a fork().
  bool is_dead() const { return mark.is_inherited(); }

  const Device device;
  const Personality personality;
  const DeviceLimits limits;
  std::shared_ptr<engine::Core> core;
  qp::PairCore* pair_core = nullptr;
  qp::PairAccount* accounts = nullptr;
  qp::NoticeStream* events = nullptr;
  EventOwners event_owners;
  ProbedMemory probed;
  std::uint64_t port_number_in_context = 0;
  std::atomic<bool> is_port_active{true};  // as last reported
  std::atomic<bool> is_removed{false};     // its interface was deleted, and device_fatal reported
  std::once_flag watching;
  std::optional<base::InterfaceWatch> interfaces;  // opened by the first thread that waits for events
  Quota domains{limits.max_pd}, channels{1024}, queues{limits.max_cq}, addresses{limits.max_ah},
      shared_receives{limits.max_srq}, pairs{limits.max_qp};
  std::atomic<std::uint32_t> next_domain{1};
  const base::ProcessMark mark;
  std::mutex event_thread_mutex;
  std::weak_ptr<EventThread> event_thread;  // exists while a completion queue has a callback
};

/// Returns an error with this errno and message.
std::unexpected<Error> failure(int error_number, std::string message);
/// Converts the engine's status to an errno.
std::unexpected<Error> failure(Status status, std::string message);
std::unexpected<Error> failure(Error error);
/// Returns EIO in the child of a fork(). Every call begins with this check.
Result<> check_alive(const ContextState& context);

/// Returns EINVAL unless the address vector can be used on this context.
Result<> check(const ContextState& context, const AddressVector& vector);

}  // namespace fairlead::verbs
