#include "embedded/embedded_pairs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "qp/pairs_handover.hpp"

namespace fairlead::embedded {

namespace {

Error no_room(const char* message) {
  return {Status::no_memory, ENOMEM, message};
}

Error refusal_of_change(Status status) {
  if (status == Status::in_use) return {status, EBUSY, "memory region: windows are bound to it"};
  if (status == Status::again) return {status, EBUSY, "memory region: its last change is not over yet"};
  return {status, EINVAL, "this memory region is deregistered"};
}

Error refusal_of_pair(Status status) {
  switch (status) {
    case Status::stale:
      return {status, EINVAL, "queue pair: its shared receive queue is destroyed"};
    case Status::invalid:
      return {status, EINVAL, "queue pair: max_send_sge is too large"};
    case Status::not_available:
      return {status, EADDRNOTAVAIL,
              "queue pair: the engine's UDP port lies outside port_first .. port_first + 1023, so peers could not find "
              "it: choose a port inside, or another port_first"};
    default:
      return no_room("all queue pairs of this process and device are in use: destroy some");
  }
}

std::unexpected<Error> without_memory() {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory"});  // short enough to need no allocation
}

}  // namespace

// Withdrawing --------------------------------------------------------------------------------------------------------

// A message in flight ends by acknowledgement, or when its peer is expelled. A peer that is only slow gets the give-up
// time.
base::Instant EmbeddedPairs::next_force() const {
  return base::MonotonicClock::now() +
         std::chrono::milliseconds(driver_.engine().options().get(engine::Option::give_up_after));
}

bool EmbeddedPairs::is_quiet(const qp::Withdrawal& withdrawal) const {
  qp::QueuePairs& pairs = driver_.engine().pairs();
  if (withdrawal.is_change) return !pairs.regions().is_held_from_before(withdrawal.key);
  if (withdrawal.kind == qp::Withdrawal::Kind::region) return !pairs.regions().is_held(withdrawal.key);
  return pairs.is_quiet(withdrawal.pair);
}

void EmbeddedPairs::press(const qp::Withdrawal& withdrawal) {
  qp::QueuePairs& pairs = driver_.engine().pairs();
  if (withdrawal.has_readers) {
    for (const shm::SectionReader& reader : withdrawal.readers) driver_.engine().connections()->put_out(reader);
  } else if (withdrawal.kind == qp::Withdrawal::Kind::region) {
    pairs.press_for_region(withdrawal.key, withdrawal.is_change);
  } else {
    pairs.press_for(withdrawal.pair);
  }
}

// Waits first until no message in flight refers to the object, then until no local peer accesses it. Without memory for
// the list of those peers it returns false, and is asked again.
bool EmbeddedPairs::is_over(qp::Withdrawal& withdrawal) try {
  if (withdrawal.kind != qp::Withdrawal::Kind::nothing && !is_unused(withdrawal)) return false;
  if (withdrawal.remap) {
    const std::scoped_lock sharing(sharing_);
    unshare(withdrawal.remap);
    withdrawal.remap.reset();
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool EmbeddedPairs::is_unused(qp::Withdrawal& withdrawal) {
  const Driver::Locked lock(driver_);
  shm::Connections* const connections = driver_.engine().connections();
  if (!withdrawal.has_readers && (!withdrawal.waits_for_quiet || is_quiet(withdrawal))) {
    const bool is_region = withdrawal.kind == qp::Withdrawal::Kind::region;
    if (connections != nullptr && connections->arena() != nullptr) {
      withdrawal.readers = connections->read_sections().readers(
          is_region ? shm::Withdrawn::region(withdrawal.key >> 8) : shm::Withdrawn::pair(withdrawal.pair.index));
    }
    withdrawal.has_readers = true;
    withdrawal.force_at = next_force();
  }
  if (withdrawal.has_readers)
    std::erase_if(withdrawal.readers, [&](const auto& one) { return connections->read_sections().has_left(one); });
  if (withdrawal.has_readers && withdrawal.readers.empty()) {
    end(withdrawal);
    return true;
  }
  if (base::MonotonicClock::now() < withdrawal.force_at) return false;
  press(withdrawal);
  withdrawal.force_at = next_force();
  return false;
}

/// From now on another queue pair may get the number, another region the slot, and local peers see the region's current
/// memory, if it has any.
void EmbeddedPairs::end(qp::Withdrawal& withdrawal) {
  qp::QueuePairs& pairs = driver_.engine().pairs();
  if (withdrawal.frees_pair) pairs.free_pair(withdrawal.pair);
  if (withdrawal.kind == qp::Withdrawal::Kind::region) {
    pairs.regions().end_withdrawal(withdrawal.key);
    pairs.publish_region(withdrawal.key);
  }
  withdrawal.kind = qp::Withdrawal::Kind::nothing;
}

void EmbeddedPairs::finish(qp::Withdrawal withdrawal) {
  while (!is_over(withdrawal))
    if (!driver_.pass(base::MonotonicClock::now())) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

qp::PairAccount* EmbeddedPairs::accounts() {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().accounts();
}

// Shared memory ------------------------------------------------------------------------------------------------------

namespace {

bool is_remote(const qp::RegionPlan& plan) {
  constexpr std::uint32_t kRemote =
      verbs::access::remote_write | verbs::access::remote_read | verbs::access::remote_atomic;
  return (plan.access & kRemote) != 0;
}

/// Returns whether it pays to move the region's memory to where peers see it: they access it themselves, or read long
/// sends from it in place. Without a remote right only the latter. Then small regions leave the moved ranges to others,
/// and large ones are rarely sent from.
bool pays_to_move(const qp::RegionPlan& plan) {
  constexpr std::uint64_t kSentFromLeast = 64 << 10, kSentFromMost = 256 << 20;  // bytes
  if (plan.is_foreign || plan.is_on_demand || plan.is_everything) return false;
  return is_remote(plan) || (plan.length >= kSentFromLeast && plan.length <= kSentFromMost);
}

}  // namespace

void EmbeddedPairs::share(qp::RegionPlan& plan, std::optional<std::uint32_t>& remap) {
  shm::Connections* connections = driver_.engine().connections();
  if (connections == nullptr || connections->published() == nullptr || !pays_to_move(plan)) return;
  const Driver::AllLocked still;
  const auto place = connections->published()->move({plan.base, plan.length}, is_remote(plan), still.is_alone());
  if (!place) return;
  if (is_remote(plan)) plan.arena = {place->begin, place->end, place->offset};
  remap = place->remap;
}

void EmbeddedPairs::unshare(std::optional<std::uint32_t> remap) {
  if (!remap) return;
  const Driver::AllLocked still;
  driver_.engine().connections()->published()->move_back(*remap, still.is_alone());
}

std::span<std::byte> EmbeddedPairs::allocate(std::uint64_t bytes) {
  const std::scoped_lock sharing(sharing_);
  shm::Connections* connections = driver_.engine().connections();
  return connections != nullptr && connections->arena() != nullptr ? connections->remapped().allocate(bytes)
                                                                   : std::span<std::byte>();
}

void EmbeddedPairs::free(std::span<std::byte> memory) {
  const std::scoped_lock sharing(sharing_);
  driver_.engine().connections()->remapped().free(memory);
}

Result<std::uint32_t> EmbeddedPairs::add_region(const qp::RegionPlan& plan) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  std::uint32_t key = 0;
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    key = pairs.regions().add(placed);
    if (key != 0) pairs.publish_region(key);
  }
  if (key == 0) {
    unshare(remap);
    return std::unexpected(no_room("all memory regions of the device are in use: deregister some"));
  }
  if (remap) remaps_[key] = *remap;
  return key;
}

Status EmbeddedPairs::remove_region(std::uint32_t key) {
  qp::Withdrawal withdrawal;
  const Status status = begin_remove_region(key, withdrawal);
  if (status == Status::ok) finish(std::move(withdrawal));
  return status;
}

Status EmbeddedPairs::begin_remove_region(std::uint32_t key, qp::Withdrawal& withdrawal) {
  const std::scoped_lock sharing(sharing_);
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    if (!pairs.regions().is_known(key)) return Status::stale;
    if (pairs.regions().has_windows(key)) return Status::in_use;
    pairs.regions().begin_withdrawal(key);
    pairs.regions().remove(key);
    pairs.publish_region(key);
  }
  withdrawal = {.kind = qp::Withdrawal::Kind::region, .pair = {}, .key = key, .force_at = next_force()};
  if (const auto remap = remaps_.extract(key)) withdrawal.remap = remap.mapped();
  return Status::ok;
}

Result<> EmbeddedPairs::change_region(std::uint32_t key, const qp::RegionPlan& plan) {
  qp::Withdrawal withdrawal;
  auto changed = begin_change_region(key, plan, withdrawal);
  if (changed) finish(std::move(withdrawal));
  return changed;
}

Result<> EmbeddedPairs::begin_change_region(std::uint32_t key, const qp::RegionPlan& plan, qp::Withdrawal& withdrawal) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  Status status = Status::in_use;
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    if (!pairs.regions().has_windows(key)) status = pairs.regions().change(key, placed);
    if (status == Status::ok) {
      pairs.regions().begin_withdrawal(key);
      pairs.publish_region(key);
    }
  }
  if (status != Status::ok) {
    unshare(remap);
    return std::unexpected(refusal_of_change(status));
  }
  withdrawal = {
      .kind = qp::Withdrawal::Kind::region, .is_change = true, .pair = {}, .key = key, .force_at = next_force()};
  if (const auto before = remaps_.extract(key)) withdrawal.remap = before.mapped();
  if (remap) remaps_[key] = *remap;
  return {};
}

