#include "tests/stranger.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto kRepeatAfter = 50ms;

iovec piece_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

Stranger::Stranger(const base::SocketAddress& target, const std::string& ip, std::uint16_t port_first)
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), target_(target) {
  sockaddr_in6 kernel{};
  constexpr int kPortsTried = 1000;
  bool is_bound = false;
  for (int tried = 0; !is_bound && tried < (port_first == 0 ? 1 : kPortsTried); ++tried) {
    const auto wanted = base::SocketAddress::from_ip(ip, static_cast<std::uint16_t>(port_first + tried));
    const unsigned length = wanted->to_kernel(reinterpret_cast<sockaddr*>(&kernel), AF_INET);
    is_bound = ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&kernel), length) == 0;
  }
  EXPECT_TRUE(is_bound) << ip;
  socklen_t bound = sizeof kernel;
  EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&kernel), &bound), 0);
  address_ = *base::SocketAddress::from_kernel(reinterpret_cast<const sockaddr*>(&kernel), bound);
  const int much = 4 << 20;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &much, sizeof much);
  tokens_ = std::uint64_t{address_.port} << 32;
}

// The session --------------------------------------------------------------------------------------------------------

bool Stranger::open_session(Limit limit) {
  if (!greet(limit)) return false;
  acknowledge();  // carries their token, which opens the session
  return true;
}

bool Stranger::greet(Limit limit) {
  theirs_.reset();
  is_closed_ = false;
  unacked_.clear();
  run_.clear();
  ahead_.clear();
  expected_ = told_ = {};
  next_ = own.initial_sequence;
  cookie_ = 0;
  own.token = ++tokens_;
  Bytes hello(wire::kHelloBytes);
  wire::encode(own, hello.data());
  const Instant end = std::chrono::steady_clock::now() + limit;
  while (!theirs_ && std::chrono::steady_clock::now() < end) {
    send_segment(header_of(wire::Kind::hello), hello);
    const Instant repeat_at = std::chrono::steady_clock::now() + kRepeatAfter;
    const std::uint64_t shown = cookie_;
    while (!theirs_ && cookie_ == shown && std::chrono::steady_clock::now() < repeat_at) receive_one(kRepeatAfter);
  }
  return theirs_.has_value();
}

wire::Header Stranger::header_of(wire::Kind kind) {
  wire::Header header;
  header.kind = kind;
  header.slot = theirs_ ? theirs_->slot : 0;
  header.token = theirs_ ? theirs_->token : cookie_;
  header.sequence = next_;
  header.ack = told_;
  if (!acknowledges) return header;
  header.ack = told_ = expected_;
  for (const std::uint32_t sequence : ahead_) {
    const std::int32_t bit = wire::distance(expected_, {sequence}) - 1;
    if (bit >= 0 && bit < 64) header.ack_bitmap |= std::uint64_t{1} << bit;
  }
  return header;
}

// Saying -------------------------------------------------------------------------------------------------------------

void Stranger::say(const wire::Envelope& envelope, std::span<const std::byte> bytes) {
  const std::size_t length = wire::whole_bytes(bytes.size());
  if (wire::aligned(run_.size()) + length > kSegmentMost) flush();
  const std::size_t begin = wire::aligned(run_.size());
  run_.resize(begin + length);
  wire::encode_whole(envelope, static_cast<std::uint16_t>(bytes.size()), run_.data() + begin);
  std::ranges::copy(bytes, run_.begin() + static_cast<std::ptrdiff_t>(begin + wire::kRecordBytes));
}

void Stranger::say_chunk(const wire::Envelope& envelope, const wire::Chunk& chunk, std::span<const std::byte> bytes) {
  flush();
  run_.resize(wire::kRecordBytes + wire::kChunkBytes + bytes.size());
  wire::encode_chunk(envelope, chunk, static_cast<std::uint16_t>(bytes.size()), run_.data());
  std::ranges::copy(bytes, run_.begin() + wire::kRecordBytes + wire::kChunkBytes);
  flush();
}

void Stranger::flush() {
  if (run_.empty() || !theirs_) return;
  // The target's socket holds only so many datagrams. More would be lost.
  for (int rounds = 0; rounds < 400 && unacked_.size() >= kInFlightMost && !is_closed_; ++rounds) {
    if (!receive_one(kRepeatAfter)) resend();
  }
  wire::Header header = header_of(wire::Kind::data);
  header.flags = wire::Flags::kAnswerAtOnce;
  send_segment(header, run_);
  unacked_.emplace(static_cast<std::uint32_t>(wire::distance(own.initial_sequence, next_)), std::exchange(run_, {}));
  ++next_;
}

