#pragma once
// An engine on virtual time, and a stranger that speaks the link's protocol and sends what the input says. Any envelope
// with any payload reaches the engine, as from a malicious peer. With encryption the stranger is a peer with a key. An
// attacker without a key is then on the path: it replays and changes datagrams in both directions, and the engine
// accepts only what was sent, once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/ensure.hpp"
#include "engine/engine.hpp"
#include "path/sim_network.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/sealing.hpp"
#include "wire/segment.hpp"

namespace fairlead::fuzz {

using namespace std::chrono_literals;

class Stranger {
 public:
  explicit Stranger(const engine::EngineOptions& options, bool is_sealed = false)
      : path_(std::move(*network_.attach(own()))),
        link_(link::LinkOptions{}, 900, 901, is_sealed ? std::optional(sealing_of(2)) : std::nullopt),
        is_sealed_(is_sealed),
        engine(std::make_unique<engine::Engine>(std::move(*network_.attach(target())), target(), options, 100, 7,
                                                nullptr, is_sealed ? std::optional(sealing_of(1)) : std::nullopt)),
        peer_(*link_.peer(target(), kDatagram, {})) {}

  static base::SocketAddress own() { return *base::SocketAddress::from_ip("10.0.0.9", 20480); }
  static base::SocketAddress target() { return *base::SocketAddress::from_ip("10.0.0.1", 20480); }

  void send(const wire::Envelope& envelope, std::size_t size) {
    const iovec& piece = pieces_.emplace_back(payload_.data(), std::min(size, payload_.size()));
    const Status status =
        link_.submit(peer_, {.envelope = envelope, .pieces = {&piece, 1}, .size = piece.iov_len, .cookie = 1}, now);
    if (status != Status::ok) return;
    ++said_;
    said_words_.emplace(envelope.cookie, envelope.flags);
  }

  /// Acts as the attacker on the path, with encryption. Delivers one of the last datagrams again, to either end,
  /// changed or not. May hold back the next datagram, so that its changed copy arrives first.
  void meddle(Script& script) {
    const std::uint8_t how = script.byte();
    if (!is_sealed_ || seen_.empty()) return;
    holds_back_ = (how & 0x40) != 0;
    std::vector<std::byte> bytes = seen_[script.byte() % seen_.size()];
    for (int changes = how % 4; changes > 0 && !bytes.empty(); --changes)
      bytes[script.take<std::uint16_t>() % bytes.size()] = static_cast<std::byte>(script.byte());
    if ((how & 0x10) != 0 && bytes.size() >= wire::kSegmentHeaderBytes) wire::add_checksum(bytes, {});
    if ((how & 0x20) != 0) return hear(target(), bytes);
    const iovec piece{bytes.data(), bytes.size()};
    const path::Train sent{
        .to = target(), .pieces = {&piece, 1}, .datagram_size = static_cast<std::uint32_t>(bytes.size())};
    path_->send({&sent, 1}, now);
    run(100us);
  }
  /// Checks that a message with this name and word was sent and had not arrived before.
  void expect_said(std::uint64_t cookie, std::uint16_t flags) {
    const auto said = said_words_.find({cookie, flags});
    ENSURE(said != said_words_.end(), "message {} with word {} was not said", cookie, flags);
    said_words_.erase(said);
  }
  /// Checks that an encrypted session delivered only what was sent.
  void expect_genuine() const {
    for (const auto& counter : engine->facts().counters) {
      ENSURE(!is_sealed_ || counter.name != "link.messages_delivered" || counter.value <= said_,
             "{} messages came of {} that were said", counter.value, said_);
    }
  }
  static constexpr std::size_t kPayloadMost = 20'000;

  /// Runs both sides for `span`, with a bounded number of steps.
  void run(base::Duration span) {
    const base::Instant end = now + span;
    for (int steps = 0; steps < 400 && now < end; ++steps) {
      speak();
      const bool has_happened = engine->progress(now);
      engine->ports().notify_touched();
      base::Instant next = std::min({network_.next_event(), engine->next_deadline(), link_.next_deadline()});
      if (has_happened) next = now;
      now = std::min(end, std::max(next, now + 1us));
      network_.advance(now);
    }
    now = std::max(now, end);
  }

  /// The name in the last answer that the stranger received.
  std::uint64_t last_cookie() const { return last_cookie_; }

  base::Instant now{1s};

 private:
  static constexpr std::uint32_t kDatagram = 1472;

  static constexpr std::size_t kSeenMost = 16;

  void see(std::span<const std::byte> bytes) {
    if (!is_sealed_) return;
    seen_.emplace_back(bytes.begin(), bytes.end());
    if (seen_.size() > kSeenMost) seen_.pop_front();
  }
  /// Keeps the train's first datagram.
  void see(const link::Train& train) {
    if (!is_sealed_) return;
    std::vector<std::byte> all;
    for (const iovec& piece : std::span(train.pieces, train.piece_count)) {
      const auto* begin = static_cast<const std::byte*>(piece.iov_base);
      all.insert(all.end(), begin, begin + piece.iov_len);
    }
    see(std::span(all).first(std::min<std::size_t>(all.size(), train.datagram_size)));
  }

  void hear(const base::SocketAddress& from, std::span<const std::byte> bytes) {
    link_.receive(from, bytes, now, kDatagram);
    while (const auto delivery = link_.next_delivery()) last_cookie_ = delivery->envelope.cookie;
  }

  void speak() {
    std::array<path::Arrival, 16> arrivals;
    const std::size_t count = path_->collect(arrivals, now);
    for (const path::Arrival& arrival : std::span(arrivals).first(count)) {
      for (auto rest = arrival.bytes; !rest.empty();) {
        const std::size_t size =
            arrival.datagram_size == 0 ? rest.size() : std::min<std::size_t>(arrival.datagram_size, rest.size());
        see(rest.first(size));
        hear(arrival.from, rest.first(size));
        rest = rest.subspan(size);
      }
    }
    link_.expire(now);
    while (link_.next_outcome()) {
    }
    while (link_.next_notice()) {
    }
    while (link_.next_train(now, path_->train_bytes_max(), path_->train_datagrams_max(), train_)) {
      const path::Train sent{.to = train_.to,
                             .pieces = std::span<const iovec>(train_.pieces, train_.piece_count),
                             .datagram_size = train_.datagram_size};
      see(train_);
      if (std::exchange(holds_back_, false)) continue;
      if (path_->send({&sent, 1}, now) == 1) continue;
      link_.take_back(train_, now);
      break;
    }
  }

  path::SimNetwork network_{1};
  std::unique_ptr<path::SimPath> path_;
  link::Link link_;
  const bool is_sealed_;

 public:
  std::unique_ptr<engine::Engine> engine;

 private:
  link::PeerHandle peer_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(kPayloadMost, std::byte{0xEE});
  std::deque<iovec> pieces_;  // of all sent messages, because the link refers to them
  link::Train train_;
  std::uint64_t last_cookie_ = 0, said_ = 0;
  std::multiset<std::pair<std::uint64_t, std::uint16_t>> said_words_;  // not yet arrived
  bool holds_back_ = false;
  std::deque<std::vector<std::byte>> seen_;  // by the attacker on the path
};

}  // namespace fairlead::fuzz
