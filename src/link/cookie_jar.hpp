#pragma once
// A stateless handshake, like SYN cookies: a stranger has to show that it receives what is sent to its address before
// this side keeps any state for it. The answer to its hello is a cookie, a keyed hash of its address and its hello. The
// stranger repeats the hello with the cookie. So an unproven hello costs one hash and leaves no state.
//
// The key is replaced every minute; cookies made with the previous key stay valid. Cookies of an earlier process are
// not valid, since each jar has keys of its own.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/token_source.hpp"

namespace fairlead::link {

class CookieJar {
 public:
  static constexpr base::Duration kFreshFor = std::chrono::minutes(1);

  /// `secrets` supplies the keys.
  explicit CookieJar(TokenSource& secrets)
      : secrets_(secrets), key_(secrets.next_key()), key_before_(secrets.next_key()) {}

  /// Returns the cookie for a sender and the payload of its hello; never 0.
  std::uint64_t bake(const base::SocketAddress& from, std::span<const std::byte> hello, base::Instant now);
  /// Returns whether this jar made the cookie for this sender and hello. A cookie is valid for one to two minutes.
  bool is_ours(std::uint64_t cookie, const base::SocketAddress& from, std::span<const std::byte> hello,
               base::Instant now);

 private:
  void change_keys(base::Instant now);

  TokenSource& secrets_;
  base::SipKey key_, key_before_;
  base::Instant stale_at_{};  // when key_ is to be replaced
};

}  // namespace fairlead::link