// Windows are not published: peers use them through messages only, so no call has to wait for peers.
Result<std::uint32_t> EmbeddedPairs::add_window(verbs::WindowType type, std::uint32_t domain) try {
  const Driver::Locked lock(driver_);
  const std::uint32_t key = driver_.engine().pairs().regions().add_window(type, domain);
  if (key == 0) return std::unexpected(no_room("all memory windows of the device are in use: deallocate some"));
  return key;
} catch (const std::bad_alloc&) {
  return without_memory();
}

void EmbeddedPairs::remove_window(std::uint32_t key) {
  const Driver::Locked lock(driver_);
  driver_.engine().pairs().regions().remove_window(key);
}

void EmbeddedPairs::unbind_windows(std::uint32_t region) {
  const Driver::Locked lock(driver_);
  driver_.engine().pairs().regions().unbind_windows_of_region(region);
}

Result<qp::NoticeStream*> EmbeddedPairs::open_notices() try {
  auto semaphore = qp::NoticeStreams::make_semaphore();
  if (!semaphore) return std::unexpected(std::move(semaphore.error()));
  const Driver::Locked lock(driver_);
  return notices_.open(std::move(*semaphore));
} catch (const std::bad_alloc&) {
  return without_memory();
}

void EmbeddedPairs::close_notices(qp::NoticeStream* stream) {
  const Driver::Locked lock(driver_);
  notices_.close(stream);
}

