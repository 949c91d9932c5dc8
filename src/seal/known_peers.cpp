#include "seal/known_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "seal/hex.hpp"
#include "seal/words.hpp"

namespace fairlead::seal {
namespace {

constexpr std::string_view kAlgorithm = "x25519";

}  // namespace

Result<KnownPeers> KnownPeers::parse(std::string_view text, std::string_view path) {
  KnownPeers peers;
  std::vector<std::string_view> words;
  for (int line = 1; next_line(text, words); ++line) {
    if (words.empty()) continue;
    const auto wrong = [&](std::string_view why) {
      return std::unexpected(Error{Status::invalid, 0, fmt::format("{}:{}: {}", path, line, why)});
    };
    if (words.size() < 3 || words[1] != kAlgorithm) return wrong("want ADDRESS[,ADDRESS...] x25519 KEY");
    auto ranges = base::parse_ranges(words[0]);
    if (!ranges) return wrong(ranges.error().message);
    PublicKey key;
    if (!from_hex(words[2], key)) return wrong("a public key has 64 hexadecimal digits");
    peers.add(std::move(*ranges), key);
  }
  return peers;
}

void KnownPeers::add(std::vector<base::AddressRange> ranges, const PublicKey& key) {
  entries_.push_back({std::move(ranges), key});
}

bool KnownPeers::is_known(const base::SocketAddress& address, const PublicKey& key) const {
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.key == key && base::contains(entry.ranges, address); });
}

const PublicKey* KnownPeers::key_of(const base::SocketAddress& address, std::uint32_t turn) const {
  std::vector<const PublicKey*> keys;
  for (const Entry& entry : entries_) {
    if (base::contains(entry.ranges, address)) keys.push_back(&entry.key);
  }
  return keys.empty() ? nullptr : keys[turn % keys.size()];
}

std::string known_peers_line(std::string_view addresses, const PublicKey& key) {
  return fmt::format("{} {} {}", addresses, kAlgorithm, to_hex(key));
}

}  // namespace fairlead::seal
