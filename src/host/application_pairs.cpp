// Posts, events, and the end.

#include "host/application_pairs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fairlead/verbs/device.hpp>

#include "host/pair_calls.hpp"
#include "qp/opcode_traits.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::host {
namespace {

using Target = PairPosts::Target;
using verbs::AsyncEventType;

constexpr std::uint32_t kNoticesInTurn = 32, kCompletionsInTurn = 64;
constexpr std::uint64_t kRoomLeast = 2 * (kNoticesInTurn + kCompletionsInTurn);  // among the events, for a turn

}  // namespace

Result<std::unique_ptr<ApplicationPairs>> ApplicationPairs::open(qp::PairCore& core, PairTools& tools,
                                                                 PairMemory memory, const Quota& quota) {
  auto inbox = PairInbox::create({memory.rings.head() + PairLayout::requests(), PairLayout::requests_bytes()});
  if (!inbox) return std::unexpected(std::move(inbox.error()));
  std::unique_ptr<ApplicationPairs> made(
      new ApplicationPairs(core, tools, std::move(memory), std::move(*inbox), quota));
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
  made->accounts_ = core.accounts();
  return made;
}

void ApplicationPairs::blame(std::string_view why) {
  if (fault_.empty()) fault_ = why;
}

ApplicationPairs::OwnPair* ApplicationPairs::find(std::uint32_t object, std::uint32_t generation) {
  const auto found = pairs_.find(object);
  if (found == pairs_.end() || found->second.is_ending || found->second.handle.generation != generation) return nullptr;
  return &found->second;
}

ApplicationPairs::OwnQueue* ApplicationPairs::find_queue(std::uint32_t object, std::uint32_t generation) {
  if (object >= queues_.size() || !queues_[object].is_open || queues_[object].generation != generation) return nullptr;
  return &queues_[object];
}

// Posts --------------------------------------------------------------------------------------------------------------

bool ApplicationPairs::take_requests() {
  if (is_leaving_) return false;
  std::uint32_t count = 0;
  has_called_ = false;
  turn_bytes_ = 0;
  while (count < kRequestsInTurn && turn_bytes_ < kBytesInTurn && !has_called_) {
    const auto taken = inbox_.next();
    if (!taken) break;
    ++count;
    take(*taken);
  }
  if (!tools_.posts.flush(core_)) blame("it has posted more than its queue pair takes");
  if (count > 0) {
    inbox_.hand_back();
    page().served.store(served_ += count, std::memory_order_release);
    has_answered_ = true;
  }
  if (inbox_.is_damaged()) blame("it has damaged the ring of what it posts");
  return count > 0;
}

void ApplicationPairs::take(const TakenRequest& taken) {
  if (taken.head.kind < std::to_underlying(PairRequest::Kind::call)) return take_post(taken);
  if (!tools_.posts.flush(core_)) blame("it has posted more than its queue pair takes");
  has_called_ = true;
  taken.head.kind == std::to_underlying(PairRequest::Kind::call) ? take_call(taken)
                                                                 : blame("it asks for what there is not");
}

// What is closed, behind the back of what was posted by another thread, takes nothing any more.
void ApplicationPairs::take_post(const TakenRequest& taken) {
  const PairRequest& head = taken.head;
  bool is_good = true;
  if (head.kind == std::to_underlying(PairRequest::Kind::post_to_queue)) {
    OwnQueue* const queue = find_queue(head.object, head.generation);
    if (queue == nullptr) return;
    if (head.pieces > queue->pieces || head.bytes != 0) return blame("it posts a receive that no queue of it takes");
    ++queue->posted;
    is_good = tools_.posts.add_receive(core_, {.kind = Target::Kind::queue, .pair = {}, .queue = queue->handle}, taken);
  } else {
    OwnPair* const pair = find(head.object, head.generation);
    if (pair == nullptr) return;
    const bool is_send = head.kind == std::to_underlying(PairRequest::Kind::post_send);
    if (is_send ? !qp::is_opcode(static_cast<verbs::SendOpcode>(head.opcode)) : head.bytes != 0)
      return blame("it posts what no queue pair takes");
    if (is_send) turn_bytes_ += taken.named_bytes();
    const Target target{
        .kind = is_send ? Target::Kind::sends : Target::Kind::receives, .pair = pair->handle, .queue = {}};
    is_good = is_send ? tools_.posts.add_send(core_, target, taken, pair->type == verbs::QpType::ud)
                      : tools_.posts.add_receive(core_, target, taken);
  }
  if (!is_good) blame("it has posted more than its queue pair takes");
}

// Events -------------------------------------------------------------------------------------------------------------

