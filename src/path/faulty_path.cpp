#include "path/faulty_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::path {
namespace {

// The upper half of a random value decides. Only integers are used, so every machine decides alike.
constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;

bool is_hit(std::uint64_t draw, Share share) {
  return (draw >> 32) < kWhole * share.per_million / kMillion;
}

std::uint64_t below(std::uint64_t draw, std::uint64_t bound) {
  return (draw >> 32) * bound >> 32;
}

// `longest` may exceed 32 bits: it is in nanoseconds.
base::Duration part_of(base::Duration longest, std::uint64_t draw) {
  const auto microseconds = static_cast<std::uint64_t>(longest.count()) / 1000 + 1;
  const std::uint64_t nanoseconds = below(draw, microseconds) * 1000 + (draw & 0xffff'ffff) * 1000 / kWhole;
  return std::min(base::Duration(static_cast<std::int64_t>(nanoseconds)), longest);
}

std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

FaultyPath::FaultyPath(std::unique_ptr<Path> below, const FaultPlan& plan)
    : below_(std::move(below)),
      plan_(plan),
      name_(fmt::format("{}+faulty", below_->name())),
      random_(plan.seed),
      pool_(kPoolBlocks) {
  reordered_.reserve(kReorderedMax);
}

FaultyPath::~FaultyPath() {
  for (const Reordered& held : reordered_) emit_held(held.name, held.until);
  for (; !waiting_.empty(); waiting_.pop()) emit_held(waiting_.top().name, waiting_.top().due);
}

FaultyPath::Fate FaultyPath::draw() {
  const std::uint64_t drop = random_(), corrupt = random_(), duplicate = random_(), reorder = random_();
  const std::uint64_t distance = random_(), jitter = random_(), jitter_of_copy = random_();
  const std::uint64_t damage = random_();
  return {.is_dropped = is_burst_loss(drop),
          .is_corrupted = is_hit(corrupt, plan_.corrupt),
          .is_duplicated = is_hit(duplicate, plan_.duplicate),
          .is_reordered = is_hit(reorder, plan_.reorder),
          .distance = plan_.distance_min +
                      static_cast<std::uint32_t>(path::below(distance, plan_.distance_max - plan_.distance_min + 1)),
          .wait = plan_.delay + part_of(plan_.jitter, jitter),
          .wait_of_copy = plan_.delay + part_of(plan_.jitter, jitter_of_copy),
          .damage = damage};
}

// For a share p in bursts of b datagrams, a burst begins at a datagram outside of bursts with p / (p + b (1 - p)).
bool FaultyPath::is_burst_loss(std::uint64_t draw) {
  if (burst_left_ > 0) {
    --burst_left_;
    return true;
  }
  const std::uint64_t share = plan_.drop.per_million;
  if (share == 0 || (draw >> 32) >= kWhole * share / (share + plan_.burst * (kMillion - share))) return false;
  burst_left_ = plan_.burst - 1;
  ++counters_.bursts;
  return true;
}

std::size_t FaultyPath::send(std::span<const Train> trains, base::Instant now) {
  for (std::size_t index = 0; index < trains.size(); ++index) {
    if (!release_due(now)) return index;
    take(trains[index], now);
  }
  return trains.size();
}

std::size_t FaultyPath::collect(std::span<Arrival> out, base::Instant now) {
  release_due(now);
  return below_->collect(out, now);
}

base::Instant FaultyPath::next_deadline() const {
  base::Instant next = below_->next_deadline();
  if (!reordered_.empty()) next = std::min(next, reordered_.front().until);
  if (!waiting_.empty()) next = std::min(next, std::max(waiting_.top().due, retry_at_));
  return next;
}

void FaultyPath::take(const Train& train, base::Instant now) {
  ENSURE(train.datagram_size > 0, "train without a datagram size");
  const std::size_t bytes = bytes_of(train.pieces);
  Run run;
  do {
    const Run datagram{run.end, std::min(run.end + train.datagram_size, bytes)};
    const Fate fate = draw();
    ++counters_.offered;
    if (fate.is_dropped) {
      ++counters_.dropped;
      emit(train, run, now);
      run = {datagram.end, datagram.end};
      continue;
    }
    const std::size_t older = reordered_.size();
    run.end = datagram.end;
    if (!fate.is_unharmed()) [[unlikely]] {
      emit(train, {run.first, datagram.first}, now);
      if (!harm(train, datagram, fate, now)) emit(train, datagram, now);
      run.first = datagram.end;
    }
    if (older > 0) [[unlikely]]
      let_by(train, run, older, now);
  } while (run.end < bytes);
  emit(train, run, now);
}

bool FaultyPath::harm(const Train& train, const Run& datagram, const Fate& fate, base::Instant now) {
  // A copy without delay leaves first, straight from the train: on the wire nobody can tell which one is the copy.
  if (fate.is_duplicated) {
    if (fate.wait_of_copy == base::Duration::zero()) {
      emit(train, datagram, now);
      ++counters_.duplicated;
    } else if (const std::uint32_t copy = keep(train, datagram); copy != DatagramPool::kNone) {
      pass_on(copy, fate.wait_of_copy, now);
      ++counters_.duplicated;
    }
  }
  const bool is_held = fate.is_reordered || fate.wait > base::Duration::zero();
  if (!is_held && !fate.is_corrupted) return false;
  const std::uint32_t name = keep(train, datagram);
  if (name == DatagramPool::kNone) return false;
  if (fate.is_corrupted && pool_.size(name) > 0) {
    const auto at = static_cast<std::uint32_t>(below(fate.damage, pool_.size(name)));
    pool_.byte(name, at) ^= static_cast<std::byte>(1 + (fate.damage & 0xffff) % 255);
    ++counters_.corrupted;
  }
  if (fate.is_reordered && reordered_.size() < kReorderedMax) {
    reordered_.push_back({name, fate.distance, fate.wait, now + plan_.hold});
    ++counters_.reordered;
  } else {
    counters_.pool_overran += fate.is_reordered ? 1 : 0;
    pass_on(name, fate.wait, now);
  }
  return true;
}

// The run's last datagram has passed the first `older` held ones. Those whose distance is reached follow it at once.
void FaultyPath::let_by(const Train& train, Run& run, std::size_t older, base::Instant now) {
  const auto end = reordered_.begin() + static_cast<std::ptrdiff_t>(older);
  const auto kept = std::remove_if(reordered_.begin(), end, [&](Reordered& held) {
    if (pool_.to(held.name) != train.to || --held.left > 0) return false;
    emit(train, run, now);
    run.first = run.end;
    pass_on(held.name, held.wait, now);
    return true;
  });
  reordered_.erase(kept, end);
}

void FaultyPath::pass_on(std::uint32_t name, base::Duration wait, base::Instant now) {
  if (wait > base::Duration::zero()) {
    ++counters_.delayed;
  } else if (!is_backed_up(now) && emit_held(name, now)) {
    return;
  }
  waiting_.push({now + wait, waits_++, name});
}

void FaultyPath::emit(const Train& train, const Run& run, base::Instant now) {
  if (run.first == run.end) return;
  pieces_.clear();
  std::size_t skip = run.first, left = run.end - run.first;
  for (const iovec& piece : train.pieces) {
    const std::size_t skipped = std::min(skip, piece.iov_len);
    const std::size_t taken = std::min(left, piece.iov_len - skipped);
    if (taken > 0) pieces_.push_back({static_cast<std::byte*>(piece.iov_base) + skipped, taken});
    skip -= skipped;
    left -= taken;
  }
  const Train part{train.to, pieces_, train.datagram_size};
  if (!is_backed_up(now)) {
    if (below_->send(std::span(&part, 1), now) == 1) return;
    retry_at_ = now + kRetryAfter;
  }
  // The first datagrams of the train may have left, so the train cannot be refused any more; the rest waits here.
  for (std::size_t at = run.first; at < run.end; at += train.datagram_size) {
    const std::uint32_t name = keep(train, {at, std::min<std::size_t>(at + train.datagram_size, run.end)});
    if (name == DatagramPool::kNone)
      ++counters_.lost_waiting;
    else
      waiting_.push({now, waits_++, name});
  }
}

bool FaultyPath::emit_held(std::uint32_t name, base::Instant now) {
  const Train train{pool_.to(name), pool_.pieces(name), std::max(pool_.size(name), 1u)};
  if (below_->send(std::span(&train, 1), now) == 0) {
    retry_at_ = now + kRetryAfter;
    return false;
  }
  release(name);
  return true;
}

// Returns false if the path below has no room for the datagrams that are due.
bool FaultyPath::release_due(base::Instant now) {
  while (!reordered_.empty() && reordered_.front().until <= now) [[unlikely]] {
    const Reordered expired = reordered_.front();
    reordered_.erase(reordered_.begin());
    ++counters_.reorder_expired;
    pass_on(expired.name, expired.wait, now);
  }
  while (is_backed_up(now)) {
    if (!emit_held(waiting_.top().name, now)) return false;
    waiting_.pop();
  }
  return true;
}

std::uint32_t FaultyPath::keep(const Train& train, const Run& datagram) {
  const std::uint32_t name =
      pool_.keep(train.to, train.pieces, datagram.first, static_cast<std::uint32_t>(datagram.end - datagram.first));
  (name == DatagramPool::kNone ? counters_.pool_overran : counters_.held) += 1;
  return name;
}

void FaultyPath::release(std::uint32_t name) {
  pool_.release(name);
  --counters_.held;
}

}  // namespace fairlead::path
