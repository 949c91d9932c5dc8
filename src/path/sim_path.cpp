#include "path/sim_path.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "path/sim_network.hpp"

namespace fairlead::path {
namespace {

std::vector<std::byte> join(std::span<const iovec> pieces) {
  std::vector<std::byte> bytes;
  for (const iovec& piece : pieces) {
    const auto* first = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), first, first + piece.iov_len);
  }
  return bytes;
}

}  // namespace

SimPath::~SimPath() {
  network_.detach(*this);
}

std::uint32_t SimPath::datagram_size_max(const base::SocketAddress& peer) {
  return network_.link(address_, peer).datagram_size_max;
}

std::size_t SimPath::send(std::span<const Train> trains, base::Instant now) {
  for (std::size_t index = 0; index < trains.size(); ++index) {
    const Train& train = trains[index];
    const std::vector<std::byte> bytes = join(train.pieces);
    ENSURE(train.datagram_size > 0 && bytes.size() <= kTrainBytesMax &&
               bytes.size() <= std::size_t{train.datagram_size} * kTrainDatagramsMax,
           "train of {} bytes in datagrams of {}", bytes.size(), train.datagram_size);
    const SimLink& link = network_.link(address_, train.to);
    const std::size_t size = std::min<std::size_t>(train.datagram_size, bytes.size());
    if (size > link.datagram_size_max) {
      counters_.send_too_big += 1;
      unreachable_.add({.to = train.to, .system_errno = EMSGSIZE});
      continue;
    }
    if (link.is_filtered) {
      counters_.send_not_permitted += 1;
      unreachable_.add({.to = train.to, .system_errno = EPERM});
      continue;
    }
    const bool is_full =
        link.is_senders_own && network_.queued_bytes(address_, train.to, now) + bytes.size() > link.queue_bytes_max;
    if (is_full || base::rare("sim path: send says later")) {
      counters_.send_later += 1;
      return index;
    }
    counters_.send_calls += 1;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      const std::size_t length = std::min(size, bytes.size() - at);
      network_.carry({address_, train.to, {bytes.begin() + at, bytes.begin() + at + length}}, now);
      counters_.datagrams_sent += 1;
    }
    counters_.bytes_sent += bytes.size();
  }
  return trains.size();
}

bool SimPath::deliver(const base::SocketAddress& from, std::vector<std::byte> bytes) {
  if (inbox_bytes_ + bytes.size() > options_.receive_buffer_bytes) return false;
  inbox_bytes_ += bytes.size();
  inbox_.push_back({from, std::move(bytes)});
  return true;
}

void SimPath::refuse(const base::SocketAddress& to) {
  unreachable_.add({to, ECONNREFUSED});
}

std::size_t SimPath::collect(std::span<Arrival> out, base::Instant) {
  handed_up_.clear();
  handed_up_.reserve(out.size());
  std::size_t taken = 0;
  for (; taken < out.size() && !inbox_.empty(); ++taken) {
    std::vector<std::byte> bytes;
    const base::SocketAddress from = inbox_.front().from;
    const std::size_t size = inbox_.front().bytes.size();
    // Like the kernel: one sender, equal sizes, and a shorter datagram is the last.
    for (std::uint32_t merged = 0; merged < kTrainDatagramsMax && !inbox_.empty(); ++merged) {
      Waiting& next = inbox_.front();
      if (merged > 0 &&
          (!options_.merges_arrivals || base::rare("sim path: a merge ends early") || next.from != from ||
           next.bytes.size() > size || bytes.size() % size != 0 || bytes.size() + next.bytes.size() > kTrainBytesMax))
        break;
      bytes.insert(bytes.end(), next.bytes.begin(), next.bytes.end());
      inbox_bytes_ -= next.bytes.size();
      counters_.datagrams_received += 1;
      inbox_.pop_front();
    }
    counters_.bytes_received += bytes.size();
    handed_up_.push_back(std::move(bytes));
    out[taken] = {from, handed_up_.back(), static_cast<std::uint32_t>(size)};
  }
  counters_.receive_calls += 1;
  return taken;
}

}  // namespace fairlead::path
