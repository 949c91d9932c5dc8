#pragma once
// One link (the host) that exchanges messages with many others, each at its own address. There is no network between
// them, and nothing is lost.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "link/link.hpp"

namespace fairlead::link::testing {

class Crowd {
 public:
  struct Guest {
    base::SocketAddress address;
    std::unique_ptr<Link> link;
    std::vector<Status> ends;  // outcomes of its messages
    std::vector<Notice> notices;
  };

  explicit Crowd(const LinkOptions& options) : host(options, 1, 1) { address = at("10.9.9.9", 20480); }

  static base::SocketAddress at(const std::string& ip, std::uint16_t port) {
    return *base::SocketAddress::from_ip(ip, port);
  }

  /// Makes a guest that the host does not know yet.
  Guest& guest(const base::SocketAddress& from) {
    Guest& made = guests[from];
    made.address = from;
    made.link = std::make_unique<Link>(LinkOptions{}, guests.size() + 2, guests.size() + 2);
    return made;
  }

  /// Sends a message from a guest to the host; returns false if it did not arrive. `span`: time limit.
  bool send(Guest& guest, base::Duration span = std::chrono::milliseconds(100)) {
    const std::uint64_t arrived = host.counters().messages_delivered;
    const std::size_t ended = guest.ends.size();
    const auto peer = guest.link->peer(address, 1472, now);
    EXPECT_EQ(guest.link->submit(*peer, {}, now), Status::ok);
    for (const base::Instant end = now + span; now < end && guest.ends.size() == ended;
         now += std::chrono::milliseconds(1))
      exchange(guest);
    exchange(guest);
    return host.counters().messages_delivered == arrived + 1;
  }

  /// Carries all datagrams that the two have for each other now.
  void exchange(Guest& guest) {
    guest.link->expire(now);
    host.expire(now);
    for (bool any = true; any;) {
      any = carry(*guest.link, guest.address);
      any |= carry(host, address);
      while (const auto outcome = guest.link->next_outcome()) guest.ends.push_back(outcome->status);
      while (const auto notice = guest.link->next_notice()) guest.notices.push_back(*notice);
      while (const auto outcome = host.next_outcome()) host_ends.push_back(outcome->status);
      while (const auto notice = host.next_notice()) host_notices.push_back(*notice);
    }
  }

  std::size_t count(const std::vector<Notice>& notices, Notice::Kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(notices, kind, &Notice::kind));
  }

  base::Instant now{std::chrono::seconds(1000)};
  Link host;
  base::SocketAddress address;
  std::vector<Status> host_ends;
  std::vector<Notice> host_notices;
  std::map<base::SocketAddress, Guest> guests;

 private:
  /// Carries one train of `from`; datagrams to unknown addresses are lost.
  bool carry(Link& from, const base::SocketAddress& own) {
    if (!from.next_train(now, 65'000, 1, train_)) return false;
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < train_.piece_count; ++i) {
      const auto* begin = static_cast<const std::byte*>(train_.pieces[i].iov_base);
      bytes.insert(bytes.end(), begin, begin + train_.pieces[i].iov_len);
    }
    const auto found = guests.find(train_.to);
    Link* to = train_.to == address ? &host : found != guests.end() ? found->second.link.get() : nullptr;
    if (to == nullptr) return true;
    to->receive(own, bytes, now, 1472);
    while (to->next_delivery()) {
    }
    return true;
  }

  Train train_;
};

}  // namespace fairlead::link::testing
