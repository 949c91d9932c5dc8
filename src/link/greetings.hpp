#pragma once
// Makes hellos: this side's half of a session and, for a sealed session, a handshake message (docs/seal.md).
//
// Sealed hellos that cross would make two sessions with different keys. The side with the smaller ephemeral key stays
// the initiator: it ignores the other's hello, and waits for the answer to its own.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/half.hpp"
#include "link/link_context.hpp"
#include "link/seal_settings.hpp"
#include "link/token_source.hpp"
#include "seal/handshake.hpp"
#include "wire/hello.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class Greetings {
 public:
  /// `sealing`: its keys may change, but whether it is set must not.
  Greetings(LinkContext& context, std::optional<SealSettings>& sealing, std::uint64_t epoch, TokenSource tokens)
      : context_(context), sealing_(sealing), epoch_(epoch), tokens_(tokens) {}

  Half new_half();
  /// Returns the half to put into an answer. If hellos cross, both sides keep the half that they offered, and so agree
  /// on one session.
  Half half_to_offer(const Peer& peer);
  wire::Hello hello_of(const Peer& peer, const Half& ours) const;
  /// Writes marks of this side's address and the peer's, and this release, into the header of a hello or hello_ack.
  void introduce(wire::Header& header, const base::SocketAddress& to) const;
  /// Reads them. If the marks differ from the addresses that this side knows, a NAT translates one of them.
  Introduction read_introduction(const wire::Header& header, const base::SocketAddress& from) const;
  /// Returns whether the hello is our own, sent back to us. With one shared secret it could pass for the peer's.
  bool is_own(const wire::Hello& hello) const { return hello.epoch == epoch_; }

  bool is_sealed_only(const base::SocketAddress& address, const Peer* peer) const;
  /// Returns whether our hello to this peer, and so its answer, have to be sealed.
  bool are_sealed_to(const Peer& peer) const {
    return peer.sealed_hello || peer.is_asked_to_seal || is_sealed_only(peer.address, &peer);
  }
  bool can_seal() const { return sealing_.has_value(); }
  /// Source of session tokens.
  TokenSource& tokens() { return tokens_; }
  /// Makes the sealed hello that opens a session, or that doubts an open one (`session`: its token). Returns false if
  /// there is no key for this peer (Peer::refused_here), or if there is no memory; then the next repeat tries again.
  bool make_sealed(Peer& peer, const Half& ours, std::uint64_t session);
  /// Answers a hello that `handshake` has read. Returns null if the peer's key is invalid; throws if there is no
  /// memory.
  std::unique_ptr<SealedCandidate> answer_sealed(const Peer& peer, const Half& ours, seal::Handshake& handshake,
                                                 const seal::PublicKey& ephemeral, base::Instant now);

 private:
  bool write_sealed(Peer& peer, const Half& ours, std::uint64_t session);

  LinkContext& context_;
  std::optional<SealSettings>& sealing_;
  const std::uint64_t epoch_;
  TokenSource tokens_;
};

}  // namespace fairlead::link
