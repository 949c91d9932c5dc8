#pragma once
// An engine on virtual time, and a stranger that speaks the link's language to it and says what the input wants: so any
// envelope with any payload reaches the engine's faces, as it would from a peer that means harm.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::fuzz {

using namespace std::chrono_literals;

class Stranger {
 public:
  explicit Stranger(const engine::EngineOptions& options)
      : path_(std::move(*network_.attach(own()))),
        engine(std::make_unique<engine::Engine>(std::move(*network_.attach(target())), target(), options, 100, 7)),
        peer_(*link_.peer(target(), kDatagram, {})) {}

  static base::SocketAddress own() { return *base::SocketAddress::from_ip("10.0.0.9", 20480); }
  static base::SocketAddress target() { return *base::SocketAddress::from_ip("10.0.0.1", 20480); }

  void send(const wire::Envelope& envelope, std::size_t size) {
    const iovec& piece = pieces_.emplace_back(payload_.data(), std::min(size, payload_.size()));
    link_.submit(peer_, {.envelope = envelope, .pieces = {&piece, 1}, .size = piece.iov_len, .cookie = 1}, now);
  }
  static constexpr std::size_t kPayloadMost = 20'000;

  /// Lets both sides go on for so long, in a bounded number of steps.
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

  /// What the stranger has heard: each answer's name.
  std::uint64_t last_cookie() const { return last_cookie_; }

  base::Instant now{1s};

 private:
  static constexpr std::uint32_t kDatagram = 1472;

  void speak() {
    std::array<path::Arrival, 16> arrivals;
    const std::size_t count = path_->collect(arrivals, now);
    for (const path::Arrival& arrival : std::span(arrivals).first(count)) {
      for (auto rest = arrival.bytes; !rest.empty();) {
        const std::size_t size =
            arrival.datagram_size == 0 ? rest.size() : std::min<std::size_t>(arrival.datagram_size, rest.size());
        link_.receive(arrival.from, rest.first(size), now, kDatagram);
        while (const auto delivery = link_.next_delivery()) last_cookie_ = delivery->envelope.cookie;
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
      if (path_->send({&sent, 1}, now) == 1) continue;
      link_.take_back(train_, now);
      break;
    }
  }

  path::SimNetwork network_{1};
  std::unique_ptr<path::SimPath> path_;
  link::Link link_{link::LinkOptions{}, 900, 901};

 public:
  std::unique_ptr<engine::Engine> engine;

 private:
  link::PeerHandle peer_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(kPayloadMost, std::byte{0xEE});
  std::deque<iovec> pieces_;  // of all that was sent: the link refers to them
  link::Train train_;
  std::uint64_t last_cookie_ = 0;
};

}  // namespace fairlead::fuzz
