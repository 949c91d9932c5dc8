#pragma once
// Links joined by a simulated network on virtual time, for tests. The network delays, loses, repeats, reorders and
// damages datagrams from one seed. It checks that every submitted message has one outcome, and that every delivered one
// was submitted and arrives once and whole.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <vector>

#include "link/link.hpp"
#include "wire/segment.hpp"

namespace fairlead::link::testing {

using base::Duration;
using base::Instant;

struct Weather {
  double loss = 0, repeat = 0, damage = 0;
  Duration delay = 20us;
  Duration spacing{};  // between datagrams of one sender, like a line of finite rate
  Duration jitter{};   // additional delay, uniform; causes reordering
  // asked first; true loses the datagram
  std::function<bool(std::size_t from, std::span<const std::byte> bytes)> drops;
  // back-pressure: the path does not take the train now
  std::function<bool(std::size_t from, const Train& train)> refuses;
};

inline constexpr std::uint32_t kPathDatagram = 1472;

/// Marks that a link is at work, so that a test that watches allocations can attribute them.
struct LinkCall {
  static inline int depth = 0;
  LinkCall() { ++depth; }
  ~LinkCall() { --depth; }
  LinkCall(const LinkCall&) = delete;
  LinkCall& operator=(const LinkCall&) = delete;
};

class World {
 public:
  struct Sent {
    std::vector<std::byte> bytes;
    std::vector<iovec> pieces;
    std::size_t to = 0;
    Reference reference = 0;
    bool is_ended = false;
    Status status = Status::ok;
    Instant submitted, ended;
  };
  struct Received {
    std::vector<std::byte> bytes;
    std::uint64_t bytes_left = 0;
    bool is_complete = false;
    Instant completed;
  };
  struct End {
    base::SocketAddress address;
    std::unique_ptr<Link> link;
    std::map<std::uint64_t, Sent> sent;          // by the message's cookie
    std::map<std::uint64_t, Received> received;  // by envelope.cookie
    std::vector<std::uint64_t> completed;        // envelope.cookie, in the order of completion
    std::set<std::uint64_t> lost;                // by envelope.cookie: messages whose reassembly was lost
    std::vector<Notice> notices;
    std::uint64_t epoch = 0;
    bool is_deaf = false;  // a stopped process: receives and sends nothing
  };

  /// Seal settings of an end, if it seals.
  using Sealing = std::function<std::optional<SealSettings>(std::size_t end)>;

  explicit World(std::uint64_t seed, LinkOptions options = {}, std::size_t count = 2, Sealing its_sealing = {})
      : random(seed), sealing(std::move(its_sealing)), options_(options) {
    for (std::size_t i = 0; i < count; ++i) {
      ends.emplace_back();
      ends[i].address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<std::uint8_t>(i + 1)};
      ends[i].address.port = 20480;
      restart(i);
    }
  }

  /// Starts a new engine at the same address; the state of the old one is lost.
  void restart(std::size_t i) {
    End& end = ends[i];
    end.epoch = random() | 1;
    end.link = std::make_unique<Link>(options_, end.epoch, link_seed ? *link_seed : random(),
                                      sealing ? sealing(i) : std::nullopt);
    end.sent.clear();
    end.received.clear();
    end.lost.clear();
    end.notices.clear();
    end.is_deaf = false;
  }

  /// Takes a message back and overwrites its memory at once, so that a later read of it is found.
  bool cancel(std::size_t from, std::uint64_t cookie) {
    const auto found = ends[from].sent.find(cookie);
    if (found == ends[from].sent.end()) return false;
    const LinkCall call;
    const bool is_ended = ends[from].link->cancel(peer(from, found->second.to), found->second.reference, cookie);
    for (std::byte& byte : found->second.bytes) byte = ~byte;
    return is_ended;
  }

  PeerHandle peer(std::size_t from, std::size_t to) {
    return ends[from].link->peer(ends[to].address, path_datagram, now).value();
  }

  /// Submits a message of `size` bytes in `piece_count` pieces; returns its cookie.
  std::uint64_t send(std::size_t from, std::size_t to, std::size_t size, std::size_t piece_count = 1) {
    const std::uint64_t cookie = next_cookie_++;
    EXPECT_EQ(try_send(from, to, size, cookie, piece_count), Status::ok);
    return cookie;
  }

  Status try_send(std::size_t from, std::size_t to, std::size_t size, std::uint64_t cookie,
                  std::size_t piece_count = 1) {
    Sent sent;
    sent.to = to;
    sent.submitted = now;
    sent.bytes.resize(size);
    for (std::size_t i = 0; i < size; ++i) sent.bytes[i] = pattern(cookie, i);
    for (std::size_t i = 0; i < piece_count; ++i) {
      const std::size_t begin = size * i / piece_count, end = size * (i + 1) / piece_count;
      sent.pieces.push_back({sent.bytes.data() + begin, end - begin});
    }
    const auto [place, is_new] = ends[from].sent.emplace(cookie, std::move(sent));
    EXPECT_TRUE(is_new);
    const auto submit = [&]() -> Status {
      const LinkCall call;
      const auto handle = ends[from].link->peer(ends[to].address, path_datagram, now);
      if (!handle) return handle.error().status;
      return ends[from].link->submit(*handle,
                                     {.envelope = {.source_port = static_cast<std::uint32_t>(from),
                                                   .key = cookie * 3,
                                                   .cookie = cookie,
                                                   .a = size},
                                      .pieces = place->second.pieces,
                                      .size = size,
                                      .cookie = cookie,
                                      .is_ordered = sends_ordered},
                                     now, &place->second.reference);
    };
    const Status status = submit();
    if (status != Status::ok) ends[from].sent.erase(place);
    return status;
  }

