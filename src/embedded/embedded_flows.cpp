#include "embedded/embedded_flows.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/event_descriptor.hpp"
#include "embedded/embedded_core.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::embedded {

// What is in flight ends by acknowledgement, or by giving the peer up. A peer that is only slow gets the give-up time.
template <typename IsDone, typename EndByForce>
void EmbeddedFlows::wait_until(IsDone&& is_done, EndByForce&& end_by_force) {
  const auto patience = std::chrono::milliseconds(core_.engine_->options().get(engine::Option::give_up_after));
  base::Instant force_at = base::MonotonicClock::now() + patience;
  for (;;) {
    const base::Instant now = base::MonotonicClock::now();
    {
      const EmbeddedCore::Locked lock(core_);
      if (is_done()) return;
      if (now >= force_at) {
        end_by_force();
        force_at = now + patience;
      }
    }
    if (!core_.pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void EmbeddedFlows::wait_for_region(std::uint32_t key) {
  qp::QueuePairs& flows = core_.engine_->flows();
  wait_until([&] { return !flows.regions().is_held(key); }, [&] { flows.press_for_region(key); });
}

qp::FlowAccount* EmbeddedFlows::accounts() {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().accounts();
}

// Shared memory ------------------------------------------------------------------------------------------------------

void EmbeddedFlows::wait_for_readers() {
  shm::Connections* connections = core_.engine_->connections();
  if (connections == nullptr || connections->arena() == nullptr) return;
  std::vector<shm::SectionReader> readers;
  {
    const EmbeddedCore::Locked lock(core_);
    readers = connections->readers();
  }
  for (const shm::SectionReader& reader : readers)
    wait_until([&] { return connections->has_left(reader); }, [&] { connections->put_out(reader); });
}

void EmbeddedFlows::share(qp::RegionPlan& plan, std::optional<std::uint32_t>& remap) {
  constexpr std::uint32_t kRemote =
      verbs::access::remote_write | verbs::access::remote_read | verbs::access::remote_atomic;
  shm::Connections* connections = core_.engine_->connections();
  if (connections == nullptr || connections->arena() == nullptr || (plan.access & kRemote) == 0) return;
  const EmbeddedCore::AllLocked still;
  const auto place = connections->remapped().take({plan.base, plan.length}, still.is_alone());
  if (!place) return;
  plan.arena = {place->begin, place->end, place->offset};
  remap = place->remap;
}

void EmbeddedFlows::unshare(std::optional<std::uint32_t> remap) {
  if (!remap) return;
  const EmbeddedCore::AllLocked still;
  core_.engine_->connections()->remapped().release(*remap, still.is_alone());
}

std::span<std::byte> EmbeddedFlows::allocate(std::uint64_t bytes) {
  const std::scoped_lock sharing(sharing_);
  shm::Connections* connections = core_.engine_->connections();
  return connections != nullptr && connections->arena() != nullptr ? connections->remapped().allocate(bytes)
                                                                   : std::span<std::byte>();
}

void EmbeddedFlows::free(std::span<std::byte> memory) {
  const std::scoped_lock sharing(sharing_);
  core_.engine_->connections()->remapped().free(memory);
}

Status EmbeddedFlows::add_region(const qp::RegionPlan& plan, std::uint32_t& key) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  {
    const EmbeddedCore::Locked lock(core_);
    qp::QueuePairs& flows = core_.engine_->flows();
    key = flows.regions().add(placed);
    if (key != 0) flows.show_region(key);
  }
  if (key == 0) {
    unshare(remap);
    return Status::no_memory;
  }
  if (remap) remaps_[key] = *remap;
  return Status::ok;
}

Status EmbeddedFlows::remove_region(std::uint32_t key) {
  {
    const EmbeddedCore::Locked lock(core_);
    qp::QueuePairs& flows = core_.engine_->flows();
    if (!flows.regions().is_known(key)) return Status::stale;
    flows.regions().remove(key);
    flows.show_region(key);
  }
  wait_for_region(key);
  wait_for_readers();
  const std::scoped_lock sharing(sharing_);
  if (const auto remap = remaps_.extract(key)) unshare(remap.mapped());
  return Status::ok;
}

Status EmbeddedFlows::change_region(std::uint32_t key, const qp::RegionPlan& plan) {
  const std::scoped_lock sharing(sharing_);
  qp::RegionPlan placed = plan;
  std::optional<std::uint32_t> remap;
  share(placed, remap);
  bool is_known = false;
  {
    const EmbeddedCore::Locked lock(core_);
    qp::QueuePairs& flows = core_.engine_->flows();
    is_known = flows.regions().change(key, placed);
    if (is_known) flows.show_region(key);
  }
  if (!is_known) {
    unshare(remap);
    return Status::stale;
  }
  wait_for_region(key);
  wait_for_readers();
  if (const auto before = remaps_.extract(key)) unshare(before.mapped());
  if (remap) remaps_[key] = *remap;
  return Status::ok;
}

Result<qp::NoticeStream*> EmbeddedFlows::open_notices() {
  auto semaphore = base::open_event_descriptor("a completion channel", EFD_SEMAPHORE);
  if (!semaphore) return std::unexpected(std::move(semaphore.error()));
  const EmbeddedCore::Locked lock(core_);
  notices_.push_back(std::make_unique<qp::NoticeStream>(std::move(*semaphore)));
  return notices_.back().get();
}

void EmbeddedFlows::close_notices(qp::NoticeStream* stream) {
  const EmbeddedCore::Locked lock(core_);
  std::erase_if(notices_, [&](const auto& owned) { return owned.get() == stream; });
}

void EmbeddedFlows::tell(qp::NoticeStream* stream, const qp::Notice& notice) {
  const EmbeddedCore::Locked lock(core_);
  stream->produce(notice);
}

Result<qp::CompletionStream*> EmbeddedFlows::open_completions(const qp::CompletionStream::Plan& plan) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().open_completions(plan);
}

Status EmbeddedFlows::close_completions(qp::CompletionStream* stream) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().close_completions(stream);
}