void EmbeddedPairs::tell(qp::NoticeStream* stream, const qp::Notice& notice) {
  const Driver::Locked lock(driver_);
  stream->produce(notice);
}

Result<qp::CompletionStream*> EmbeddedPairs::open_completions(const qp::CompletionStream::Plan& plan) try {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().open_completions(plan);
} catch (const std::bad_alloc&) {
  return without_memory();
}

Status EmbeddedPairs::close_completions(qp::CompletionStream* stream) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().close_completions(stream);
}

void EmbeddedPairs::arm(qp::CompletionStream* stream, qp::CompletionStream::Armed armed) {
  const Driver::Locked lock(driver_);
  stream->arm(armed);
}

void EmbeddedPairs::listen(qp::CompletionStream* stream, qp::NoticeStream* channel) {
  const Driver::Locked lock(driver_);
  stream->listen(channel);
}

Result<qp::ReceiveQueueHandle> EmbeddedPairs::open_receive_queue(const qp::ReceiveQueuePlan& plan) try {
  const Driver::Locked lock(driver_);
  qp::ReceiveQueueHandle queue;
  if (driver_.engine().pairs().open_receive_queue(plan, queue) == Status::ok) return queue;
  return std::unexpected(no_room("all shared receive queues of the device are in use"));
} catch (const std::bad_alloc&) {
  return without_memory();
}

Status EmbeddedPairs::close_receive_queue(qp::ReceiveQueueHandle queue) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().close_receive_queue(queue);
}

Status EmbeddedPairs::change_receive_queue(qp::ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) try {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().change_receive_queue(queue, depth, limit);
} catch (const std::bad_alloc&) {
  return Status::no_memory;
}

qp::ReceiveQueueFacts EmbeddedPairs::receive_queue_facts(qp::ReceiveQueueHandle queue) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().receive_queue_facts(queue);
}

int EmbeddedPairs::post_to_receive_queue(qp::ReceiveQueueHandle queue, std::span<const verbs::ReceiveRequest> requests,
                                         std::size_t& taken) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().post_to_receive_queue(queue, requests, taken);
}

Result<qp::OpenPair> EmbeddedPairs::open_pair(const qp::PairPlan& plan) try {
  const Driver::Locked lock(driver_);
  qp::OpenPair opened;
  const Status status = driver_.engine().pairs().open_pair(plan, opened.handle, opened.number);
  if (status == Status::ok) return opened;
  return std::unexpected(refusal_of_pair(status));
} catch (const std::bad_alloc&) {
  return without_memory();
}

