#include "link/greetings.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

#include "wire/checksum.hpp"

namespace fairlead::link {
namespace {

static_assert(wire::kTagBytes == seal::kTagBytes);
static_assert(wire::kSealedHelloBytes + wire::kSealedInnerBytes + seal::Handshake::kOverheadMost <=
              wire::kSealedHandshakeMost);

// The version in CMakeLists.txt; DoctorsPeer.Answers compares them.
constexpr std::uint64_t kRelease = 0U << 16 | 2U << 8 | 0U;

/// Returns a mark of an address, never 0.
wire::Sequence mark_of(const base::SocketAddress& address) {
  std::array<std::byte, sizeof address.ip + 2> bytes;
  std::ranges::transform(address.ip, bytes.begin(), [](std::uint8_t each) { return std::byte{each}; });
  bytes[sizeof address.ip] = static_cast<std::byte>(address.port & 0xFF);
  bytes[sizeof address.ip + 1] = static_cast<std::byte>(address.port >> 8);
  wire::Checksum mark;
  mark.add(bytes);
  return {std::max(mark.value(), 1U)};
}

}  // namespace

Half Greetings::new_half() {
  const std::uint64_t token = std::max<std::uint64_t>(tokens_.next(), 1);  // 0 means no token
  return {token, {static_cast<std::uint32_t>(tokens_.next())}};
}

Half Greetings::half_to_offer(const Peer& peer) {
  return peer.state == Peer::State::opening ? peer.ours : new_half();
}

wire::Hello Greetings::hello_of(const Peer& peer, const Half& ours) const {
  return {.epoch = epoch_,
          .token = ours.token,
          .window_bytes = context_.options.window_bytes,
          .initial_sequence = ours.first,
          .datagram_size_max = context_.options.datagram_size_max,
          .window_segments = context_.options.window_segments,
          .reassembly_slots = context_.options.reassembly_slots,
          .ack_after = wire::to_ticks(context_.options.ack_after),
          .slot = peer.slot};
}

void Greetings::introduce(wire::Header& header, const base::SocketAddress& to) const {
  header.ack_bitmap = kRelease;
  if (context_.options.own.port == 0) return;
  header.sequence = mark_of(context_.options.own);
  header.ack = mark_of(to);
}

Introduction Greetings::read_introduction(const wire::Header& header, const base::SocketAddress& from) const {
  constexpr wire::Sequence kNone{};
  const base::SocketAddress& own = context_.options.own;
  const bool has_marks = own.port != 0 && header.sequence != kNone && header.ack != kNone;
  return {.is_translated = has_marks && (header.sequence != mark_of(from) || header.ack != mark_of(own)),
          .release = static_cast<std::uint32_t>(header.ack_bitmap)};
}

bool Greetings::is_sealed_only(const base::SocketAddress& address, const Peer* peer) const {
  if (peer != nullptr && peer->sealed) return true;
  return sealing_ && base::contains(sealing_->required, address);
}

bool Greetings::make_sealed(Peer& peer, const Half& ours, std::uint64_t session) try {
  peer.sealed_hello.reset();
  peer.refused_here = seal::Refused::none;
  peer.cookie = 0;
  return write_sealed(peer, ours, session);
} catch (const std::bad_alloc&) {
  return false;
}

bool Greetings::write_sealed(Peer& peer, const Half& ours, std::uint64_t session) {
  if (!sealing_) {
    peer.refused_here = seal::Refused::cannot_seal;
    return false;
  }
  auto handshake = seal::Handshake::begin(*sealing_->ring, peer.address, peer.key_attempt, {}, sealing_->random);
  if (!handshake) {
    peer.refused_here = seal::Refused::unknown_key;
    return false;
  }
  HandshakeMessage message;
  wire::encode(wire::ReturnAddress{.slot = peer.slot, .token = ours.token}, message.bytes.data());
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  wire::encode(wire::SealedInner{.hello = hello_of(peer, ours), .session = session}, inner.data());
  message.size = wire::kSealedHelloBytes + inner.size() + handshake->overhead(0);
  if (!handshake->write(inner, message.bytes.data() + wire::kSealedHelloBytes)) {
    peer.refused_here = seal::Refused::wrong_key;
    return false;
  }
  peer.sealed_hello = std::make_unique<SealedHello>(std::move(*handshake), ours, message);
  return true;
}

std::unique_ptr<SealedCandidate> Greetings::answer_sealed(const Peer& peer, const Half& ours,
                                                          seal::Handshake& handshake, const seal::PublicKey& ephemeral,
                                                          base::Instant now) {
  auto sealed = std::make_unique<SealedCandidate>();
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  wire::encode(wire::SealedInner{.hello = hello_of(peer, ours)}, inner.data());
  sealed->answer.size = inner.size() + handshake.overhead(1);
  if (!handshake.write(inner, sealed->answer.bytes.data())) return nullptr;
  sealed->session = std::make_unique<SealedSession>(handshake, sealing_->maker, false, now);
  sealed->session->greeted_by = ephemeral;
  return sealed;
}

}  // namespace fairlead::link
