#include "embedded/embedded_pairs.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/event_descriptor.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::embedded {

// What is in flight ends by acknowledgement, or by giving the peer up. A peer that is only slow gets the give-up time.
template <typename IsDone, typename EndByForce>
void EmbeddedPairs::wait_until(IsDone&& is_done, EndByForce&& end_by_force) {
  const auto patience = std::chrono::milliseconds(driver_.engine().options().get(engine::Option::give_up_after));
  base::Instant force_at = base::MonotonicClock::now() + patience;
  for (;;) {
    const base::Instant now = base::MonotonicClock::now();
    {
      const Driver::Locked lock(driver_);
      if (is_done()) return;
      if (now >= force_at) {
        end_by_force();
        force_at = now + patience;
      }
    }
    if (!driver_.pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void EmbeddedPairs::wait_for_region(std::uint32_t key) {
  qp::QueuePairs& pairs = driver_.engine().pairs();
  wait_until([&] { return !pairs.regions().is_held(key); }, [&] { pairs.press_for_region(key); });
}

qp::PairAccount* EmbeddedPairs::accounts() {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().accounts();
}

// Shared memory ------------------------------------------------------------------------------------------------------

void EmbeddedPairs::wait_for_readers(shm::Withdrawn withdrawn) {
  shm::Connections* connections = driver_.engine().connections();
  if (connections == nullptr || connections->arena() == nullptr) return;
  std::vector<shm::SectionReader> readers;
  {
    const Driver::Locked lock(driver_);
    readers = connections->read_sections().readers(withdrawn);
  }
  for (const shm::SectionReader& reader : readers)
    wait_until([&] { return connections->read_sections().has_left(reader); }, [&] { connections->put_out(reader); });
}

void EmbeddedPairs::share(qp::RegionPlan& plan, std::optional<std::uint32_t>& remap) {
  constexpr std::uint32_t kRemote =
      verbs::access::remote_write | verbs::access::remote_read | verbs::access::remote_atomic;
  shm::Connections* connections = driver_.engine().connections();
  if (connections == nullptr || connections->arena() == nullptr || (plan.access & kRemote) == 0) return;
  const Driver::AllLocked still;
  const auto place = connections->remapped().take({plan.base, plan.length}, still.is_alone());
  if (!place) return;
  plan.arena = {place->begin, place->end, place->offset};
  remap = place->remap;
}

void EmbeddedPairs::unshare(std::optional<std::uint32_t> remap) {
  if (!remap) return;
  const Driver::AllLocked still;
  driver_.engine().connections()->remapped().release(*remap, still.is_alone());
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

Status EmbeddedPairs::add_region(const qp::RegionPlan& plan, std::uint32_t& key) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    key = pairs.regions().add(placed);
    if (key != 0) pairs.publish_region(key);
  }
  if (key == 0) {
    unshare(remap);
    return Status::no_memory;
  }
  if (remap) remaps_[key] = *remap;
  return Status::ok;
}

Status EmbeddedPairs::remove_region(std::uint32_t key) {
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    if (!pairs.regions().is_known(key)) return Status::stale;
    if (pairs.regions().has_windows(key)) return Status::in_use;
    pairs.regions().remove(key);
    pairs.publish_region(key);
  }
  wait_for_region(key);
  wait_for_readers(shm::Withdrawn::region(key >> 8));
  const std::scoped_lock sharing(sharing_);
  if (const auto remap = remaps_.extract(key)) unshare(remap.mapped());
  return Status::ok;
}

Status EmbeddedPairs::change_region(std::uint32_t key, const qp::RegionPlan& plan) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  bool is_known = false, has_windows = false;
  {
    const Driver::Locked lock(driver_);
    qp::QueuePairs& pairs = driver_.engine().pairs();
    has_windows = pairs.regions().has_windows(key);
    is_known = !has_windows && pairs.regions().change(key, placed);
    if (is_known) pairs.publish_region(key);
  }
  if (!is_known) {
    unshare(remap);
    return has_windows ? Status::in_use : Status::stale;
  }
  wait_for_region(key);
  wait_for_readers(shm::Withdrawn::region(key >> 8));
  if (const auto before = remaps_.extract(key)) unshare(before.mapped());
  if (remap) remaps_[key] = *remap;
  return Status::ok;
}

