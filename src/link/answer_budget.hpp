#pragma once
// How many answers strangers get: senders of datagrams that prove nothing, who may be anybody, and many. Each host has
// a share of its own (with the few that its hash meets), and all have one in common. So a flood from one host uses up
// its own share and the common one, and others still have theirs; one from forged addresses costs us so much and no
// more.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::link {

class AnswerBudget {
 public:
  AnswerBudget(const base::SipKey& key, std::uint32_t each_per_second, std::uint32_t common_per_second);

  /// Whether one may go there now; then it counts.
  bool take(const base::SocketAddress& to, base::Instant now);

 private:
  static constexpr std::size_t kShares = 256;

  /// So many a second; up to a sixteenth of a second's at once.
  class Rate {
   public:
    explicit Rate(std::uint32_t per_second);
    bool take(base::Instant& used_until, base::Instant now) const;

   private:
    base::Duration each_;
  };

  base::SipKey key_;
  Rate of_each_, of_all_;
  std::array<base::Instant, kShares> each_used_until_{};
  base::Instant all_used_until_{};
};

}  // namespace fairlead::link
