#pragma once
// A host engine with many peers restarts: how long until all of them can send to it again, and what that costs. Whole
// links on virtual time. The engine takes one datagram after the other, and its socket buffer holds a bounded number.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "base/ensure.hpp"
#include "link/link.hpp"

namespace fairlead::bench {

struct StormOptions {
  std::uint32_t peers = 1000;
  base::Duration spread = std::chrono::milliseconds(0);        // peers begin to send within this time
  base::Duration per_datagram = std::chrono::microseconds(5);  // the engine's time for one
  std::size_t buffer_datagrams = 2000;                         // 4 MiB, as the kernel charges short ones
  base::Duration one_way = std::chrono::microseconds(50);
  base::Duration retry_after = std::chrono::milliseconds(10);  // an application tries again
};

struct StormResult {
  base::Duration until_half{}, until_all{};   // since the peers began
  std::uint64_t arrived = 0, overflowed = 0;  // datagrams at the engine
  std::uint64_t refused_messages = 0;         // ended `restarted`, and sent again
  std::uint64_t given_up = 0;                 // ended `unreachable` or `silent`, and sent again
};

class RestartStorm {
 public:
  explicit RestartStorm(const StormOptions& options) : options_(options) {
    peers_.resize(options.peers);
    for (std::uint32_t i = 0; i < options.peers; ++i) {
      link::LinkOptions small;
      small.peers_max = 4;
      small.rooms_max = 64;
      small.messages_max = 64;
      small.parts_bytes = 65'536;
      small.half_open_max = 4;
      peers_[i].link = std::make_unique<link::Link>(small, random_() | 1, random_());
    }
    restart();
  }

  /// Makes the engine anew: its peers do not know.
  void restart() { engine_ = std::make_unique<link::Link>(link::LinkOptions{}, random_() | 1, random_()); }

  /// Each peer sends one message, again and again until it has arrived.
  StormResult send_all() {
    result_ = {};
    acknowledged_ = 0;
    const base::Instant began = now_;
    for (std::uint32_t i = 0; i < peers_.size(); ++i) {
      peers_[i].is_done = false;
      const auto spread = static_cast<std::uint64_t>(options_.spread.count());
      plan(now_ + base::Duration(spread == 0 ? 0 : static_cast<std::int64_t>(random_() % spread)), Event::Kind::begin,
           i);
    }
    while (acknowledged_ < peers_.size()) {
      ENSURE(!events_.empty(), "{} of {} messages have arrived", acknowledged_, peers_.size());
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      ENSURE(now_ - began < std::chrono::minutes(10), "the storm does not end");
      handle(event);
      if (result_.until_half == base::Duration{} && 2 * acknowledged_ >= peers_.size())
        result_.until_half = now_ - began;
    }
    result_.until_all = now_ - began;
    settle();
    return result_;
  }

 private:
  struct Peer {
    std::unique_ptr<link::Link> link;
    std::uint64_t word = 0;
    iovec piece{};
    bool is_done = true;
  };
  struct Event {
    enum class Kind : std::uint8_t { begin, peer_timer, engine_timer, to_peer, to_engine, engine_free };
    base::Instant at;
    std::uint64_t order = 0;
    Kind kind = Kind::begin;
    std::uint32_t peer = 0;
    std::shared_ptr<std::vector<std::byte>> bytes;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  static constexpr std::uint32_t kDatagram = 1472;

  static base::SocketAddress address_of(std::uint32_t number) {
    base::SocketAddress address;
    address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10};
    address.ip[13] = static_cast<std::uint8_t>(number >> 16);
    address.ip[14] = static_cast<std::uint8_t>(number >> 8);
    address.ip[15] = static_cast<std::uint8_t>(number);
    address.port = 20480;
    return address;
  }
  static constexpr std::uint32_t kEngine = 0;  // peer i has number i + 1

  void plan(base::Instant at, Event::Kind kind, std::uint32_t peer,
            std::shared_ptr<std::vector<std::byte>> bytes = {}) {
    events_.push({at, order_++, kind, peer, std::move(bytes)});
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::begin:
        return send(event.peer);
      case Event::Kind::peer_timer:
        peers_[event.peer].link->expire(now_);
        return drain_peer(event.peer);
      case Event::Kind::to_peer:
        peers_[event.peer].link->receive(address_of(kEngine), *event.bytes, now_, kDatagram);
        while (peers_[event.peer].link->next_delivery()) {
        }
        return drain_peer(event.peer);
      case Event::Kind::engine_timer:
        if (engine_timer_ <= now_) {
          engine_->expire(now_);
          drain_engine();
        }
        return;
      case Event::Kind::to_engine:
        ++result_.arrived;
        if (inbox_.size() >= options_.buffer_datagrams) {
          ++result_.overflowed;
          return;
        }
        inbox_.push({event.peer, event.bytes});
        if (!std::exchange(is_engine_busy_, true)) plan(now_ + options_.per_datagram, Event::Kind::engine_free, 0);
        return;
      case Event::Kind::engine_free:
        return take_one();
    }
  }

