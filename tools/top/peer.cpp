#include "tools/top/peer.hpp"

#include <vector>

#include "tools/base/text_table.hpp"
#include "tools/top/parts.hpp"

namespace fairlead::tools {
namespace {

using observe::StatsPart;
using observe::text_of;

std::string_view ip_of(std::string_view address) {
  std::string_view ip = address.substr(0, address.rfind(':'));
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip;
}

bool is_at(std::string_view address, std::string_view peer) {
  return !address.empty() && (address == peer || ip_of(address) == peer);
}

template <typename Record>
void keep(std::vector<Record>& records, observe::StatsText<64> Record::* address, std::string_view peer,
          observe::StatsSection& part) {
  std::erase_if(records, [&](const Record& record) { return !is_at(text_of(record.*address), peer); });
  part.total = static_cast<std::uint32_t>(records.size());
}

}  // namespace

SeenEngines engines_with_peer(SeenEngines seen, std::string_view peer) {
  for (SeenEngine& engine : seen.engines) {
    auto& parts = engine.view.header.parts;
    keep(engine.view.peers, &observe::StatsPeer::address, peer, parts[static_cast<std::size_t>(StatsPart::peers)]);
    keep(engine.view.pairs, &observe::StatsPair::peer, peer, parts[static_cast<std::size_t>(StatsPart::pairs)]);
  }
  std::erase_if(seen.engines, [](const SeenEngine& engine) { return engine.view.peers.empty(); });
  return seen;
}

std::string top_peers(const SeenEngine& engine, Instant now) {
  std::string text = engine_heading(engine, now);
  for (const std::byte* peer : records_of(engine, StatsPart::peers)) {
    TextTable table({"peer", ""});
    table.align_left(1);
    for (const observe::StatsField& field : observe::kStatsPeerFields)
      table.add({std::string(field.name), cell_of(field, peer)});
    text += "\n" + table.to_string();
  }
  return text + part_table(engine, StatsPart::pairs);
}

}  // namespace fairlead::tools
