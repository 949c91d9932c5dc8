// Any bytes are a buffer descriptor that prints and reads as itself, or give an error of one line. The first byte says
// whether the rest gets a valid checksum, so that later checks are reached.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/ensure.hpp"
#include "net/passive_descriptor.hpp"
#include "wire/buffer_descriptor.hpp"
#include "wire/checksum.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  if (size == 0) return 0;
  const auto given = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> bytes(given.begin(), given.end());
  if ((data[0] & 1) != 0 && bytes.size() == wire::kBufferDescriptorBytes) {
    wire::Checksum checksum;
    checksum.add(std::span(bytes).first(60));
    const std::uint32_t value = checksum.value();
    std::memcpy(bytes.data() + 60, &value, sizeof value);
  }

  const auto facts = net::inspect(bytes);
  std::size_t uses = 0;
  for (const auto kind : {net::QueueKind::active_bulk_receive, net::QueueKind::active_bulk_send}) {
    const auto passive = net::decode_descriptor(bytes, kind, facts ? facts->size : 1);
    if (!passive) continue;
    ++uses;
    ENSURE(facts && passive->size == facts->size && passive->kind == facts->kind, "two readings of one descriptor");
    const auto again = net::encode_descriptor(*passive);
    ENSURE(std::ranges::equal(again, bytes), "it is not what it was read from");
  }
  ENSURE(uses == (facts ? 1 : 0), "{} uses of it", uses);
  if (!facts) {
    ENSURE(!facts.error().message.empty() && !facts.error().message.contains('\n'), "no line");
  }
  return 0;
}
