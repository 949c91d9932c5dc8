#include "link/cookie_jar.hpp"

#include <algorithm>
#include <cstring>

namespace fairlead::link {
namespace {

std::uint64_t cookie_of(const base::SipKey& key, const base::SocketAddress& from, std::span<const std::byte> hello) {
  base::SipHash hash(key);
  hash.add(std::as_bytes(std::span(from.ip)));
  hash.add(std::uint64_t{from.scope} << 32 | from.port);
  hash.add(hello);
  return std::max<std::uint64_t>(hash.value(), 1);  // 0 means no cookie
}

}  // namespace

void CookieJar::change_keys(base::Instant now) {
  if (now < stale_at_) return;
  key_before_ = now - stale_at_ < kFreshFor ? key_ : secrets_.next_key();
  key_ = secrets_.next_key();
  stale_at_ = now + kFreshFor;
}

std::uint64_t CookieJar::bake(const base::SocketAddress& from, std::span<const std::byte> hello, base::Instant now) {
  change_keys(now);
  return cookie_of(key_, from, hello);
}

bool CookieJar::is_ours(std::uint64_t cookie, const base::SocketAddress& from, std::span<const std::byte> hello,
                        base::Instant now) {
  change_keys(now);
  return cookie != 0 && (cookie == cookie_of(key_, from, hello) || cookie == cookie_of(key_before_, from, hello));
}

}  // namespace fairlead::link
