#include "host/served_pairs.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include <fairlead/verbs/device.hpp>

#include "host/map_place.hpp"
#include "host/pair_refusals.hpp"

namespace fairlead::host {
namespace {

using verbs::QpState;
using verbs::QpType;

constexpr verbs::DeviceLimits kPairLimits;

bool is_legal(QpType type, QpState from, QpState to) {
  switch (to) {
    case QpState::reset:
      return true;
    case QpState::err:
      return from != QpState::reset;
    case QpState::init:
      return from == QpState::reset || from == QpState::init;
    case QpState::rtr:
      return from == QpState::init;
    case QpState::rts:
      return from == QpState::rtr || from == QpState::rts || from == QpState::sqd ||
             (from == QpState::sqe && type != QpType::rc);
    case QpState::sqd:
      return from == QpState::rts || from == QpState::sqd;
    case QpState::sqe:
      break;
  }
  return false;
}

bool is_possible(const PairCall& call) {
  const bool is_type = call.type >= std::to_underlying(QpType::rc) && call.type <= std::to_underlying(QpType::ud);
  const bool is_uc = call.type == std::to_underlying(QpType::uc);
  const bool are_receives_good = call.shares_receives != 0
                                     ? !is_uc
                                     : call.max_recv_wr >= 1 && call.max_recv_wr <= kPairLimits.max_qp_wr &&
                                           call.max_recv_sge <= kPairLimits.max_sge;
  return is_type && are_receives_good && call.max_send_wr >= 1 && call.max_send_wr <= kPairLimits.max_qp_wr &&
         call.max_send_sge <= kPairLimits.max_sge && call.max_inline <= kPairLimits.max_inline;
}

}  // namespace

ServedPair* ServedPairs::find(std::uint32_t index, std::uint32_t generation) {
  const auto found = pairs_.find(index);
  if (found == pairs_.end() || found->second.is_ending || found->second.handle.generation != generation) return nullptr;
  return &found->second;
}

const ServedPair* ServedPairs::find(std::uint32_t index) const {
  const auto found = pairs_.find(index);
  return found == pairs_.end() ? nullptr : &found->second;
}

const ServedPair* ServedPairs::find_by_cookie(std::uint32_t cookie) const {
  const auto found = by_cookie_.find(cookie);
  return found == by_cookie_.end() ? nullptr : find(found->second);
}

std::vector<ServedPair> ServedPairs::open_ones() const {
  std::vector<ServedPair> open;
  for (const auto& [index, pair] : pairs_)
    if (!pair.is_ending) open.push_back(pair);
  return open;
}

void ServedPairs::begin_linger() {
  const auto indices = std::views::keys(pairs_);
  lingering_.assign(indices.begin(), indices.end());
}

bool ServedPairs::is_sending() {
  for (std::uint32_t looks = kLooksInTurn; looks > 0 && !lingering_.empty(); --looks) {
    const ServedPair* const pair = find(lingering_.back());
    if (pair != nullptr && core_.pair_facts(pair->handle).is_sending) return true;
    lingering_.pop_back();
  }
  return !lingering_.empty();
}

Result<PairAnswer> ServedPairs::open(const PairCall& call, const Streams& streams, const ServedQueue* queue) {
  if (!is_possible(call)) return senseless("a queue pair");
  if (pairs_.size() >= most_) {
    return refused(Status::no_memory,
                   fmt::format("this process has {} queue pairs at the host engine, the most one may have", most_));
  }
  if (call.shares_receives != 0 && queue == nullptr) return stale("shared receive queue");
  const PairRoom::Share share = PairRoom::of_pair(call);
  if (!room_.has_bytes(share.bytes)) {
    return refused(Status::no_memory,
                   fmt::format("queue pair: {} bytes for posted requests, besides {} of this process: the host engine "
                               "gives each process {}; ask for fewer requests, pieces or inline bytes",
                               share.bytes, room_.bytes(), room_.bytes_most()));
  }
  if (!room_.reserve(share.completions))
    return refused(Status::no_memory, "queue pair: the host engine has no memory for it");
  MapPlace place(pairs_);
  MapPlace place_by_cookie(by_cookie_);
  ServedPair pair{.handle = {},
                  .type = static_cast<QpType>(call.type),
                  .incarnation = call.incarnation,
                  .domain = call.domain,
                  .queue = {},
                  .share = share,
                  .cookie = ++cookies_};
  if (queue != nullptr) pair.queue = queue->slot;
  const auto opened = core_.open_pair({.type = pair.type,
                                       .capacity = {.max_send_wr = call.max_send_wr,
                                                    .max_recv_wr = call.max_recv_wr,
                                                    .max_send_sge = call.max_send_sge,
                                                    .max_recv_sge = call.max_recv_sge,
                                                    .max_inline = call.max_inline},
                                       .signals_all = call.signals_all != 0,
                                       .domain = domains_.enter(call.domain),
                                       .send_stream = streams.completions,
                                       .receive_stream = streams.completions,
                                       .shared_receives = queue != nullptr ? queue->handle : qp::ReceiveQueueHandle{},
                                       .has_shared_receives = queue != nullptr,
                                       .events = streams.notices,
                                       .cookie = pair.cookie});
  if (!opened) {
    domains_.leave(call.domain);
    return std::unexpected(opened.error());
  }
  pair.handle = opened->handle;
  room_.take(share);
  place_by_cookie.fill(pair.cookie, opened->handle.index);
  place.fill(opened->handle.index, pair);
  PairAnswer answer;
  answer.object = opened->handle.index;
  answer.generation = opened->handle.generation;
  answer.number = opened->number;
  return answer;
}

Result<PairAnswer> ServedPairs::facts(const PairCall& call) {
  const ServedPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  PairAnswer answer;
  answer.attributes = to_plain(core_.pair_facts(pair->handle).attributes);
  return answer;
}

// Calls that wait ----------------------------------------------------------------------------------------------------

Result<qp::Withdrawal> ServedPairs::begin_close(const PairCall& call) {
  ServedPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  pair->is_ending = true;
  return core_.begin_close_pair(pair->handle);
}

void ServedPairs::end_close(std::uint32_t index) {
  const auto found = pairs_.find(index);
  const ServedPair& pair = found->second;
  room_.give_back(pair.share);
  domains_.leave(pair.domain);
  by_cookie_.erase(pair.cookie);
  pairs_.erase(found);
}

Result<qp::Withdrawal> ServedPairs::begin_change(const PairCall& call) {
  ServedPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  const auto attributes = from_plain(call.attributes);
  if (!attributes || call.from > std::to_underlying(QpState::err)) return senseless("a change of a queue pair");
  const auto from = static_cast<QpState>(call.from);
  if (!is_legal(pair->type, from, attributes->state)) return senseless("a change of a queue pair");
  if (pair->is_resetting) return refused(Status::again, "queue pair: its reset is not over yet");
  qp::Withdrawal withdrawal;
  const Status status = core_.begin_change_pair(pair->handle, from, *attributes, withdrawal);
  if (status != Status::ok) return refused(status, "queue pair: its state has changed meanwhile");
  if (attributes->state == QpState::reset) {
    pair->incarnation = call.incarnation;
    pair->is_resetting = true;
  }
  pair->takes_posts = attributes->state != QpState::reset;
  return withdrawal;
}

void ServedPairs::end_change(const PairCall& call) {
  if (ServedPair* const pair = find(call.object, call.generation); pair != nullptr) pair->is_resetting = false;
}

Result<qp::Withdrawal> ServedPairs::begin_fail(const PairCall& call) {
  const ServedPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  verbs::QpAttributes attributes = core_.pair_facts(pair->handle).attributes;
  const QpState from = std::exchange(attributes.state, QpState::err);
  qp::Withdrawal withdrawal;
  if (is_legal(pair->type, from, QpState::err)) core_.begin_change_pair(pair->handle, from, attributes, withdrawal);
  return withdrawal;
}

}  // namespace fairlead::host
