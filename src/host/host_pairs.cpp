// Rare operations: opening and closing, regions, streams.

#include "host/host_pairs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "host/call.hpp"

namespace fairlead::host {

namespace {

constexpr std::string_view kRemedy = "run without --host, or set FAIRLEAD_CORE=embedded";

std::unexpected<Error> not_served(std::string_view what, std::string_view why) {
  return std::unexpected(Error{Status::not_supported, EOPNOTSUPP,
                               fmt::format("the host engine does not serve {}: {}: {}", what, why, kRemedy)});
}

std::unexpected<Error> whole_address_space_not_served() {
  return not_served("regions over the whole address space",
                    "it can only access memory that was moved to shared memory");
}

std::unexpected<Error> xrc_not_served() {
  return not_served("XRC", "requests in its rings name no shared receive queue of the peer");
}

}  // namespace

Result<std::unique_ptr<HostPairs>> HostPairs::open(HostConnection& host, const std::string& file,
                                                   std::uint64_t application, queue::WaitChoice choice) {
  auto memory = RegisteredMemory::of_process();
  if (!memory) return std::unexpected(std::move(memory.error()));
  auto rings = shm::Memory::create({.head_bytes = PairLayout::bytes()});
  if (!rings) return std::unexpected(std::move(rings.error()));
  new (rings->head()) PairPage{};
  auto events = queue::Consumer::create({rings->head() + PairLayout::events(), PairLayout::events_bytes()},
                                        {.element_bytes = sizeof(PairNews), .elements = kPairEventsMax + 1});
  if (!events) return std::unexpected(std::move(events.error()));
  events->look_at_once();
  std::unique_ptr<HostPairs> pairs(new HostPairs(host, std::move(*rings), std::move(*memory), choice));
  const auto name = socket_name(file);
  auto socket = shm::Socket::connect(*name, host.users());
  if (!socket) return std::unexpected(std::move(socket.error()));
  const Call call{.kind = static_cast<std::uint32_t>(Call::Kind::open_pairs),
                  .application = application,
                  .memory_bytes = kRegisteredBytesMax};
  const std::array descriptors{pairs->rings_.descriptor(), pairs->memory_->descriptor()};
  const auto answered = make_call(*socket, call, descriptors);
  if (!answered) return std::unexpected(answered.error());
  pairs->events_.emplace(std::move(*events));
  pairs->socket_ = std::move(*socket);
  for (PairRing* const ring : {&pairs->ring_, &pairs->receives_})
    if (auto attached = ring->attach(); !attached) return std::unexpected(std::move(attached.error()));
  auto watcher = PairWatcher::start(pairs->socket_.descriptor(), [its = pairs.get()] { return its->look(); });
  if (!watcher) return std::unexpected(std::move(watcher.error()));
  pairs->watcher_ = std::move(*watcher);
  return pairs;
}

HostPairs::HostPairs(HostConnection& host, shm::Memory rings, std::shared_ptr<RegisteredMemory> memory,
                     queue::WaitChoice choice)
    : host_(host),
      rings_(std::move(rings)),
      memory_(std::move(memory)),
      accounts_(std::make_unique<qp::PairAccount[]>(wire::PairPort::kPairs)),
      ring_(host, {rings_.head() + PairLayout::requests(), PairLayout::requests_bytes()}),
      receives_(host, {rings_.head() + PairLayout::receives(), PairLayout::requests_bytes()}),
      calls_(host, page(), ring_, mutex_),
      pairs_(wire::PairPort::kPairs),
      idle_polls_(choice) {}

HostPairs::~HostPairs() = default;

// Regions ------------------------------------------------------------------------------------------------------------

PairCall HostPairs::call_of(const qp::RegionPlan& plan, const RegisteredPlace& place) {
  PairCall call;
  call.skipped = place.skipped;
  call.length = plan.length;
  call.iova = plan.iova;
  call.access = plan.access;
  call.domain = plan.domain;
  return call;
}

Result<std::uint32_t> HostPairs::add_region(const qp::RegionPlan& plan) {
  if (plan.is_null) return not_served("null regions", "its regions are parts of shared memory");
  if (plan.is_everything) return whole_address_space_not_served();
  auto place = memory_->take({plan.base, plan.length});
  if (!place) return std::unexpected(std::move(place.error()));
  const auto answer = calls_.make(PairCall::Kind::add_region, call_of(plan, *place), place->pieces);
  if (!answer) {
    memory_->release(*place);
    return std::unexpected(answer.error());
  }
  const std::scoped_lock lock(mutex_);
  places_[answer->key] = std::move(*place);
  return answer->key;
}

// The owner gets its memory back when the host engine no longer uses it, or has ended.
Status HostPairs::remove_region(std::uint32_t key) {
  const auto answer = calls_.make(PairCall::Kind::remove_region, {.key = key});
  if (!answer && answer.error().status != Status::restarted) return answer.error().status;
  std::unique_lock lock(mutex_);
  const auto place = places_.extract(key);
  lock.unlock();
  if (place) memory_->release(place.mapped());
  return Status::ok;
}

Result<> HostPairs::change_region(std::uint32_t key, const qp::RegionPlan& plan) {
  if (plan.is_everything) return whole_address_space_not_served();
  auto place = memory_->take({plan.base, plan.length});
  if (!place) return std::unexpected(std::move(place.error()));
  PairCall call = call_of(plan, *place);
  call.key = key;
  const auto answer = calls_.make(PairCall::Kind::change_region, call, place->pieces);
  if (!answer) {
    memory_->release(*place);
    return std::unexpected(answer.error());
  }
  std::unique_lock lock(mutex_);
  const RegisteredPlace before = std::exchange(places_[key], std::move(*place));
  lock.unlock();
  memory_->release(before);
  return {};
}

Result<std::uint32_t> HostPairs::add_window(verbs::WindowType type, std::uint32_t domain) {
  PairCall call{.domain = domain};
  call.type = std::to_underlying(type);
  const auto answer = calls_.make(PairCall::Kind::add_window, call);
  if (!answer) return std::unexpected(answer.error());
  return answer->key;
}

void HostPairs::remove_window(std::uint32_t key) {
  (void)calls_.make(PairCall::Kind::remove_window, {.key = key});
}

void HostPairs::unbind_windows(std::uint32_t region) {
  (void)calls_.make(PairCall::Kind::unbind_windows, {.key = region});
}

// Streams ------------------------------------------------------------------------------------------------------------

Result<qp::NoticeStream*> HostPairs::open_notices() try {
  auto semaphore = qp::NoticeStreams::make_semaphore();
  if (!semaphore) return std::unexpected(std::move(semaphore.error()));
  const std::scoped_lock lock(mutex_);
  return notices_.open(std::move(*semaphore));
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory"});
}

void HostPairs::close_notices(qp::NoticeStream* stream) {
  const std::scoped_lock lock(mutex_);
  notices_.close(stream);
}

void HostPairs::tell(qp::NoticeStream* stream, const qp::Notice& notice) {
  const std::scoped_lock lock(mutex_);
  stream->produce(notice);
}

Result<qp::CompletionStream*> HostPairs::open_completions(const qp::CompletionStream::Plan& plan) try {
  const std::scoped_lock lock(mutex_);
  return streams_.emplace_back(std::make_unique<qp::CompletionStream>(plan)).get();
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory"});
}

Status HostPairs::close_completions(qp::CompletionStream* stream) {
  const std::scoped_lock lock(mutex_);
  if (stream->users != 0) return Status::again;
  std::erase_if(streams_, [&](const auto& owned) { return owned.get() == stream; });
  return Status::ok;
}

// Drains first, so that the stream knows what has come. Then follows the protocol of queue::Waiter.
void HostPairs::arm(qp::CompletionStream* stream, qp::CompletionStream::Armed armed) {
  const std::scoped_lock lock(mutex_);
  drain();
  stream->arm(armed);
  page().completions.sleeping.exchange(1, std::memory_order_acq_rel);
  drain();
}

void HostPairs::listen(qp::CompletionStream* stream, qp::NoticeStream* channel) {
  const std::scoped_lock lock(mutex_);
  stream->listen(channel);
}

// Receive queues -----------------------------------------------------------------------------------------------------

ClientQueue* HostPairs::find_queue(qp::ReceiveQueueHandle handle) {
  if (handle.slot >= queues_.size()) return nullptr;
  ClientQueue& queue = queues_[handle.slot];
  return queue.is_open && queue.generation == handle.generation ? &queue : nullptr;
}

Result<qp::ReceiveQueueHandle> HostPairs::open_receive_queue(const qp::ReceiveQueuePlan& plan) {
  if (plan.xrc_domain != 0) return xrc_not_served();
  PairCall call{.domain = plan.domain};
  call.depth = plan.depth;
  call.pieces = plan.sges;
  call.limit = plan.limit;
  const auto answer = calls_.make(PairCall::Kind::open_queue, call);
  if (!answer) return std::unexpected(answer.error());
  const std::scoped_lock lock(mutex_);
  queues_.at(answer->object) = {.plan = plan, .generation = answer->generation, .is_open = true};
  return qp::ReceiveQueueHandle{answer->object, answer->generation};
}

Status HostPairs::close_receive_queue(qp::ReceiveQueueHandle handle) {
  PairCall call{};
  call.object = handle.slot;
  call.generation = handle.generation;
  const auto answer = calls_.make(PairCall::Kind::close_queue, call);
  if (!answer && answer.error().status != Status::restarted) return answer.error().status;
  const std::scoped_lock lock(mutex_);
  if (ClientQueue* const queue = find_queue(handle)) queue->is_open = false;
  return Status::ok;
}

Status HostPairs::change_receive_queue(qp::ReceiveQueueHandle handle, std::uint32_t depth, std::uint32_t limit) {
  PairCall call{};
  call.object = handle.slot;
  call.generation = handle.generation;
  call.depth = depth;
  call.limit = limit;
  const auto answer = calls_.make(PairCall::Kind::change_queue, call);
  if (!answer) return answer.error().status;
  const std::scoped_lock lock(mutex_);
  if (ClientQueue* const queue = find_queue(handle)) queue->plan.depth = depth;
  return Status::ok;
}

qp::ReceiveQueueFacts HostPairs::receive_queue_facts(qp::ReceiveQueueHandle handle) {
  PairCall call{};
  call.object = handle.slot;
  call.generation = handle.generation;
  const auto answer = calls_.make(PairCall::Kind::queue_facts, call);
  return answer ? qp::ReceiveQueueFacts{answer->depth, answer->limit, answer->posted} : qp::ReceiveQueueFacts{};
}

// Queue pairs --------------------------------------------------------------------------------------------------------

ClientPair* HostPairs::find(qp::PairHandle handle) const {
  ClientPair* const pair = handle.index < pairs_.size() ? pairs_[handle.index].get() : nullptr;
  return pair != nullptr && pair->handle == handle ? pair : nullptr;
}

PairCall HostPairs::call_of(const qp::PairPlan& plan) {
  PairCall call{.domain = plan.domain};
  call.queue = plan.shared_receives.slot;
  call.queue_generation = plan.shared_receives.generation;
  call.max_send_wr = plan.capacity.max_send_wr;
  call.max_recv_wr = plan.capacity.max_recv_wr;
  call.max_send_sge = plan.capacity.max_send_sge;
  call.max_recv_sge = plan.capacity.max_recv_sge;
  call.max_inline = plan.capacity.max_inline;
  call.type = std::to_underlying(plan.type);
  call.shares_receives = plan.has_shared_receives;
  call.signals_all = plan.signals_all;
  return call;
}

Result<> HostPairs::attach_group(qp::PairHandle, const verbs::Gid&, std::uint16_t) {
  return not_served("multicast groups", "it could not hand their sockets over to its successor");
}

Result<qp::OpenPair> HostPairs::open_pair(const qp::PairPlan& plan) {
  if (plan.end != qp::PairEnd::both) return xrc_not_served();
  auto pair = std::make_unique<ClientPair>();
  pair->plan = plan;
  pair->sends = PendingRequests(plan.capacity.max_send_wr);
  pair->receives = PendingRequests(plan.has_shared_receives ? 0 : plan.capacity.max_recv_wr);
  PairCall call = call_of(plan);
  {
    const std::scoped_lock lock(mutex_);
    pair->begin(call.incarnation = ++incarnations_);
  }
  const auto answer = calls_.make(PairCall::Kind::open_pair, call);
  if (!answer) return std::unexpected(answer.error());
  const qp::OpenPair opened{{answer->object, answer->generation}, answer->number};
  pair->handle = opened.handle;
  pair->number = opened.number;
  const std::scoped_lock lock(mutex_);
  qp::PairAccount& account = accounts_[opened.handle.index];
  account.sends.begin_incarnation(pair->incarnation);
  account.receives.begin_incarnation(pair->incarnation);
  ++plan.send_stream->users;
  ++plan.receive_stream->users;
  pairs_.at(opened.handle.index) = std::move(pair);
  return opened;
}

void HostPairs::close_pair(qp::PairHandle handle) {
  PairCall call{};
  call.object = handle.index;
  call.generation = handle.generation;
  (void)calls_.make(PairCall::Kind::close_pair, call);
  const std::scoped_lock lock(mutex_);
  ClientPair* const pair = find(handle);
  if (pair == nullptr) return;
  // Completions that are left in its streams belong to an ended incarnation.
  qp::PairAccount& account = accounts_[handle.index];
  account.sends.begin_incarnation(++incarnations_);
  account.receives.begin_incarnation(incarnations_);
  --pair->plan.send_stream->users;
  --pair->plan.receive_stream->users;
  pairs_[handle.index].reset();
}

Status HostPairs::change_pair(qp::PairHandle handle, verbs::QpState from, const verbs::QpAttributes& attributes) {
  const bool is_reset = attributes.state == verbs::QpState::reset;
  PairCall call{};
  call.object = handle.index;
  call.generation = handle.generation;
  call.from = std::to_underlying(from);
  call.attributes = to_plain(attributes);
  {
    const std::scoped_lock lock(mutex_);
    if (is_reset) call.incarnation = ++incarnations_;
  }
  const auto answer = calls_.make(PairCall::Kind::change_pair, call);
  if (!answer && answer.error().status != Status::restarted) return answer.error().status;
  // If the host engine has ended, only transitions to RESET and ERR succeed.
  if (!answer && !is_reset && attributes.state != verbs::QpState::err) return Status::restarted;
  const std::scoped_lock lock(mutex_);
  ClientPair* const pair = find(handle);
  if (pair == nullptr) return Status::stale;
  pair->attributes = is_reset ? verbs::QpAttributes{} : attributes;
  if (!is_reset) return Status::ok;
  qp::PairAccount& account = accounts_[handle.index];
  account.sends.begin_incarnation(call.incarnation);
  account.receives.begin_incarnation(call.incarnation);
  pair->begin(call.incarnation);
  return Status::ok;
}

qp::PairFacts HostPairs::pair_facts(qp::PairHandle handle) {
  PairCall call{};
  call.object = handle.index;
  call.generation = handle.generation;
  const auto answer = calls_.make(PairCall::Kind::pair_facts, call);
  if (answer)
    if (const auto attributes = from_plain(answer->attributes)) return {*attributes};
  const std::scoped_lock lock(mutex_);
  const ClientPair* const pair = find(handle);
  return pair == nullptr ? qp::PairFacts{} : qp::PairFacts{pair->attributes};
}

/// Waits at most 100 ms until the host engine has completed all sends. When this process ends, the host engine still
/// delivers messages in flight, but drops requests that wait in send queues.
void HostPairs::linger() {
  if (mark_.is_inherited()) return;
  constexpr auto kLingerMost = std::chrono::milliseconds(100);
  const auto end = base::MonotonicClock::now() + kLingerMost;
  PairCall call{};
  call.number = static_cast<std::uint64_t>(end.time_since_epoch().count());  // each time another
  bool is_told = false;
  while (page().lingered.load(std::memory_order_acquire) != call.number && !host_.look_for_end() &&
         base::MonotonicClock::now() < end) {
    if (!is_told) {
      const std::scoped_lock lock(mutex_);
      is_told = calls_.tell(PairCall::Kind::linger, call);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace fairlead::host
