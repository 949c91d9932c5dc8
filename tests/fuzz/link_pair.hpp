#pragma once
// Two links and a network controlled by the input. It submits, cancels and disconnects; time passes; datagrams are
// delivered, lost, repeated or changed. Changed datagrams mostly get a valid checksum, so that hostile but well-formed
// segments reach the link. Each message has at most one outcome, the books balance, and both links end clean. Encrypted
// links deliver only what was sent, and only once.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <utility>
#include <vector>

#include "link/link.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/sealing.hpp"
#include "wire/segment.hpp"

namespace fairlead::fuzz {

using namespace std::chrono_literals;

inline void expect(bool is_true, std::source_location place = std::source_location::current()) {
  if (is_true) return;
  std::fprintf(stderr, "not so: %s:%u\n", place.file_name(), static_cast<unsigned>(place.line()));
  std::abort();
}

struct Datagram {
  std::size_t to;
  std::vector<std::byte> bytes;
};

class LinkPair {
 public:
  explicit LinkPair(bool is_sealed) : is_sealed_(is_sealed) {
    link::LinkOptions options;
    options.window_segments = 64;
    options.window_bytes = 65'536;
    options.rooms_max = 128;
    options.peers_max = 4;
    options.half_open_max = 2;
    options.reassembly_slots = 2;
    for (std::size_t i = 0; i < 2; ++i) {
      addresses_[i].port = static_cast<std::uint16_t>(i + 1);
      links_[i] = std::make_unique<link::Link>(options, i + 1, i + 11,
                                               is_sealed ? std::optional(sealing_of(i + 1)) : std::nullopt);
    }
    for (std::size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  }

  void act(Script& script) {
    const std::uint8_t action = script.byte();
    const std::size_t i = action & 1;
    switch ((action >> 1) % 10) {
      case 0:
      case 1:
        return submit(i, script.take<std::uint16_t>());
      case 2:
        return drain();
      case 3:
      case 4:
        return deliver(1 + script.byte() % 16);
      case 5:
        return change(script);
      case 6:
        if (!network_.empty()) network_.pop_front();
        return;
      case 7:
        return repeat(script, (action & 0x80) != 0);
      case 8:
        return pass(base::Duration(script.take<std::uint16_t>()) * (1 << (script.byte() % 24)));
      default:
        if ((action & 0x40) == 0) {
          const std::uint64_t cookie = script.byte();
          links_[i]->cancel(peer(i), references_[i][cookie], cookie);
        } else if ((action & 0x20) == 0) {
          links_[i]->disconnect(peer(i), now_);
        } else {
          links_[i]->unreachable(addresses_[1 - i], static_cast<link::Obstacle>((action >> 4 & 1) + (action >> 7)),
                                 now_);
        }
    }
  }

  /// Stops all losses: everything must end.
  void finish() {
    for (int round = 0; round < 2000 && !(pending_[0].empty() && pending_[1].empty()); ++round) {
      drain();
      deliver(network_.size());
      pass(5ms);
    }
    expect(pending_[0].empty() && pending_[1].empty());
    check();
  }

 private:
  link::PeerHandle peer(std::size_t i) { return links_[i]->peer(addresses_[1 - i], 1472, now_).value(); }

  void submit(std::size_t i, std::uint32_t size) {
    size = size % 4 == 0 ? size : size % 2000;
    pieces_[0] = {payload_.data(), size / 2};
    pieces_[1] = {payload_.data() + size / 2, size - size / 2};
    const std::uint64_t cookie = next_cookie_++;
    const wire::Envelope envelope{.cookie = cookie};
    const Status status =
        links_[i]->submit(peer(i), {envelope, pieces_of(size), size, cookie, true}, now_, &references_[i][cookie]);
    expect(status == Status::ok || status == Status::again);
    if (status == Status::ok) pending_[i].insert(cookie);
    sizes_[cookie] = size;
  }

  /// Returns pieces that live as long as the message.
  std::span<const iovec> pieces_of(std::uint32_t size) {
    lists_.push_back({pieces_[0], pieces_[1]});
    expect(lists_.back()[0].iov_len + lists_.back()[1].iov_len == size);
    return lists_.back();
  }

  void drain() {
    for (std::size_t i = 0; i < 2; ++i) {
      while (auto outcome = links_[i]->next_outcome()) expect(pending_[i].erase(outcome->cookie) == 1);
      while (links_[i]->next_notice()) {
      }
      for (int trains = 0; links_[i]->next_train(now_, 65'000, 64, train_); ++trains) {
        expect(trains < 10'000);
        post(1 - i);
      }
    }
  }

  void post(std::size_t to) {
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < train_.piece_count; ++i) {
      const auto* begin = static_cast<const std::byte*>(train_.pieces[i].iov_base);
      all.insert(all.end(), begin, begin + train_.pieces[i].iov_len);
    }
    expect(all.size() == train_.bytes);
    for (std::size_t begin = 0; begin < all.size(); begin += train_.datagram_size) {
      const std::size_t size = std::min<std::size_t>(train_.datagram_size, all.size() - begin);
      if (network_.size() < 512) network_.push_back({to, {all.begin() + begin, all.begin() + begin + size}});
    }
  }

  void deliver(std::size_t count) {
    for (; count > 0 && !network_.empty(); --count) {
      const Datagram datagram = std::move(network_.front());
      network_.pop_front();
      link::Link& link = *links_[datagram.to];
      link.receive(addresses_[1 - datagram.to], datagram.bytes, now_, 1472);
      while (auto delivery = link.next_delivery()) {
        expect(delivery->offset + delivery->bytes.size() <= delivery->size);
        if (is_sealed_) expect_genuine(*delivery);
        if (delivery->reassembly != link::Delivery::kWhole) link.set_target(delivery->peer, delivery->reassembly, 1);
      }
    }
  }

  /// Checks, in an encrypted session, that the delivered bytes were sent, and each part only once.
  void expect_genuine(const link::Delivery& delivery) {
    const std::uint64_t cookie = delivery.envelope.cookie;
    const auto said = sizes_.find(cookie);
    expect(said != sizes_.end() && said->second == delivery.size);
    expect(std::ranges::equal(delivery.bytes, std::span(payload_).subspan(delivery.offset, delivery.bytes.size())));
    expect(delivered_.insert({cookie, delivery.offset}).second);
  }

  void repeat(Script& script, bool is_turned_back) {
    if (network_.empty()) return;
    Datagram again = network_[script.byte() % network_.size()];
    if (is_sealed_ && is_turned_back) again.to = 1 - again.to;
    network_.push_back(std::move(again));
  }

  void change(Script& script) {
    if (network_.empty()) return;
    std::vector<std::byte>& bytes = network_[script.byte() % network_.size()].bytes;
    for (int changes = 1 + script.byte() % 4; changes > 0; --changes) {
      bytes[script.take<std::uint16_t>() % bytes.size()] = static_cast<std::byte>(script.byte());
    }
    if (is_sealed_ && script.byte() % 2 == 0) return;  // a new checksum would change its packet number
    if (bytes.size() >= wire::kSegmentHeaderBytes) wire::add_checksum(bytes, {});
  }

  void pass(base::Duration span) {
    now_ += std::min<base::Duration>(span, 10s);
    for (auto& link : links_) {
      link->expire(now_);
      expect(link->next_deadline() > now_);
    }
    drain();
    check();
  }

  void check() const {
    for (std::size_t i = 0; i < 2; ++i) {
      expect(links_[i]->counters().is_consistent());
      expect(links_[i]->counters().messages_pending <= pending_[i].size());
    }
  }

  const bool is_sealed_;
  std::map<std::uint64_t, std::uint32_t> sizes_;  // of sent messages, by cookie
  std::map<std::uint64_t, link::Reference> references_[2];
  std::set<std::pair<std::uint64_t, std::uint64_t>> delivered_;
  base::SocketAddress addresses_[2];
  std::unique_ptr<link::Link> links_[2];
  std::set<std::uint64_t> pending_[2];
  std::deque<Datagram> network_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(1 << 16);
  iovec pieces_[2];
  std::deque<std::array<iovec, 2>> lists_;
  std::uint64_t next_cookie_ = 0;
  base::Instant now_{1s};
  link::Train train_;
};

}  // namespace fairlead::fuzz
