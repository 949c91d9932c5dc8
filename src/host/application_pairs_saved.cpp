// The state of an application's queue pairs that outlives the program serving them (pairs_state.hpp). The shared memory
// is mapped again.

#include <algorithm>
#include <utility>

#include "host/application_pairs.hpp"
#include "host/pair_refusals.hpp"
#include "queue/consumer.hpp"

namespace fairlead::host {
namespace {

std::unexpected<Error> wrong_pairs(const char* what) {
  return std::unexpected(Error{Status::invalid, 0, what});
}

std::unexpected<Error> not_now(const char* why) {
  return std::unexpected(Error{Status::again, 0, why});
}

}  // namespace

// Saving -------------------------------------------------------------------------------------------------------------

Result<ApplicationPairsState> ApplicationPairs::save() {
  if (is_leaving_ || !fault_.empty()) return not_now("it is about to close its device");
  if (!endings_.empty()) return not_now("a queue pair or a region is being closed or changed");
  // An application that takes no events holds up to one stream's length here, however often the program is replaced.
  if (!stream_->is_empty() && held_.size() >= stream_->capacity()) return not_now("it does not take its completions");
  std::array<qp::PairEvent, kCompletionsInTurn> batch;
  while (const std::uint32_t count = stream_->take_events(batch, accounts_)) hold(std::span(batch).first(count));
  take_notices(false);
  if (notices_->has_any()) return not_now("it does not take its asynchronous events");
  ApplicationPairsState state{
      .socket = socket_.descriptor(),
      .rings = rings_file_.get(),
      .lingers = lingers_,
      .inbox = inbox_.save(),
      .receives = receives_.save(),
      .events = events_->position(),
      .domains = domains_.save(),
      .pairs = {},
      .queues = {},
      .regions = {},
      .windows = {},
      .completions = {held_.begin(), held_.end()},
      .notices = {due_.notices.begin(), due_.notices.begin() + due_.count},
      .notices_after = due_.count != 0 ? due_.completions - std::min(due_.completions, given()) : 0};
  pairs_.save(state);
  queues_.save(state);
  memory_.save(state);
  return state;
}

void ServedPairs::save(ApplicationPairsState& state) const {
  state.cookies = cookies_;
  for (const auto& [index, pair] : pairs_) {
    state.pairs.push_back({.index = index,
                           .generation = pair.handle.generation,
                           .type = std::to_underlying(pair.type),
                           .incarnation = pair.incarnation,
                           .domain = pair.domain,
                           .cookie = pair.cookie,
                           .queue = pair.queue,
                           .room_bytes = pair.share.bytes,
                           .room_completions = pair.share.completions,
                           .takes_posts = pair.takes_posts});
  }
}

void ServedQueues::save(ApplicationPairsState& state) const {
  for (const ServedQueue& queue : queues_) {
    state.queues.push_back({.handle_slot = queue.handle.slot,
                            .handle_generation = queue.handle.generation,
                            .generation = queue.generation,
                            .domain = queue.domain,
                            .posted = receives_.posted_to(queue.slot),
                            .depth = queue.depth,
                            .pieces = queue.pieces,
                            .is_open = queue.is_open});
  }
}

void ServedMemory::save(ApplicationPairsState& state) const {
  state.memory = shared_.file.get();
  state.memory_bytes = shared_.bytes;
  for (const auto& [key, region] : regions_) {
    state.regions.push_back({.key = key,
                             .domain = region.domain,
                             .skipped = region.skipped,
                             .length = region.length,
                             .pieces = region.parts});
  }
  for (const auto& [key, domain] : windows_) state.windows.push_back({.key = key, .domain = domain});
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<ApplicationPairs>> ApplicationPairs::restore(embedded::EmbeddedPairs& core, PairTools& tools,
                                                                    PairMemory memory, shm::Socket socket,
                                                                    const ApplicationPairsState& state,
                                                                    const Quota& quota) {
  auto inbox =
      PairInbox::resume({memory.rings.head() + PairLayout::requests(), PairLayout::requests_bytes()}, state.inbox);
  if (!inbox) return std::unexpected(std::move(inbox.error()));
  auto receives =
      PairInbox::resume({memory.rings.head() + PairLayout::receives(), PairLayout::requests_bytes()}, state.receives);
  if (!receives) return std::unexpected(std::move(receives.error()));
  std::unique_ptr<ApplicationPairs> made(
      new ApplicationPairs(core, tools, std::move(memory), std::move(*inbox), std::move(*receives), quota));
  made->socket_ = std::move(socket);
  auto notices = core.open_notices();
  if (!notices) return std::unexpected(std::move(notices.error()));
  made->notices_ = *notices;
  made->accounts_ = core.accounts();
  if (auto restored = made->restore(core, state); !restored) return std::unexpected(std::move(restored.error()));
  return made;
}

Result<> ApplicationPairs::restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state) {
  for (const PairDomainState& domain : state.domains)
    if (!domains_.restore(domain)) return wrong_pairs("a protection domain occurs twice");
  if (auto restored = pairs_.restore(core, state, notices_, stream_); !restored) return restored;
  if (stream_ == nullptr) {
    auto stream = core.open_completions({.capacity = 64});
    if (!stream) return std::unexpected(std::move(stream.error()));
    stream_ = *stream;
  }
  core.give_notices(stream_, notices_, kStreamCookie);
  core.locked([this](qp::QueuePairs& pairs) { receives_.serve(pairs, *stream_); });
  room_.serve(*stream_);
  if (!pairs_.take_room()) return refused(Status::no_memory, "no memory for the completions of queue pairs");
  if (auto restored = queues_.restore(state, notices_); !restored) return restored;
  if (auto restored = memory_.restore(core, state); !restored) return restored;
  if (auto events = queue::Producer::resume(segment_, state.events);
      events && events->element_bytes() == sizeof(PairNews)) {
    events_.emplace(std::move(*events));
  } else {
    blame("it has damaged the queue of its events");  // only this application must leave
  }
  if (state.notices.size() > due_.notices.size()) return wrong_pairs("it has more events than may wait");
  std::ranges::copy(state.notices, due_.notices.begin());
  due_.count = static_cast<std::uint32_t>(state.notices.size());
  due_.completions = state.notices_after;
  held_.assign(state.completions.begin(), state.completions.end());
  restored_ = held_.size();
  lingers_ = state.lingers;
  if (lingers_ != 0) pairs_.begin_linger();
  return {};
}

Result<> ServedPairs::restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state,
                              qp::NoticeStream* notices, qp::CompletionStream*& stream) {
  cookies_ = state.cookies;
  for (const ServedPairState& saved : state.pairs) {
    ServedPair pair{.handle = {saved.index, saved.generation},
                    .type = static_cast<verbs::QpType>(saved.type),
                    .incarnation = saved.incarnation,
                    .domain = saved.domain,
                    .queue = saved.queue,
                    .share = {.bytes = saved.room_bytes, .completions = saved.room_completions},
                    .cookie = saved.cookie};
    pair.takes_posts = saved.takes_posts;
    qp::CompletionStream* const its = core.give_notices(pair.handle, notices, pair.cookie);
    if (its == nullptr || (stream != nullptr && stream != its) || (saved.queue && *saved.queue >= state.queues.size()))
      return wrong_pairs("the engine has no such queue pair");
    stream = its;
    domains_.enter(pair.domain);
    if (!pairs_.try_emplace(saved.index, pair).second || !by_cookie_.try_emplace(pair.cookie, saved.index).second)
      return wrong_pairs("a queue pair occurs twice");
  }
  return {};
}