bool ApplicationPairs::give_events() {
  bool any = end_endings();
  if (is_leaving_) {
    end_what_is_left();
    return any;
  }
  // What was completed before a notice is told before it.
  std::array<qp::Notice, kNoticesInTurn> notices;
  const std::uint32_t count = take_notices(notices);
  any |= give_completions();
  if (has_told_ && page().completions.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
  has_told_ = false;
  for (const qp::Notice& notice : std::span(notices).first(count)) give_notice(notice);
  if (std::exchange(has_told_, false) && page().notices.sleeping.exchange(0, std::memory_order_acq_rel) != 0)
    socket_.nudge();
  return any || count > 0;
}

std::uint32_t ApplicationPairs::take_notices(std::span<qp::Notice> to) {
  std::uint32_t count = 0;
  while (count < to.size() && events_->room() >= kRoomLeast) {
    const qp::Notice* const notice = notices_->consume();
    if (notice == nullptr) break;
    if (notice->kind != qp::Notice::kCompletion) to[count++] = *notice;
  }
  return count;
}

bool ApplicationPairs::give_completions() {
  if (stream_->is_empty()) return false;
  if (events_->room() < kRoomLeast) {
    // Whoever sleeps there makes room.
    if (page().notices.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
    return false;
  }
  std::array<qp::PairEvent, kCompletionsInTurn> batch;
  const std::uint32_t count = stream_->take_events(batch, accounts_);
  for (const qp::PairEvent& event : std::span(batch).first(count)) {
    const auto found = pairs_.find(event.completion.qp_num % wire::PairPort::kPairs);
    if (found == pairs_.end()) continue;
    const OwnPair& pair = found->second;
    give({.completion = event.completion, .incarnation = pair.incarnation, .retires = event.retires});
    if (!event.is_of_receives() || !pair.queue || queues_[*pair.queue].was_taken_from) continue;
    queues_[*pair.queue].was_taken_from = true;
    ++queues_taken_from_;
  }
  for (std::uint32_t slot = 0; queues_taken_from_ > 0; ++slot)
    if (std::exchange(queues_[slot].was_taken_from, false)) show_taken(slot);
  return count > 0;
}

void ApplicationPairs::show_taken(std::uint32_t slot) {
  --queues_taken_from_;
  const OwnQueue& queue = queues_[slot];
  if (!queue.is_open) return;
  page().taken[slot].store(queue.posted - core_.receive_queue_facts(queue.handle).posted, std::memory_order_release);
}

void ApplicationPairs::give_notice(const qp::Notice& notice) {
  PairNews news{.retires = PairNews::kIsNotice};
  news.completion.byte_len = notice.kind;
  auto name = static_cast<std::uint32_t>(notice.cookie);
  if (notice.cookie == kStreamCookie) return blame("it does not take its completions, and posts all the same");
  if ((notice.cookie & kQueueCookie) != 0) {
    if (name >= queues_.size() || !queues_[name].is_open) return;
    news.retires |= PairNews::kOfQueue;
    news.incarnation = queues_[name].generation;
  } else {
    const auto found = pairs_by_cookie_.find(name);
    if (found == pairs_by_cookie_.end()) return;
    name = found->second;
    news.incarnation = pairs_.at(name).incarnation;
  }
  news.completion.wr_id = name;
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

// The same protocol as of queue::Waiter. An application that makes no room is not waited for: it says when it does.
bool ApplicationPairs::park() {
  if (is_gone_) return true;
  if (is_leaving_ || !endings_.empty()) return false;
  core_.arm(stream_, qp::CompletionStream::Armed::any);
  page().room.sleeping.exchange(1, std::memory_order_acq_rel);
  const bool has_room = events_->room() >= kRoomLeast;
  if (has_room) page().room.sleeping.exchange(0, std::memory_order_acq_rel);
  return inbox_.is_empty() && (!has_room || stream_->is_empty());
}

// The end ------------------------------------------------------------------------------------------------------------

void ApplicationPairs::leave() {
  if (std::exchange(is_leaving_, true)) return;
  for (auto& [index, pair] : pairs_) {
    if (std::exchange(pair.is_ending, true)) continue;
    PairCall call{};
    call.object = index;
    endings_.push_back({PairCall::Kind::close_pair, call, PairCalls::kNoSlot, core_.begin_close_pair(pair.handle), {}});
  }
}

// After the queue pairs what they used, windows before regions.
void ApplicationPairs::end_what_is_left() {
  if (is_gone_ || !endings_.empty() || !pairs_.empty()) return;
  for (const auto& [key, domain] : windows_) core_.remove_window(key);
  windows_.clear();
  for (auto& [key, region] : std::exchange(regions_, {})) {
    Ending ending{PairCall::Kind::remove_region, {}, PairCalls::kNoSlot, {}, std::move(region)};
    if (core_.begin_remove_region(key, ending.withdrawal) == Status::ok) endings_.push_back(std::move(ending));
  }
  if (!endings_.empty()) return;
  for (OwnQueue& queue : queues_)
    if (std::exchange(queue.is_open, false)) core_.close_receive_queue(queue.handle);
  core_.close_completions(stream_);
  core_.close_notices(notices_);
  domains_.leave_all();
  is_gone_ = true;
}

}  // namespace fairlead::host
