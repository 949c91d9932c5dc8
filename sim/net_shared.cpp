#include "sim/net_shared.hpp"

#include "sim/pattern.hpp"

namespace fairlead::sim {

void NetShared::check_arrival(NetSendings& sendings, std::uint32_t to, const net::BufferEvent& event,
                              const std::string& at) {
  const auto bytes = event.buffer.bytes(event.offset, event.length);
  const auto found = sendings.find(name_in(bytes));
  SIM_CHECK(findings, found != sendings.end(), "{}: bytes that nobody sent", at);
  if (found == sendings.end()) return;
  NetSending& sending = found->second;
  SIM_CHECK(findings, sending.to == to, "{}: operation {} for somebody else", at, found->first);
  SIM_CHECK(findings, sending.size == event.length, "{}: {} bytes of the {} of operation {}", at, event.length,
            sending.size, found->first);
  SIM_CHECK(findings, !find_wrong(bytes, found->first), "{}: damaged bytes of operation {}", at, found->first);
  SIM_CHECK(findings, !sending.has_arrived, "{}: operation {} arrived twice", at, found->first);
  sending.has_arrived = true;
  if (!event.sender) return;
  SIM_CHECK(findings, event.sender.address() == sending.sender, "{} is not {}", event.sender.address(), sending.sender);
  const auto known = event.machine->create_end_point(event.sender.address());
  if (known) SIM_STATEMENT(*this, 9, *known == event.sender, "{}: a second end point for {}", at, sending.sender);
}

void NetShared::check_place(NetFilling& filling, const net::BufferEvent& event, std::uint64_t size_min,
                            const std::string& at) {
  SIM_STATEMENT(*this, 6,
                filling.messages_left > 0 && event.offset >= filling.end_of_last &&
                    event.offset + event.length <= event.buffer.size(),
                "{}: a message at {} behind {}, {} more wanted", at, event.offset, filling.end_of_last,
                filling.messages_left);
  if (filling.messages_left > 0) --filling.messages_left;
  filling.has_gap |= event.offset > filling.end_of_last;
  filling.end_of_last = event.offset + event.length;
  const std::uint64_t room = event.buffer.size() - filling.end_of_last;
  SIM_STATEMENT(*this, 7, event.is_final || (filling.messages_left > 0 && room >= size_min && event.room() >= size_min),
                "{}: a buffer goes on with {} bytes and {} messages left", at, room, filling.messages_left);
  SIM_STATEMENT(*this, 7, !event.is_final || filling.messages_left == 0 || room < size_min || filling.has_gap,
                "{}: a buffer ended with {} bytes and {} messages left", at, room, filling.messages_left);
}

}  // namespace fairlead::sim