bool ServedPairs::take_room() {
  for (const auto& [index, pair] : pairs_) {
    if (!room_.reserve(pair.share.completions)) return false;
    room_.take(pair.share);
  }
  return true;
}

Result<> ServedQueues::restore(const ApplicationPairsState& state, qp::NoticeStream* notices) {
  if (state.queues.size() > kReceiveQueuesMax) return wrong_pairs("it has too many shared receive queues");
  for (const ServedQueueState& saved : state.queues) {
    const auto slot = static_cast<std::uint32_t>(queues_.size());
    queues_.push_back({.handle = {saved.handle_slot, saved.handle_generation},
                       .slot = slot,
                       .generation = saved.generation,
                       .domain = saved.domain,
                       .depth = saved.depth,
                       .pieces = saved.pieces,
                       .is_open = saved.is_open});
    const qp::ReceiveQueueHandle handle = queues_.back().handle;
    receives_.make_room(slot);
    receives_.open_queue(slot, {.handle = handle,
                                .generation = saved.generation,
                                .pieces = saved.pieces,
                                .posted = saved.posted,
                                .is_open = saved.is_open});
    if (!saved.is_open) continue;
    const PairRoom::Share share = PairRoom::of_queue(saved.depth, saved.pieces);
    if (!core_.give_notices(handle, notices, kCookie | slot))
      return wrong_pairs("the engine has no such receive queue");
    if (!room_.reserve(share.completions))
      return refused(Status::no_memory, "no memory for the completions of receive queues");
    room_.take(share);
    domains_.enter(saved.domain);
    take_from(slot);  // the application may wait for the count
  }
  return {};
}

Result<> ServedMemory::restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state) {
  for (const ServedRegionState& saved : state.regions)
    if (auto restored = restore(core, saved); !restored) return restored;
  for (const ServedWindowState& saved : state.windows) {
    domains_.enter(saved.domain);
    if (!windows_.try_emplace(saved.key, saved.domain).second) return wrong_pairs("a memory window occurs twice");
  }
  return {};
}

Result<> ServedMemory::restore(embedded::EmbeddedPairs& core, const ServedRegionState& saved) {
  PairCall call{};
  call.skipped = saved.skipped;
  call.length = saved.length;
  Region region{.domain = saved.domain, .joined = {}};
  if (saved.pieces.empty()) return wrong_pairs("a memory region has no memory");
  const auto plan = plan_of(call, saved.pieces, region);
  if (!plan) return std::unexpected(plan.error());
  if (!core.give_memory(saved.key, plan->base, plan->length))
    return wrong_pairs("the engine has no such memory region");
  domains_.enter(saved.domain);
  count(region);
  return regions_.try_emplace(saved.key, std::move(region)).second ? Result<>()
                                                                   : wrong_pairs("a memory region occurs twice");
}

}  // namespace fairlead::host
