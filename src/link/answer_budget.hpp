#pragma once
// Rate limit for answers to strangers: senders that have proven nothing, so their addresses may be forged. Each host
// has a share of its own (shared with the few hosts whose hashes collide); in addition, all hosts share one common
// budget. A flood from one host uses up its own share and the common budget, and other hosts keep their shares. A flood
// from forged addresses costs a bounded number of answers.

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

  /// Returns whether an answer may go to this host now, and if so charges it.
  bool take(const base::SocketAddress& to, base::Instant now);

 private:
  static constexpr std::size_t kShares = 256;

  /// A token bucket: `per_second` tokens a second, and a burst of up to 1/16 s.
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
