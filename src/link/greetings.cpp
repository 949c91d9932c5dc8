#include "link/greetings.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

namespace fairlead::link {
namespace {

static_assert(wire::kTagBytes == seal::kTagBytes);
static_assert(wire::kSealedHelloBytes + wire::kSealedInnerBytes + seal::Handshake::kOverheadMost <=
              wire::kSealedHandshakeMost);

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
