#include "sim/watched_path.hpp"

#include "sim/addresses.hpp"
#include "wire/checksum.hpp"
#include "wire/segment.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kSent = 1, kCollected = 2;

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  wire::Checksum checksum;
  checksum.add(bytes);
  return checksum.value();
}

std::string_view kind_name(wire::Kind kind) {
  switch (kind) {
    case wire::Kind::hello:
      return "hello";
    case wire::Kind::hello_ack:
      return "hello_ack";
    case wire::Kind::data:
      return "data";
    case wire::Kind::ack:
      return "ack";
    case wire::Kind::reset:
      return "reset";
    case wire::Kind::close:
      return "close";
    case wire::Kind::probe:
      return "probe";
    case wire::Kind::probe_answer:
      return "probe_answer";
    case wire::Kind::part:
      return "part";
    case wire::Kind::hello_retry:
      return "hello_retry";
    case wire::Kind::hello_refused:
      return "hello_refused";
    case wire::Kind::rekey:
      return "rekey";
    case wire::Kind::rekey_answer:
      return "rekey_answer";
  }
  return "?";
}

}  // namespace

std::size_t WatchedPath::send(std::span<const path::Train> trains, base::Instant now) {
  now -= clock_offset_;
  const std::size_t taken = path_->send(trains, now);
  for (const path::Train& train : trains.first(taken)) {
    joined_.clear();
    for (const iovec& piece : train.pieces) {
      const auto* first = static_cast<const std::byte*>(piece.iov_base);
      joined_.insert(joined_.end(), first, first + piece.iov_len);
    }
    trace_.add(now, {kSent, host_, host_at(train.to), joined_.size(), train.datagram_size, checksum_of(joined_)});
    for (std::size_t at = 0; at < joined_.size(); at += train.datagram_size) {
      const auto rest = std::span<const std::byte>(joined_).subspan(at);
      look_at(train, rest.first(std::min<std::size_t>(train.datagram_size, rest.size())), now);
    }
    const auto quiet = given_up_.find(train.to);
    SIM_CHECK(findings_, quiet == given_up_.end() || quiet->second >= now,
              "host {} sent to host {}, which it had given up {} before", host_, host_at(train.to),
              to_text(now - quiet->second));
  }
  return taken;
}

void WatchedPath::look_at(const path::Train& train, std::span<const std::byte> bytes, base::Instant now) {
  const auto frame = wire::decode(bytes);
  if (!frame) return findings_.add("host {} sent a datagram that nobody can read", host_);
  const wire::Header& header = frame->header;
  trace_.say(now, "h{} -> h{}  {} seq {} ack {}+{:x} token {:x} flags {:x} {} B", host_, host_at(train.to),
             kind_name(header.kind), header.sequence.value, header.ack.value, header.ack_bitmap, header.token,
             header.flags, bytes.size());
  if (header.kind != wire::Kind::data) return;
  std::uint32_t& last = last_sequence_[train.to];
  has_wrapped_ = has_wrapped_ || (last > 0xffff'0000 && header.sequence.value < 0x1'0000);
  last = header.sequence.value;
}

std::size_t WatchedPath::collect(std::span<path::Arrival> out, base::Instant now) {
  now -= clock_offset_;
  const std::size_t count = path_->collect(out, now);
  for (const path::Arrival& arrival : out.first(count)) {
    given_up_.erase(arrival.from);
    sabotage_.spoil(arrival);
    trace_.add(now, {kCollected, host_, host_at(arrival.from), arrival.bytes.size(), arrival.datagram_size});
    trace_.say(now, "h{} <- h{}  {} B in datagrams of {}", host_, host_at(arrival.from), arrival.bytes.size(),
               arrival.datagram_size);
  }
  return count;
}

}  // namespace fairlead::sim
