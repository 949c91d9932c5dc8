#pragma once
// What a stranger has to show before anything is kept of it: that it hears what is sent to its address. Its hello is
// answered by a cookie, a hash of its address and of what it said under a key that only we have, and comes again with
// it. So an unproven hello costs one hash and leaves nothing behind; one that shows its cookie was sent by somebody who
// can read what goes to that address.
//
// The key is made anew every minute; cookies of the minute before are still good. Those of another life are not: the
// key is of this jar.

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

  /// Keys come from `secrets`.
  explicit CookieJar(TokenSource& secrets)
      : secrets_(secrets), key_(secrets.next_key()), key_before_(secrets.next_key()) {}

  /// For the sender of a hello with this payload; never 0.
  std::uint64_t bake(const base::SocketAddress& from, std::span<const std::byte> hello, base::Instant now);
  /// Whether this jar gave it to this sender for this hello, less than one to two minutes ago.
  bool is_ours(std::uint64_t cookie, const base::SocketAddress& from, std::span<const std::byte> hello,
               base::Instant now);

 private:
  void change_keys(base::Instant now);

  TokenSource& secrets_;
  base::SipKey key_, key_before_;
  base::Instant stale_at_{};  // key_
};

}  // namespace fairlead::link
