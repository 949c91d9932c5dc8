#pragma once
// What we say in hellos: our half of a session, and where it is sealed a message of a handshake (docs/seal.md).
//
// Hellos that cross would make two sessions of different keys. The one with the smaller ephemeral key stays the
// initiator: its own hello will be answered, and it leaves the other's alone.

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

namespace fairlead::link {

class Greetings {
 public:
  /// `sealing` may get other keys, but not come or go.
  Greetings(LinkContext& context, std::optional<SealSettings>& sealing, std::uint64_t epoch, TokenSource tokens)
      : context_(context), sealing_(sealing), epoch_(epoch), tokens_(tokens) {}

  Half new_half();
  /// Hellos that cross find both sides opening: each keeps the half it offered, so both come to the same session.
  Half half_to_offer(const Peer& peer);
  wire::Hello hello_of(const Peer& peer, const Half& ours) const;
  /// Somebody sends our hello back to us: where all have one secret it could be the peer's.
  bool is_own(const wire::Hello& hello) const { return hello.epoch == epoch_; }

  bool is_sealed_only(const base::SocketAddress& address, const Peer* peer) const;
  /// Whether our hello to it, and so its answer, have to be sealed.
  bool are_sealed_to(const Peer& peer) const {
    return peer.sealed_hello || peer.is_asked_to_seal || is_sealed_only(peer.address, &peer);
  }
  bool can_seal() const { return sealing_.has_value(); }
  /// Of sessions.
  TokenSource& tokens() { return tokens_; }
  /// Makes the sealed hello that opens a session, or doubts an open one (`session`: its token). False if there is no
  /// key to greet this peer with (Peer::refused_here); or, with nothing refused, no memory now: then it is made when it
  /// would be repeated.
  bool make_sealed(Peer& peer, const Half& ours, std::uint64_t session);
  /// To a hello of theirs that `handshake` has read. Null if their key is worthless; throws where there is no memory.
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