void EmbeddedPairs::close_pair(qp::PairHandle pair) {
  finish(begin_close_pair(pair));
}

qp::Withdrawal EmbeddedPairs::begin_close_pair(qp::PairHandle pair) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().pairs().begin_close(pair, now);
    return Status::ok;
  });
  return {.kind = qp::Withdrawal::Kind::pair, .frees_pair = true, .pair = pair, .force_at = next_force()};
}

Status EmbeddedPairs::change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) {
  qp::Withdrawal withdrawal;
  const Status status = begin_change_pair(pair, from, attributes, withdrawal);
  if (status == Status::ok) finish(std::move(withdrawal));
  return status;
}

Status EmbeddedPairs::begin_change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes,
                                        qp::Withdrawal& withdrawal) {
  bool takes_rights = false;
  const Status status = driver_.submit([&](base::Instant now) {
    qp::QueuePairs& pairs = driver_.engine().pairs();
    const std::uint32_t before = pairs.published_rights(pair);
    const Status changed = pairs.change_pair(pair, from, attributes, now);
    takes_rights = (before & ~pairs.published_rights(pair)) != 0;
    return changed;
  });
  const bool is_reset = attributes.state == verbs::QpState::reset;
  if (status == Status::ok && (is_reset || takes_rights || attributes.state == verbs::QpState::err))
    withdrawal = {
        .kind = qp::Withdrawal::Kind::pair, .waits_for_quiet = is_reset, .pair = pair, .force_at = next_force()};
  return status;
}

Result<> EmbeddedPairs::attach_group(qp::PairHandle pair, const verbs::Gid& group, std::uint16_t lid) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().attach_group(pair, group, lid);
}

Status EmbeddedPairs::detach_group(qp::PairHandle pair, const verbs::Gid& group) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().detach_group(pair, group);
}

bool EmbeddedPairs::is_in_group(qp::PairHandle pair) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().is_in_group(pair);
}

qp::PairFacts EmbeddedPairs::pair_facts(qp::PairHandle pair) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().pair_facts(pair);
}

int EmbeddedPairs::post_send(qp::PairHandle pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) {
  int error = 0;
  qp::QueuePairs* pairs = nullptr;
  const auto is_local = [&] {
    pairs = &driver_.engine().pairs();
    return pairs->is_on_host(pair);
  };
  driver_.submit_local(is_local, [&](base::Instant now) {
    error = pairs->post_send(pair, requests, taken, now);
    return Status::ok;
  });
  return error;
}

int EmbeddedPairs::post_send_all(qp::PairHandle pair, std::span<const verbs::SendRequest> requests) {
  int error = 0;
  driver_.submit([&](base::Instant now) {
    error = driver_.engine().pairs().post_send_all(pair, requests, now);
    return Status::ok;
  });
  return error;
}

int EmbeddedPairs::post_receive(qp::PairHandle pair, std::span<const verbs::ReceiveRequest> requests,
                                std::size_t& taken) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().post_receive(pair, requests, taken);
}

bool EmbeddedPairs::progress() {
  if (driver_.look()) return true;
  driver_.give_way();
  return false;
}

void EmbeddedPairs::linger() {
  driver_.linger();
}

// Queue pairs that were handed over ----------------------------------------------------------------------------------

qp::CompletionStream* EmbeddedPairs::give_notices(qp::PairHandle pair, qp::NoticeStream* notices,
                                                  std::uint64_t cookie) {
  const Driver::Locked lock(driver_);
  return qp::PairsHandover(driver_.engine().pairs()).give_notices(pair, notices, cookie);
}

bool EmbeddedPairs::give_notices(qp::ReceiveQueueHandle queue, qp::NoticeStream* notices, std::uint64_t cookie) {
  const Driver::Locked lock(driver_);
  return qp::PairsHandover(driver_.engine().pairs()).give_notices(queue, notices, cookie);
}

void EmbeddedPairs::give_notices(qp::CompletionStream* stream, qp::NoticeStream* notices, std::uint64_t cookie) {
  const Driver::Locked lock(driver_);
  stream->listen(notices);
  stream->tell_overruns_to(notices, cookie);
}

bool EmbeddedPairs::give_memory(std::uint32_t key, std::byte* base, std::uint64_t length) {
  const Driver::Locked lock(driver_);
  return qp::PairsHandover(driver_.engine().pairs()).give_memory(key, base, length);
}

}  // namespace fairlead::embedded
