#include "doors/rdma_cm/outbox.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::rdma_cm {
namespace {

bool is_question(const Sent& sent) {
  return sent.message.kind == Kind::alive;
}

bool is_answer_without_id(const Sent& sent) {
  return sent.name == 0 && !is_question(sent);
}

/// Returns whether we or the peer's manager lack room, which may change.
bool is_short_of_room(Status status) {
  return status == Status::no_buffer || status == Status::again || status == Status::no_memory;
}

}  // namespace

std::uint64_t Outbox::add(Sent sent) {
  if (is_question(sent) && !asked_.insert(sent.to).second) return 0;
  if (is_answer_without_id(sent) && !answers_.take(sent.host)) {
    ++answers_dropped_;
    return 0;
  }
  const std::uint64_t tag = next_tag_++;
  sent_.emplace(tag, Entry{.sent = std::move(sent)});
  return tag;
}

Sent Outbox::remove(std::uint64_t tag) {
  Sent sent = std::move(sent_.extract(tag).mapped().sent);
  if (is_question(sent)) asked_.erase(sent.to);
  if (is_answer_without_id(sent)) answers_.release(sent.host);
  return sent;
}

// The sending step is still running, so even a final failure is reported later, by its timer.
void Outbox::refuse(std::uint64_t tag, Status why, Instant now) {
  Entry& entry = sent_.at(tag);
  if (!is_short_of_room(why)) {
    entry.sent.tries = kTriesMax;
  } else if (is_question(entry.sent)) {  // the question is asked again anyway
    remove(tag);
    return;
  } else {
    ++entry.sent.tries;
  }
  entry.why = why;
  due_.emplace(entry.sent.tries < kTriesMax ? now + kAgainAfter : now, tag);
}

std::optional<Failed> Outbox::finish(std::uint64_t tag, Status status, Instant now) {
  const auto found = sent_.find(tag);
  if (found == sent_.end()) return std::nullopt;
  Entry& entry = found->second;
  // A manager without room is alive.
  if (status == Status::ok || (is_question(entry.sent) && is_short_of_room(status))) {
    remove(tag);
    return std::nullopt;
  }
  if (is_short_of_room(status) && entry.sent.tries < kTriesMax) {
    ++sent_again_;
    refuse(tag, status, now);
    return std::nullopt;
  }
  return Failed{.sent = remove(tag), .why = status};
}

std::optional<std::uint64_t> Outbox::take_due(Instant now) {
  if (due_.empty() || due_.begin()->first > now) return std::nullopt;
  return due_.extract(due_.begin()).value().second;
}

std::optional<Failed> Outbox::give_up(std::uint64_t tag) {
  const Entry& entry = sent_.at(tag);
  if (entry.sent.tries < kTriesMax) return std::nullopt;
  const Status why = entry.why;
  return Failed{.sent = remove(tag), .why = why};
}

bool Outbox::is_rejecting(std::uint64_t name) const {
  return std::ranges::any_of(sent_, [name](const auto& each) {
    const Sent& sent = each.second.sent;
    return sent.name == name && (sent.message.kind == Kind::rej || sent.message.kind == Kind::sidr_rep);
  });
}

}  // namespace fairlead::rdma_cm
