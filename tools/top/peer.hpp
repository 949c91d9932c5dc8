#pragma once
// `fairlead top --peer`: what the engines of this host know of one peer.

#include <string>
#include <string_view>

#include <fairlead/time.hpp>

#include "tools/top/engines.hpp"

namespace fairlead::tools {

/// Keeps only the engines that know the peer, and of their peers and queue pairs only its own. `peer`: an address as
/// the page has it, "10.0.0.5:20480" or "[::1]:20480"; without the port all peers at that IP address.
SeenEngines engines_with_peer(SeenEngines seen, std::string_view peer);

/// Returns all fields of the engine's peers, one below the other, and their queue pairs.
std::string top_peers(const SeenEngine& engine, Instant now);

}  // namespace fairlead::tools