// Windows are not published: peers reach them by messages alone, so nobody has to be waited for.
Status EmbeddedPairs::add_window(verbs::WindowType type, std::uint32_t domain, std::uint32_t& key) {
  const Driver::Locked lock(driver_);
  key = driver_.engine().pairs().regions().add_window(type, domain);
  return key != 0 ? Status::ok : Status::no_memory;
}

void EmbeddedPairs::remove_window(std::uint32_t key) {
  const Driver::Locked lock(driver_);
  driver_.engine().pairs().regions().remove_window(key);
}

void EmbeddedPairs::unbind_windows(std::uint32_t region) {
  const Driver::Locked lock(driver_);
  driver_.engine().pairs().regions().unbind_windows_of_region(region);
}

Result<qp::NoticeStream*> EmbeddedPairs::open_notices() {
  auto semaphore = base::open_event_descriptor("a completion channel", EFD_SEMAPHORE);
  if (!semaphore) return std::unexpected(std::move(semaphore.error()));
  const Driver::Locked lock(driver_);
  notices_.push_back(std::make_unique<qp::NoticeStream>(std::move(*semaphore)));
  return notices_.back().get();
}

void EmbeddedPairs::close_notices(qp::NoticeStream* stream) {
  const Driver::Locked lock(driver_);
  std::erase_if(notices_, [&](const auto& owned) { return owned.get() == stream; });
}

void EmbeddedPairs::tell(qp::NoticeStream* stream, const qp::Notice& notice) {
  const Driver::Locked lock(driver_);
  stream->produce(notice);
}

Result<qp::CompletionStream*> EmbeddedPairs::open_completions(const qp::CompletionStream::Plan& plan) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().open_completions(plan);
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

Status EmbeddedPairs::open_receive_queue(const qp::ReceiveQueuePlan& plan, qp::ReceiveQueueHandle& queue) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().open_receive_queue(plan, queue);
}

Status EmbeddedPairs::close_receive_queue(qp::ReceiveQueueHandle queue) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().close_receive_queue(queue);
}

Status EmbeddedPairs::change_receive_queue(qp::ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().change_receive_queue(queue, depth, limit);
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

Status EmbeddedPairs::open_pair(const qp::PairPlan& plan, qp::PairHandle& pair, std::uint32_t& number) {
  const Driver::Locked lock(driver_);
  return driver_.engine().pairs().open_pair(plan, pair, number);
}

void EmbeddedPairs::close_pair(qp::PairHandle pair) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().pairs().begin_close(pair, now);
    return Status::ok;
  });
  qp::QueuePairs& pairs = driver_.engine().pairs();
  const auto has_freed_it = [&] {
    if (!pairs.is_quiet(pair)) return false;
    pairs.free_pair(pair);
    return true;
  };
  wait_until(has_freed_it, [&] { pairs.press_for(pair); });
  wait_for_readers(shm::Withdrawn::pair(pair.index));
}

Status EmbeddedPairs::change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) {
  const Status status = driver_.submit(
      [&](base::Instant now) { return driver_.engine().pairs().change_pair(pair, from, attributes, now); });
  if (status == Status::ok && attributes.state == verbs::QpState::reset) {
    qp::QueuePairs& pairs = driver_.engine().pairs();
    wait_until([&] { return pairs.is_quiet(pair); }, [&] { pairs.press_for(pair); });
  }
  if (status == Status::ok && (attributes.state == verbs::QpState::reset || attributes.state == verbs::QpState::err))
    wait_for_readers(shm::Withdrawn::pair(pair.index));
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

}  // namespace fairlead::embedded