void Stranger::resend() {
  for (const auto& [number, payload] : unacked_) {
    wire::Header header = header_of(wire::Kind::data);
    header.sequence = own.initial_sequence + number;
    header.flags = wire::Flags::kAnswerAtOnce;
    send_segment(header, payload);
  }
}

bool Stranger::settle(Limit limit) {
  flush();
  const Instant end = std::chrono::steady_clock::now() + limit;
  while (!unacked_.empty() && !is_closed_ && std::chrono::steady_clock::now() < end) {
    if (!receive_one(kRepeatAfter)) resend();
  }
  while (receive_one(0ms)) {
  }
  return unacked_.empty() && !is_closed_;
}

Stranger::Bytes Stranger::datagram_of(const wire::Header& header, std::span<const std::byte> payload) {
  Bytes datagram(wire::kSegmentHeaderBytes + payload.size());
  wire::encode(header, datagram.data());
  std::ranges::copy(payload, datagram.begin() + wire::kSegmentHeaderBytes);
  const iovec rest = piece_of(std::span(datagram).subspan(wire::kSegmentHeaderBytes));
  wire::add_checksum(std::span(datagram).first(wire::kSegmentHeaderBytes), {&rest, 1});
  return datagram;
}

Stranger::Bytes Stranger::record_of(const wire::Envelope& envelope) {
  Bytes record(wire::whole_bytes(0));
  wire::encode_whole(envelope, 0, record.data());
  return record;
}

Stranger::Bytes Stranger::datagram_of(const wire::Hello& hello) {
  Bytes payload(wire::kHelloBytes);
  wire::encode(hello, payload.data());
  wire::Header header;
  header.kind = wire::Kind::hello;
  header.slot = hello.slot;
  return datagram_of(header, payload);
}

void Stranger::send_segment(const wire::Header& header, std::span<const std::byte> payload) {
  send_datagram(datagram_of(header, payload));
}

void Stranger::send_datagram(std::span<const std::byte> datagram) {
  sockaddr_in6 kernel{};
  const unsigned length = target_.to_kernel(reinterpret_cast<sockaddr*>(&kernel), AF_INET);
  // A datagram that the kernel does not take is lost, as on a wire.
  (void)::sendto(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&kernel), length);
}

// Hearing ------------------------------------------------------------------------------------------------------------

bool Stranger::listen(std::size_t count, Limit limit) {
  const std::size_t wanted = heard_count_ + count;
  const Instant end = std::chrono::steady_clock::now() + limit;
  while (heard_count_ < wanted && !is_closed_ && std::chrono::steady_clock::now() < end) {
    if (!receive_one(kRepeatAfter)) resend();
  }
  return heard_count_ >= wanted;
}

bool Stranger::receive_one(Limit limit) {
  pollfd look{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&look, 1, static_cast<int>(limit.count())) <= 0) return false;
  const ssize_t size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
  if (size < 0) return false;  // an ICMP error for an earlier datagram
  if (const auto frame = wire::decode(std::span(buffer_).first(static_cast<std::size_t>(size)))) on_segment(*frame);
  return true;
}

void Stranger::on_segment(const wire::Frame& frame) {
  const wire::Header& header = frame.header;
  if (header.kind == wire::Kind::reset) is_closed_ = is_closed_ || (theirs_ && header.token == theirs_->token);
  if (header.token != own.token) return;
  if (header.kind == wire::Kind::hello_retry) {
    cookie_ = wire::read_retry(frame.payload);
    return;
  }
  if (header.kind == wire::Kind::hello_ack) {
    if (theirs_) return;
    theirs_ = wire::read_hello(frame.payload);
    expected_ = told_ = theirs_->initial_sequence;
    return;
  }
  take_ack(frame);
  if (header.kind == wire::Kind::close) is_closed_ = true;
  if (header.kind != wire::Kind::data) return;
  if (wire::distance(expected_, header.sequence) >= 0 && ahead_.insert(header.sequence.value).second) {
    for (wire::RecordReader reader(frame.payload); !reader.is_empty();) {
      const wire::Record record = reader.next();
      heard_.push_back({record.envelope, record.chunk, {record.bytes.begin(), record.bytes.end()}});
      ++heard_count_;
    }
    for (; ahead_.erase(expected_.value) != 0; ++expected_) {
    }
  }
  if (acknowledges) acknowledge();
}

void Stranger::take_ack(const wire::Frame& frame) {
  const wire::Header& header = frame.header;
  std::erase_if(unacked_, [&](const auto& sent) {
    const std::int32_t beyond = wire::distance(header.ack, own.initial_sequence + sent.first);
    return beyond < 0 || (beyond >= 1 && beyond <= 64 && ((header.ack_bitmap >> (beyond - 1)) & 1) != 0);
  });
}

void Stranger::acknowledge() {
  send_segment(header_of(wire::Kind::ack));
}

}  // namespace fairlead::tests