  void take_one() {
    const auto [from, bytes] = inbox_.front();
    inbox_.pop();
    engine_->receive(address_of(from + 1), *bytes, now_, kDatagram);
    while (engine_->next_delivery()) {
    }
    drain_engine();
    is_engine_busy_ = !inbox_.empty();
    if (is_engine_busy_) plan(now_ + options_.per_datagram, Event::Kind::engine_free, 0);
  }

  void send(std::uint32_t number) {
    Peer& peer = peers_[number];
    peer.piece = {&peer.word, sizeof peer.word};
    const auto to = peer.link->peer(address_of(kEngine), kDatagram, now_);
    ENSURE(to.has_value(), "a peer has no place for the engine");
    const Status status = peer.link->submit(
        *to, {.envelope = {}, .pieces = {&peer.piece, 1}, .size = sizeof peer.word, .cookie = 1}, now_);
    ENSURE(status == Status::ok, "a message was not taken: {}", to_string(status));
    drain_peer(number);
  }

  void drain_peer(std::uint32_t number) {
    Peer& peer = peers_[number];
    while (peer.link->next_notice()) {
    }
    while (const auto outcome = peer.link->next_outcome()) {
      if (outcome->status == Status::ok) {
        peer.is_done = true;
        ++acknowledged_;
        continue;
      }
      ++(outcome->status == Status::restarted ? result_.refused_messages : result_.given_up);
      plan(now_ + options_.retry_after, Event::Kind::begin, number);
    }
    post(*peer.link, number, Event::Kind::to_engine);
    if (const auto next = peer.link->next_deadline(); next != base::kNever && !peer.is_done)
      plan(std::max(next, now_), Event::Kind::peer_timer, number);
  }

  void drain_engine() {
    while (engine_->next_notice()) {
    }
    while (engine_->next_outcome()) {
    }
    post(*engine_, 0, Event::Kind::to_peer);
    if (const auto next = engine_->next_deadline(); next < engine_timer_ || engine_timer_ <= now_) {
      engine_timer_ = next;
      if (next != base::kNever) plan(std::max(next, now_), Event::Kind::engine_timer, 0);
    }
  }

  /// Sends what a link has; datagrams arrive after the way.
  void post(link::Link& from, std::uint32_t number, Event::Kind kind) {
    while (from.next_train(now_, 65'000, 64, train_)) {
      std::vector<std::byte> all;
      for (const iovec& piece : std::span(train_.pieces).first(train_.piece_count)) {
        const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
        all.insert(all.end(), bytes, bytes + piece.iov_len);
      }
      const std::uint32_t to = train_.to.ip[13] << 16 | train_.to.ip[14] << 8 | train_.to.ip[15];
      for (std::size_t at = 0; at < all.size(); at += train_.datagram_size) {
        const auto end = std::min<std::size_t>(all.size(), at + train_.datagram_size);
        auto bytes = std::make_shared<std::vector<std::byte>>(all.begin() + static_cast<std::ptrdiff_t>(at),
                                                              all.begin() + static_cast<std::ptrdiff_t>(end));
        plan(now_ + options_.one_way, kind, kind == Event::Kind::to_peer ? to - 1 : number, std::move(bytes));
      }
    }
  }

  /// Lets what is under way arrive.
  void settle() {
    const base::Instant end = now_ + std::chrono::seconds(2);
    while (!events_.empty() && events_.top().at < end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    now_ = end;
  }

  const StormOptions options_;
  std::mt19937_64 random_{20261125};
  base::Instant now_{std::chrono::seconds(100)};
  std::uint64_t order_ = 0;
  std::unique_ptr<link::Link> engine_;
  std::vector<Peer> peers_;
  std::priority_queue<Event> events_;
  std::queue<std::pair<std::uint32_t, std::shared_ptr<std::vector<std::byte>>>> inbox_;
  bool is_engine_busy_ = false;
  base::Instant engine_timer_ = base::kNever;
  std::size_t acknowledged_ = 0;
  link::Train train_;
  StormResult result_;
};

}  // namespace fairlead::bench
