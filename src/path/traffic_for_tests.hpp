#pragma once
// For tests of paths: datagrams whose contents reveal a wrong cut, and a collector that waits.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "path/udp_path.hpp"

namespace fairlead::path {

using Bytes = std::vector<std::byte>;

struct Datagram {
  base::SocketAddress from;
  Bytes bytes;
};

/// Makes bytes that depend on their position and on the tag.
inline Bytes pattern(std::size_t length, std::uint32_t tag) {
  Bytes bytes(length);
  std::uint32_t state = tag * 2'654'435'761u + 1;
  for (std::byte& byte : bytes) {
    state = state * 1'664'525u + 1'013'904'223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

/// Sends one train of one piece; returns true if it was taken.
inline bool send_bytes(Path& path, const base::SocketAddress& to, Bytes& bytes, std::uint32_t datagram_size) {
  const iovec piece{bytes.data(), bytes.size()};
  const Train train{to, std::span(&piece, 1), datagram_size};
  return path.send(std::span(&train, 1), base::Instant{}) == 1;
}

inline void cut(const Arrival& arrival, std::vector<Datagram>& out) {
  for (std::size_t at = 0; at < arrival.bytes.size(); at += arrival.datagram_size) {
    const auto piece =
        arrival.bytes.subspan(at, std::min<std::size_t>(arrival.datagram_size, arrival.bytes.size() - at));
    out.push_back({arrival.from, Bytes(piece.begin(), piece.end())});
  }
}

/// Collects until `count` datagrams have arrived, or nothing comes for a second.
inline std::vector<Datagram> collect_datagrams(Path& path, std::size_t count) {
  std::vector<Datagram> found;
  std::array<Arrival, 16> arrivals;
  for (int look = 0; look < 10'000 && found.size() < count; ++look) {
    const std::size_t taken = path.collect(arrivals, base::Instant{});
    for (const Arrival& arrival : std::span(arrivals).first(taken)) cut(arrival, found);
    if (taken > 0) continue;
    pollfd waiting{path.descriptor(), POLLIN, 0};
    if (::poll(&waiting, 1, 1000) <= 0) break;
  }
  return found;
}

inline std::unique_ptr<UdpPath> open_path(const char* ip, UdpOptions options = {}) {
  options.local = *base::SocketAddress::from_ip(ip, options.local.port);
  auto path = UdpPath::open(options);
  EXPECT_TRUE(path) << path.error().message;
  return path ? std::move(*path) : nullptr;
}

}  // namespace fairlead::path