void EmbeddedFlows::arm(qp::CompletionStream* stream, qp::CompletionStream::Armed armed) {
  const EmbeddedCore::Locked lock(core_);
  stream->arm(armed);
}

Status EmbeddedFlows::open_pool(const qp::PoolPlan& plan, qp::PoolHandle& pool) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().open_pool(plan, pool);
}

Status EmbeddedFlows::close_pool(qp::PoolHandle pool) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().close_pool(pool);
}

Status EmbeddedFlows::change_pool(qp::PoolHandle pool, std::uint32_t depth, std::uint32_t limit) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().change_pool(pool, depth, limit);
}

qp::PoolFacts EmbeddedFlows::pool_facts(qp::PoolHandle pool) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().pool_facts(pool);
}

int EmbeddedFlows::post_to_pool(qp::PoolHandle pool, std::span<const verbs::ReceiveRequest> requests,
                                std::size_t& taken) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().post_to_pool(pool, requests, taken);
}

Status EmbeddedFlows::open_flow(const qp::FlowPlan& plan, qp::FlowHandle& flow, std::uint32_t& number) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().open_flow(plan, flow, number);
}

void EmbeddedFlows::close_flow(qp::FlowHandle flow) {
  core_.submit([&](base::Instant now) {
    core_.engine_->flows().begin_close(flow, now);
    return Status::ok;
  });
  qp::QueuePairs& flows = core_.engine_->flows();
  const auto has_freed_it = [&] {
    if (!flows.is_quiet(flow)) return false;
    flows.free_flow(flow);
    return true;
  };
  wait_until(has_freed_it, [&] { flows.press_for(flow); });
  wait_for_readers();
}

Status EmbeddedFlows::change_flow(qp::FlowHandle flow, verbs::QpState from, const verbs::QpAttributes& attributes) {
  const Status status =
      core_.submit([&](base::Instant now) { return core_.engine_->flows().change_flow(flow, from, attributes, now); });
  if (status == Status::ok && attributes.state == verbs::QpState::reset) {
    qp::QueuePairs& flows = core_.engine_->flows();
    wait_until([&] { return flows.is_quiet(flow); }, [&] { flows.press_for(flow); });
  }
  if (status == Status::ok && (attributes.state == verbs::QpState::reset || attributes.state == verbs::QpState::err))
    wait_for_readers();
  return status;
}

qp::FlowFacts EmbeddedFlows::flow_facts(qp::FlowHandle flow) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().flow_facts(flow);
}

int EmbeddedFlows::post_send(qp::FlowHandle flow, std::span<const verbs::SendRequest> requests, std::size_t& taken) {
  int error = 0;
  qp::QueuePairs* flows = nullptr;
  const auto is_near = [&] {
    flows = &core_.engine_->flows();
    return flows->is_near(flow);
  };
  core_.submit_near(is_near, [&](base::Instant now) {
    error = flows->post_send(flow, requests, taken, now);
    return Status::ok;
  });
  return error;
}

int EmbeddedFlows::post_send_all(qp::FlowHandle flow, std::span<const verbs::SendRequest> requests) {
  int error = 0;
  core_.submit([&](base::Instant now) {
    error = core_.engine_->flows().post_send_all(flow, requests, now);
    return Status::ok;
  });
  return error;
}

int EmbeddedFlows::post_receive(qp::FlowHandle flow, std::span<const verbs::ReceiveRequest> requests,
                                std::size_t& taken) {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().post_receive(flow, requests, taken);
}

bool EmbeddedFlows::progress() {
  return core_.look();
}

void EmbeddedFlows::linger() {
  core_.linger();
}

std::string EmbeddedFlows::describe() {
  const EmbeddedCore::Locked lock(core_);
  return core_.engine_->flows().describe();
}

}  // namespace fairlead::embedded
