// Posts, events, and closing.

#include "host/application_pairs.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/say.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_refusals.hpp"
#include "qp/opcode_traits.hpp"

namespace fairlead::host {
namespace {

using verbs::AsyncEventType;

}  // namespace

Result<std::unique_ptr<ApplicationPairs>> ApplicationPairs::open(embedded::EmbeddedPairs& core, PairTools& tools,
                                                                 PairMemory memory, const Quota& quota) {
  auto inbox = PairInbox::create({memory.rings.head() + PairLayout::requests(), PairLayout::requests_bytes()});
  if (!inbox) return std::unexpected(std::move(inbox.error()));
  auto receives = PairInbox::create({memory.rings.head() + PairLayout::receives(), PairLayout::requests_bytes()});
  if (!receives) return std::unexpected(std::move(receives.error()));
  std::unique_ptr<ApplicationPairs> made(
      new ApplicationPairs(core, tools, std::move(memory), std::move(*inbox), std::move(*receives), quota));
  auto events = queue::Producer::attach(made->segment_);
  if (!events) return std::unexpected(std::move(events.error()));
  if (events->element_bytes() != sizeof(PairNews))
    return std::unexpected(Error{Status::invalid, 0, "events of queue pairs of another size than this host engine's"});
  made->events_.emplace(std::move(*events));
  auto notices = core.open_notices();
  if (!notices) return std::unexpected(std::move(notices.error()));
  made->notices_ = *notices;
  auto stream =
      core.open_completions({.capacity = 64, .channel = *notices, .events = *notices, .events_cookie = kStreamCookie});
  if (!stream) {
    core.close_notices(*notices);
    return std::unexpected(std::move(stream.error()));
  }
  made->stream_ = *stream;
  made->room_.serve(**stream);
  core.locked([&](qp::QueuePairs& pairs) { made->receives_.serve(pairs, **stream); });
  made->accounts_ = core.accounts();
  return made;
}

ApplicationPairs::~ApplicationPairs() {
  if (!is_gone_ && stream_ != nullptr) core_.locked([this](qp::QueuePairs&) { stream_->receive_from(nullptr); });
}

void ApplicationPairs::blame(std::string_view why) {
  if (fault_.empty()) fault_ = why;  // a literal, which outlives this call
}

void ApplicationPairs::blame_for_post(int error) {
  if (error != 0) blame(fault_of_post(error));
}

// Posts --------------------------------------------------------------------------------------------------------------

bool ApplicationPairs::take_requests(bool is_alone) try {
  if (is_leaving_ || !events_) return false;
  const Turn& turn = is_alone ? kTurn : kSharedTurn;
  std::uint32_t count = take_receives();
  has_called_ = false;
  turn_bytes_ = 0;
  for (std::uint32_t others = 0; others < turn.requests && turn_bytes_ < turn.bytes && !has_called_; ++others) {
    const auto taken = inbox_.next();
    if (!taken) break;
    ++count;
    take(*taken);
  }
  blame_for_post(tools_.posts.flush(core_));
  if (count > 0) inbox_.hand_back();
  if (inbox_.is_damaged()) blame("it has damaged its ring of requests");
  if (const char* const why = receives_.fault(); why != nullptr) blame(why);
  return count > 0;
} catch (...) {
  tools_.posts.forget();  // all applications use this object
  throw;
}

std::uint32_t ApplicationPairs::take_receives() {
  if (receives_.is_empty()) return 0;
  return core_.locked([this](qp::QueuePairs&) { return receives_.take_turn(); });
}

void ApplicationPairs::take(const TakenRequest& taken) {
  using Kind = PairRequest::Kind;
  const auto kind = static_cast<Kind>(taken.head.kind);
  if (kind == Kind::post_send) return take_send(taken);
  blame_for_post(tools_.posts.flush(core_));
  has_called_ = true;
  if (kind != Kind::call) return blame("it sent an unknown request");
  // Receives that were posted before the call must not outlive what it ends.
  if (!receives_.is_empty()) core_.locked([this](qp::QueuePairs&) { receives_.take_all(); });
  take_call(taken);
}

// One thread of the application may close or reset an object while another posts to it. Such a post has no effect.
void ApplicationPairs::take_send(const TakenRequest& taken) {
  const PairRequest& head = taken.head;
  const ServedPair* const pair = pairs_.find(head.object, head.generation);
  if (pair == nullptr) return;
  if (!qp::is_opcode(static_cast<verbs::SendOpcode>(head.opcode))) return blame("it posted an invalid request");
  turn_bytes_ += taken.named_bytes();
  if (pair->takes_posts) blame_for_post(tools_.posts.add(core_, pair->handle, taken, pair->type == verbs::QpType::ud));
}

// Events -------------------------------------------------------------------------------------------------------------

bool ApplicationPairs::give_events() {
  bool any = end_endings();
  if (is_leaving_) {
    end_what_is_left();
    return any;
  }
  if (!events_) return any;
  if (lingers_ != 0) [[unlikely]]
    end_linger();
  take_notices();
  any |= give_completions();
  if (has_told_ && page().completions.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
  has_told_ = false;
  any |= give_notices();
  if (std::exchange(has_told_, false) && page().notices.sleeping.exchange(0, std::memory_order_acq_rel) != 0)
    socket_.nudge();
  return any;
}

// Completions that precede a notice are delivered before it, in as many turns as they need.
void ApplicationPairs::take_notices(bool needs_room) {
  if (due_.count != 0 && needs_room) return;
  while (due_.count < due_.notices.size() && (!needs_room || events_->room() >= kRoomLeast)) {
    const qp::Notice* const notice = notices_->consume();
    if (notice == nullptr) break;
    if (notice->kind != qp::Notice::kCompletion) due_.notices[due_.count++] = *notice;
  }
  if (due_.count != 0) due_.completions = stream_->taken() + stream_->count() + restored_;
}

/// Returns true if there were any.
bool ApplicationPairs::give_notices() {
  if (due_.count == 0 || given() < due_.completions) return false;
  for (const qp::Notice& notice : std::span(due_.notices).first(std::exchange(due_.count, 0))) give_notice(notice);
  return true;
}

// The queue pair of a held completion may have been reset or closed meanwhile, and another may have its index.
std::uint32_t ApplicationPairs::next_completions(std::span<qp::PairEvent> to) {
  std::uint32_t count = 0;
  for (; count < to.size() && !held_.empty(); held_.pop_front()) {
    const qp::PairEvent& event = held_.front();
    const ServedPair* const pair = pair_of(event);
    if (pair != nullptr && pair->incarnation == event.incarnation) to[count++] = event;
  }
  return count > 0 ? count : stream_->take_events(to, accounts_);
}

void ApplicationPairs::hold(std::span<const qp::PairEvent> events) {
  for (qp::PairEvent event : events) {
    const ServedPair* const pair = pair_of(event);
    if (pair == nullptr) continue;
    event.incarnation = pair->incarnation;
    held_.push_back(event);
  }
}

bool ApplicationPairs::give_completions() {
  if (stream_->is_empty() && held_.empty()) return false;
  if (events_->room() < kRoomLeast) {
    // The application's watcher thread makes room when it is awake.
    if (page().notices.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
    return false;
  }
  std::array<qp::PairEvent, kCompletionsInTurn> batch;
  const std::uint32_t count = next_completions(batch);
  for (const qp::PairEvent& event : std::span(batch).first(count)) {
    const ServedPair* const pair = pair_of(event);
    if (pair == nullptr) continue;
    give({.completion = event.completion, .incarnation = pair->incarnation, .retires = event.retires});
    if (event.is_of_receives() && pair->queue) queues_.take_from(*pair->queue);
  }
  queues_.tell_taken();
  return count > 0;
}

void ApplicationPairs::give_notice(const qp::Notice& notice) {
  PairNews news{.retires = PairNews::kIsNotice};
  news.completion.byte_len = notice.kind;
  if (notice.cookie == kStreamCookie) return blame("its completion stream overran");
  const auto name = static_cast<std::uint32_t>(notice.cookie);
  if ((notice.cookie & ServedQueues::kCookie) != 0) {
    const ServedQueue* const queue = queues_.find(name);
    if (queue == nullptr) return;
    news.retires |= PairNews::kOfQueue;
    news.incarnation = queue->generation;
    news.completion.wr_id = name;
  } else {
    const ServedPair* const pair = pairs_.find_by_cookie(name);
    if (pair == nullptr) return;
    news.incarnation = pair->incarnation;
    news.completion.wr_id = pair->handle.index;
  }
  give(news);
}

void ApplicationPairs::give(const PairNews& news) {
  std::byte* const element = events_->pnext();
  if (element == nullptr) return blame("it has damaged the queue of its events");
  std::memcpy(element, &news, sizeof news);
  events_->put();
  has_told_ = true;
}

// Sleep --------------------------------------------------------------------------------------------------------------

// Follows the protocol of queue::Waiter. If the application's events have no room, the host engine may sleep: the
// application nudges it when it has made room.
bool ApplicationPairs::park() {
  if (is_gone_) return true;
  if (is_leaving_ || !events_ || !endings_.empty() || lingers_ != 0) return false;
  core_.arm(stream_, qp::CompletionStream::Armed::any);
  page().room.sleeping.exchange(1, std::memory_order_acq_rel);
  const bool has_room = events_->room() >= kRoomLeast;
  if (has_room) page().room.sleeping.exchange(0, std::memory_order_acq_rel);
  return inbox_.is_empty() && receives_.is_empty() && (!has_room || (stream_->is_empty() && held_.empty()));
}

// Closing ------------------------------------------------------------------------------------------------------------

void ApplicationPairs::leave() {
  if (!std::exchange(is_leaving_, true)) base::say([&] { close_pairs(); });  // end_what_is_left() retries
}

// Begins to close all open queue pairs, as long as endings_ has room.
void ApplicationPairs::close_pairs() {
  for (const ServedPair& pair : pairs_.open_ones()) {
    PairCall call{};
    call.object = pair.handle.index;
    call.generation = pair.handle.generation;
    carry_out(PairCall::Kind::close_pair, {call, {}}, PairCalls::kNoSlot);
  }
}

// Closes queue pairs first, then removes windows, regions, receive queues and streams.
void ApplicationPairs::end_what_is_left() {
  if (is_gone_ || !endings_.empty()) return;
  if (pairs_.count() != 0) return close_pairs();
  memory_.remove_all_windows();
  for (const std::uint32_t key : memory_.keys()) {
    PairCall call{};
    call.key = key;
    carry_out(PairCall::Kind::remove_region, {call, {}}, PairCalls::kNoSlot);
  }
  if (!endings_.empty()) return;
  queues_.close_all();
  core_.close_completions(stream_);
  core_.close_notices(notices_);
  domains_.leave_all();
  is_gone_ = true;
}

}  // namespace fairlead::host
