#include "host/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "host/call.hpp"
#include "shm/name.hpp"
#include "shm/users.hpp"

namespace fairlead::host {
namespace {

struct Row {
  PlainAddress engine{};
  std::uint32_t user = 0;
  std::int32_t process = 0;
  std::uint32_t ports = 0, ports_max = 0;
  std::uint64_t operations = 0, operations_max = 0;
  std::uint64_t seconds = 0, bytes_per_second = 0;
  std::uint32_t pairs = 0, pairs_max = 0;
  std::uint32_t events = 0, events_max = 0;
  std::uint64_t registered_bytes = 0, registered_max = 0;
};
static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) == kListedRowBytes &&
              kListedMost * sizeof(Row) <= kTextMost);

}  // namespace

std::string encode_listing(const std::vector<AttachedFact>& facts) {
  std::string bytes;
  for (const AttachedFact& fact : facts) {
    const Row row{.engine = to_plain(fact.engine),
                  .user = fact.user,
                  .process = fact.process,
                  .ports = fact.ports,
                  .ports_max = fact.ports_max,
                  .operations = fact.operations,
                  .operations_max = fact.operations_max,
                  .seconds = fact.seconds,
                  .bytes_per_second = fact.bytes_per_second,
                  .pairs = fact.pairs,
                  .pairs_max = fact.pairs_max,
                  .events = fact.events,
                  .events_max = fact.events_max,
                  .registered_bytes = fact.registered_bytes,
                  .registered_max = fact.registered_max};
    bytes.append(reinterpret_cast<const char*>(&row), sizeof row);
  }
  return bytes;
}

std::string encode_counters(const std::vector<observe::CounterFact>& counters) {
  std::string text;
  for (const observe::CounterFact& counter : counters) {
    const std::string line = fmt::format("{} {}\n", counter.name, counter.value);
    if (text.size() + line.size() > kTextMost) break;
    text += line;
  }
  return text;
}

std::vector<observe::CounterFact> decode_counters(std::string_view text) {
  std::vector<observe::CounterFact> counters;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t space = std::min(line.find(' '), line.size());
    observe::CounterFact counter{std::string(line.substr(0, space)), 0};
    const std::string_view value = line.substr(std::min(space + 1, line.size()));
    if (std::from_chars(value.data(), value.data() + value.size(), counter.value).ec == std::errc{})
      counters.push_back(std::move(counter));
  }
  return counters;
}

Result<std::vector<AttachedFact>> list_attached(const std::string& file, std::uint32_t rows_max) {
  const auto name = shm::Name::of_file(file);
  if (!name) return std::unexpected(name.error());
  shm::Users users;
  std::vector<AttachedFact> facts;
  std::uint64_t first = 0, next = 0;
  do {
    const auto socket = shm::Socket::connect(*name, users);
    if (!socket) return std::unexpected(socket.error());
    first = next;
    const auto answered = make_call(
        *socket, {.kind = static_cast<std::uint32_t>(Call::Kind::list), .count = rows_max, .application = first});
    if (!answered) return std::unexpected(answered.error());
    if (!answered->text.empty() && answered->answer.number != kListedRowBytes) {
      return std::unexpected(Error{Status::not_supported, 0,
                                   "this host engine lists its applications in another form: use the `fairlead ps` of "
                                   "its release"});
    }
    for (std::size_t at = 0; at + sizeof(Row) <= answered->text.size(); at += sizeof(Row)) {
      Row row;
      std::memcpy(&row, answered->text.data() + at, sizeof row);
      facts.push_back({.user = row.user,
                       .process = row.process,
                       .engine = from_plain(row.engine),
                       .ports = row.ports,
                       .operations = row.operations,
                       .seconds = row.seconds,
                       .pairs = row.pairs,
                       .ports_max = row.ports_max,
                       .pairs_max = row.pairs_max,
                       .operations_max = static_cast<std::uint32_t>(row.operations_max),
                       .events = row.events,
                       .events_max = row.events_max,
                       .registered_bytes = row.registered_bytes,
                       .registered_max = row.registered_max,
                       .bytes_per_second = row.bytes_per_second});
    }
    next = answered->answer.application;
  } while (next > first);
  std::ranges::sort(facts, {}, &AttachedFact::process);
  return facts;
}

}  // namespace fairlead::host