  /// Lets every end send what it has, then advances to the next event. Returns false if no event is left.
  bool step() {
    for (std::size_t i = 0; i < ends.size(); ++i) drain(i);
    Instant next = in_flight.empty() ? base::kNever : in_flight.top().at;
    for (const End& end : ends) {
      if (!end.is_deaf) next = std::min(next, end.link->next_deadline());
    }
    if (next == base::kNever) return false;
    now = std::max(now, next);
    while (!in_flight.empty() && in_flight.top().at <= now) {
      const Datagram datagram = in_flight.top();
      in_flight.pop();
      arrive(datagram);
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (!ends[i].is_deaf) {
        const LinkCall call;
        ends[i].link->expire(now);
      }
      drain(i);
    }
    return true;
  }

  void run_for(Duration span) {
    const Instant end = now + span;
    for (std::size_t i = 0; i < ends.size(); ++i) drain(i);
    while (peek_next() <= end && step()) {
    }
    now = std::max(now, end);
  }

  /// Runs until every message has its outcome; fails after `limit` of virtual time.
  void run_until_ended(Duration limit = std::chrono::seconds(60)) {
    const Instant end = now + limit;
    while (!is_all_ended() && now < end && step()) {
    }
    EXPECT_TRUE(is_all_ended()) << "a message has no outcome after " << limit.count() / 1'000'000 << " ms";
  }

  bool is_all_ended() const {
    for (const End& end : ends) {
      for (const auto& [cookie, sent] : end.sent) {
        if (!sent.is_ended) return false;
      }
    }
    return true;
  }

  /// Checks that every message ended well and arrived once and whole, and that the links hold nothing any more.
  void expect_all_delivered() {
    for (const End& end : ends) {
      for (const auto& [cookie, sent] : end.sent) {
        EXPECT_EQ(sent.status, Status::ok) << cookie;
        const auto found = ends[sent.to].received.find(cookie);
        ASSERT_NE(found, ends[sent.to].received.end()) << cookie;
        EXPECT_TRUE(found->second.is_complete) << cookie;
      }
      EXPECT_EQ(end.link->counters().segments_in_flight, 0U);
      EXPECT_EQ(end.link->counters().messages_pending, 0U);
    }
    expect_consistent();
  }

  void expect_consistent() const {
    for (const End& end : ends) EXPECT_TRUE(end.link->counters().is_consistent());
  }

  void drain(std::size_t i) {
    End& end = ends[i];
    while (auto notice = end.link->next_notice()) {
      if (notice->kind == Notice::Kind::reassembly_lost && notice->target != 0) {
        end.received.erase(notice->target);
        end.lost.insert(notice->target);
      }
      end.notices.push_back(*notice);
    }
    while (auto outcome = end.link->next_outcome()) {
      const auto found = end.sent.find(outcome->cookie);
      ASSERT_NE(found, end.sent.end());
      EXPECT_FALSE(found->second.is_ended) << "two outcomes of message " << outcome->cookie;
      found->second.is_ended = true;
      found->second.status = outcome->status;
      found->second.ended = now;
    }
    if (end.is_deaf) return;
    const auto has_train = [&] {
      const LinkCall call;
      return end.link->next_train(now, 65'000, 64, train);
    };
    for (std::size_t trains = 0; has_train(); ++trains) {
      ASSERT_LT(trains, 1'000'000U) << "the link never stops sending";
      if (weather.refuses && weather.refuses(i, train)) {
        end.link->take_back(train, now);
        return;
      }
      post(i);
    }
  }

  struct Datagram {
    Instant at;
    std::uint64_t order = 0;
    std::size_t from = 0, to = 0;
    std::vector<std::byte> bytes;
    bool operator<(const Datagram& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::mt19937_64 random;
  std::optional<std::uint64_t> link_seed;
  Sealing sealing;  // for links made from now on
  Weather weather;
  Instant now{std::chrono::seconds(1)};
  std::vector<End> ends;
  std::priority_queue<Datagram> in_flight;
  std::uint64_t trace = 14695981039346656037U;  // hash of every byte on the network and its time
  std::uint32_t path_datagram = kPathDatagram;
  bool sends_ordered = false;  // applies to messages submitted from now on

  static std::byte pattern(std::uint64_t cookie, std::size_t i) {
    return static_cast<std::byte>((cookie * 131 + i * 7 + (i >> 8)) & 0xff);
  }

  std::size_t index_of(const base::SocketAddress& address) const {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].address == address) return i;
    }
    return ends.size();
  }

