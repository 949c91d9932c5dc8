// Events from the host engine, moved to the streams of this process.

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include <fairlead/verbs/device.hpp>

#include "host/give_way.hpp"
#include "host/host_pairs.hpp"

namespace fairlead::host {

using qp::PairEvent;
using verbs::AsyncEventType;
using verbs::QpState;
using verbs::WcStatus;

/// Returns true if anything has come.
bool HostPairs::drain() {
  if (owes_failures_) [[unlikely]]
    tell_failures();
  bool any = false;
  PairNews news;
  while (const std::byte* const element = events_->get()) {
    std::memcpy(&news, element, sizeof news);
    any = true;
    take(news);
  }
  if (!any) return false;
  events_->hand_back();
  idle_polls_.found();
  if (page().room.sleeping.load(std::memory_order_relaxed) != 0 &&
      page().room.sleeping.exchange(0, std::memory_order_acq_rel) != 0) {
    socket_.nudge();
  }
  return true;
}

void HostPairs::take(const PairNews& news) {
  if ((news.retires & PairNews::kIsNotice) != 0) return take_notice(news);
  ClientPair* const pair = pairs_[news.completion.qp_num % wire::PairPort::kPairs].get();
  if (pair == nullptr || pair->incarnation != news.incarnation) return;
  const std::uint32_t slots = news.retires & PairEvent::kSlots;
  ((news.retires & PairEvent::kOfReceives) != 0 ? pair->receives : pair->sends).drop(slots);
  if (news.completion.status != WcStatus::success && pair->state() != QpState::reset && pair->state() < QpState::rts)
    pair->attributes.state = QpState::err;
  complete(*pair, news.completion, news.retires);
}

void HostPairs::take_notice(const PairNews& news) {
  const auto name = static_cast<std::uint32_t>(news.completion.wr_id);
  const std::uint32_t kind = news.completion.byte_len;
  if ((news.retires & PairNews::kOfQueue) != 0) {
    if (name >= queues_.size() || !queues_[name].is_open || queues_[name].generation != news.incarnation) return;
    const qp::ReceiveQueuePlan& plan = queues_[name].plan;
    if (plan.events != nullptr) plan.events->produce({kind, plan.cookie});
    return;
  }
  ClientPair* const pair = name < pairs_.size() ? pairs_[name].get() : nullptr;
  if (pair == nullptr || pair->incarnation != news.incarnation) return;
  const auto type = static_cast<AsyncEventType>(kind);
  if (type == AsyncEventType::qp_fatal || type == AsyncEventType::qp_req_err || type == AsyncEventType::qp_access_err ||
      type == AsyncEventType::qp_last_wqe_reached) {
    pair->attributes.state = QpState::err;
  }
  if (pair->plan.events != nullptr) pair->plan.events->produce({kind, pair->plan.cookie});
}

void HostPairs::complete(ClientPair& pair, const verbs::WorkCompletion& completion, std::uint32_t retires) {
  const auto make = [&](void* place) {
    new (place) PairEvent{.completion = completion, .incarnation = pair.incarnation, .retires = retires};
  };
  const bool is_of_receives = (retires & PairEvent::kOfReceives) != 0;
  qp::CompletionStream* const stream = is_of_receives ? pair.plan.receive_stream : pair.plan.send_stream;
  if (!stream->produce(make, (retires & PairEvent::kIsNotable) != 0)) overrun(pair, retires);
}

void HostPairs::flush(ClientPair& pair, bool is_of_receives, const PendingRequests::Entry& entry) {
  complete(pair,
           {.wr_id = entry.id,
            .status = WcStatus::wr_flush_err,
            .opcode = entry.opcode,
            .vendor_err = std::to_underlying(verbs::Cause::host_ended),
            .qp_num = pair.number,
            .timestamp_ns = static_cast<std::uint64_t>(base::MonotonicClock::now().time_since_epoch().count())},
           1 | PairEvent::kIsNotable | (is_of_receives ? PairEvent::kOfReceives : 0));
}

// Fails the queue pair as an engine does, unless the owner of both queues has declared that an overrun does not matter.
void HostPairs::overrun(ClientPair& pair, std::uint32_t retires) {
  qp::PairAccount& account = accounts_[pair.handle.index];
  qp::Retired& retired = (retires & PairEvent::kOfReceives) != 0 ? account.receives : account.sends;
  retired.add(pair.incarnation, retires & PairEvent::kSlots);
  if (pair.plan.send_stream->plan().ignores_overrun && pair.plan.receive_stream->plan().ignores_overrun) return;
  if (std::exchange(pair.has_failed, true) || pair.state() == QpState::err) return;
  pair.attributes.state = QpState::err;
  if (pair.plan.events != nullptr)
    pair.plan.events->produce({std::to_underlying(AsyncEventType::qp_fatal), pair.plan.cookie});
  pair.owes_failure = true;
  tell_failures();
}

/// Tells the host engine which queue pairs have failed. If the ring is full, drain() tries again; the watcher does with
/// the next completion.
void HostPairs::tell_failures() {
  owes_failures_ = false;
  for (const auto& pair : pairs_) {
    if (!pair || !pair->owes_failure || is_ended_) continue;
    PairCall call{};
    call.object = pair->handle.index;
    call.generation = pair->handle.generation;
    if (!calls_.tell(PairCall::Kind::fail_pair, call)) {
      owes_failures_ = true;
      page().completions.sleeping.exchange(1, std::memory_order_acq_rel);
      return;
    }
    pair->owes_failure = false;
  }
}

bool HostPairs::is_any_armed() const {
  for (const auto& stream : streams_)
    if (stream->is_armed()) return true;
  return false;
}

/// The host engine has ended, and all its events are taken.
void HostPairs::end_all() {
  if (is_ended_) return;
  drain();
  is_ended_ = true;
  for (const auto& pair : pairs_) {
    if (!pair || pair->state() == QpState::reset) continue;
    const bool had_failed = pair->state() == QpState::err;
    pair->attributes.state = QpState::err;
    while (!pair->sends.is_empty()) flush(*pair, false, pair->sends.pop());
    while (!pair->receives.is_empty()) flush(*pair, true, pair->receives.pop());
    if (!had_failed && pair->plan.events != nullptr)
      pair->plan.events->produce({std::to_underlying(AsyncEventType::qp_fatal), pair->plan.cookie});
  }
}

bool HostPairs::look() {
  std::array<std::byte, 8> nudges;
  for (auto letter = socket_.receive(nudges); letter; letter = socket_.receive(nudges)) {
    if (letter->bytes != 0) continue;
    host_.note_end();
    break;
  }
  PairPage& shared = page();
  shared.notices.sleeping.exchange(1, std::memory_order_acq_rel);
  const std::scoped_lock lock(mutex_);
  if (host_.has_ended()) {
    end_all();
    return false;
  }
  drain();
  if (is_any_armed()) {
    shared.completions.sleeping.exchange(1, std::memory_order_acq_rel);
    drain();
  }
  return true;
}

bool HostPairs::progress() {
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) {
      if (drain()) return true;
      if (host_.has_ended() && !is_ended_) {
        end_all();
        return true;
      }
    }
  }
  host_.look_for_end_at_times();
  give_way(idle_polls_, mutex_);
  return false;
}

}  // namespace fairlead::host
