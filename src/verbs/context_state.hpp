#pragma once
// What a context shares with all that is made in it: the engine of its device, limits, and who is told of events.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <fairlead/verbs/device.hpp>

#include "base/interface_watch.hpp"
#include "base/process_mark.hpp"
#include "engine/core.hpp"

namespace fairlead::verbs {

/// Acknowledged and delivered events of one object: its end waits until they are equal.
struct EventTally {
  std::uint64_t cookie = 0;  // the user's
  std::uint32_t got = 0, acknowledged = 0;
};

/// Those who are named by notices of one stream. A notice of somebody who is gone is thrown away.
class EventOwners {
 public:
  /// Its number in notices.
  std::uint64_t add(std::uint64_t cookie);
  /// Waits until all of its events that were got are acknowledged.
  void remove(std::uint64_t number);
  /// Reads `descriptor`, which may block; the next notice of somebody who is there. `number` names the owner.
  Result<qp::Notice> get(qp::NoticeStream& stream, std::uint64_t& cookie);
  void acknowledge(std::uint64_t number, std::uint32_t count);

 private:
  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, EventTally> owners_;
};

/// Objects of one kind in a context, bounded.
class Quota {
 public:
  explicit Quota(std::uint32_t most) : most_(most) {}
  bool take() {
    if (used_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    used_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void give() { used_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::uint32_t most_;
  std::atomic<std::uint32_t> used_{0};
};

class EventThread;

struct ContextState {
  ContextState(const Device& its_device, const ContextOptions& options);
  ~ContextState();
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  /// Whether we are in the child of a fork() by the process that opened it.
  bool is_dead() const { return mark.is_inherited(); }

  const Device device;
  const Personality personality;
  const DeviceLimits limits;
  std::shared_ptr<engine::Core> core;
  qp::PairCore* pair_core = nullptr;
  qp::PairAccount* accounts = nullptr;
  qp::NoticeStream* events = nullptr;
  EventOwners event_owners;
  std::uint64_t port_number_in_context = 0;
  std::atomic<bool> is_port_active{true};  // as it was told last
  std::once_flag watching;
  std::optional<base::InterfaceWatch> interfaces;  // opened by who waits for events first
  Quota domains{limits.max_pd}, channels{1024}, queues{limits.max_cq}, addresses{limits.max_ah},
      shared_receives{limits.max_srq}, pairs{limits.max_qp};
  std::atomic<std::uint32_t> next_domain{1};
  const base::ProcessMark mark;
  std::mutex event_thread_mutex;
  std::weak_ptr<EventThread> event_thread;  // while a completion queue wants to be called
};

/// Fails with an errno and a sentence.
std::unexpected<Error> failure(int error_number, std::string message);
/// What the engine said, as an errno.
std::unexpected<Error> failure(Status status, std::string message);
std::unexpected<Error> failure(Error error);
/// Every call begins with this: EIO in the child of a fork.
Result<> check_alive(const ContextState& context);

/// The value of an address vector that can be used on this context, else EINVAL.
Result<> check(const ContextState& context, const AddressVector& vector);

}  // namespace fairlead::verbs