  /// Puts a datagram on the network that claims to come from `from`.
  void inject(std::size_t from, std::size_t to, std::vector<std::byte> bytes, Duration after = 1us) {
    in_flight.push({now + after, order_++, from, to, std::move(bytes)});
  }

 private:
  Instant peek_next() const {
    Instant next = in_flight.empty() ? base::kNever : in_flight.top().at;
    for (const End& end : ends) {
      if (!end.is_deaf) next = std::min(next, end.link->next_deadline());
    }
    return next;
  }

  bool happens(double probability) {
    return probability > 0 && std::uniform_real_distribution<>(0, 1)(random) < probability;
  }

  /// Cuts a train into datagrams and applies the weather to each.
  void post(std::size_t from) {
    ASSERT_GT(train.datagrams, 0U);
    ASSERT_LE(train.piece_count, Train::kPiecesInTrain);
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < train.piece_count; ++i) {
      const auto* begin = static_cast<const std::byte*>(train.pieces[i].iov_base);
      all.insert(all.end(), begin, begin + train.pieces[i].iov_len);
    }
    ASSERT_EQ(all.size(), train.bytes);
    ASSERT_EQ((all.size() + train.datagram_size - 1) / train.datagram_size, train.datagrams);
    const std::size_t to = index_of(train.to);
    for (std::size_t begin = 0; begin < all.size(); begin += train.datagram_size) {
      const std::size_t size = std::min<std::size_t>(train.datagram_size, all.size() - begin);
      std::vector<std::byte> bytes(all.begin() + begin, all.begin() + begin + size);
      if (to == ends.size()) continue;
      if (weather.drops && weather.drops(from, bytes)) continue;
      if (happens(weather.loss)) continue;
      const int copies = happens(weather.repeat) ? 2 : 1;
      for (int copy = 0; copy < copies; ++copy) {
        std::vector<std::byte> sent = bytes;
        if (happens(weather.damage)) sent[random() % sent.size()] ^= static_cast<std::byte>(1U << (random() % 8));
        line_free_at[from] = std::max(line_free_at[from], now) + weather.spacing;
        Duration delay = line_free_at[from] - now + weather.delay;
        if (weather.jitter > Duration::zero()) delay += Duration(random() % weather.jitter.count());
        inject(from, to, std::move(sent), delay);
      }
    }
  }

  void arrive(const Datagram& datagram) {
    End& end = ends[datagram.to];
    if (end.is_deaf) return;
    for (std::byte byte : datagram.bytes) trace = (trace ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
    trace ^= static_cast<std::uint64_t>(now.time_since_epoch().count());
    {
      const LinkCall call;
      end.link->receive(ends[datagram.from].address, datagram.bytes, now, path_datagram);
    }
    while (auto delivery = end.link->next_delivery()) take(end, *delivery);
  }

  void take(End& end, const Delivery& delivery) {
    const std::uint64_t id = delivery.envelope.cookie;
    EXPECT_EQ(delivery.envelope.key, id * 3);
    EXPECT_EQ(delivery.envelope.a, delivery.size);
    ASSERT_LE(delivery.offset + delivery.bytes.size(), delivery.size);
    for (std::size_t i = 0; i < delivery.bytes.size(); ++i) {
      ASSERT_EQ(delivery.bytes[i], pattern(id, delivery.offset + i)) << "message " << id << " is corrupt";
    }
    EXPECT_FALSE(end.lost.contains(id)) << "more of message " << id << ", which was lost";
    const bool is_new = !end.received.contains(id);
    EXPECT_EQ(delivery.is_first, is_new) << "message " << id << " came again";
    Received& received = end.received[id];
    if (is_new) {
      received.bytes_left = delivery.size;
      if (delivery.reassembly != Delivery::kWhole) end.link->set_target(delivery.peer, delivery.reassembly, id);
    } else {
      EXPECT_EQ(delivery.target, id);
    }
    ASSERT_FALSE(received.is_complete) << "message " << id << " came twice";
    ASSERT_GE(received.bytes_left, delivery.bytes.size());
    received.bytes_left -= delivery.bytes.size();
    EXPECT_EQ(delivery.is_last, received.bytes_left == 0);
    if (delivery.is_last) end.completed.push_back(id);
    received.is_complete = delivery.is_last;
    if (delivery.is_last) received.completed = now;
  }

  LinkOptions options_;
  std::map<std::size_t, Instant> line_free_at;
  std::uint64_t order_ = 0;
  std::uint64_t next_cookie_ = 1;
  Train train;
};

/// Opens a session between ends 0 and 1, with nothing pending.
inline void open_session(World& world) {
  world.send(0, 1, 8);
  world.run_until_ended();
  world.send(1, 0, 8);
  world.run_until_ended();
  world.run_for(std::chrono::milliseconds(10));
}

inline wire::Header header_of(std::span<const std::byte> datagram) {
  return wire::decode(datagram)->header;
}

}  // namespace fairlead::link::testing
