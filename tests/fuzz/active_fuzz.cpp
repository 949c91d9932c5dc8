// A peer sends any active message to a port: requests, replies, returned and rejected ones, packed, long and placed.
// What is handed up can be read and written to its end, placed bytes lie in the segment, and the bounds hold.

#include "base/ensure.hpp"
#include "engine/active_port.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/stranger.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::fuzz;

constexpr std::uint32_t kPort = 0x410000;
constexpr std::size_t kSegmentBytes = 4096, kArrivalsMax = 16;

class Target {
 public:
  Target() : world_(options()) {
    port_ = *world_.engine->open_port(kPort);
    ENSURE(world_.engine->port(port_)->events->reserve(64) == Status::ok, "no events");
    ENSURE(world_.engine->activate(port_) == Status::ok, "not active");
    active().rule = {engine::AccessRule::Kind::equal, 42};
    active().segment = {memory_.data() + kSegmentBytes, kSegmentBytes};
  }

  void act(Script& script) {
    switch (const std::uint8_t action = script.byte(); action % 8) {
      case 0:
        return take(script);
      case 1:
        return world_.run(std::chrono::microseconds(script.byte()));
      case 2:
        active().rule.kind = static_cast<engine::AccessRule::Kind>(script.byte() % 3);
        return;
      default:
        return send(script);
    }
  }

  void finish() {
    world_.run(5ms);
    while (engine::Arrival* arrival = active().next()) active().release(*arrival);
    world_.run(20s);  // what came in part is given up
    ENSURE(world_.engine->use().placements == 0, "{} placements are left", world_.engine->use().placements);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const bool is_segment = i >= kSegmentBytes && i < 2 * kSegmentBytes;
      ENSURE(is_segment || memory_[i] == std::byte{0}, "a byte beside the segment was written, at {}", i);
    }
  }

 private:
  static engine::EngineOptions options() {
    engine::EngineOptions options;
    for (const auto& [option, value] : {std::pair{engine::Option::active_memory_max, 1U << 20},
                                        {engine::Option::active_messages_max, kArrivalsMax},
                                        {engine::Option::operations_max, 64}}) {
      ENSURE(options.set(option, value).has_value(), "an option out of range");
    }
    return options;
  }

  engine::ActivePort& active() { return *world_.engine->port(port_)->active; }

  void send(Script& script) {
    const std::uint8_t shape = script.byte();
    const wire::Envelope envelope{
        .operation = static_cast<wire::Operation>(13 + shape % 4),
        .status = script.byte(),
        .flags = script.take<std::uint16_t>(),
        .source_port = script.byte(),
        .target_port = (shape & 0x80) != 0 ? static_cast<std::uint32_t>(script.near(kPort)) : kPort,
        .key = shape % 4 == 0 ? script.near(42) : script.near(active().secret()),
        .cookie = script.byte(),
        .offset = (shape & 0x10) != 0 ? script.near(0) : script.take<std::uint16_t>() % (2 * kSegmentBytes),
        .a = (std::uint64_t{script.byte()} << 32) | (std::uint64_t{shape & 0x20U} << 11) | script.near(16),
    };
    const std::size_t size =
        (shape & 0x40) != 0 ? script.take<std::uint16_t>() % Stranger::kPayloadMost : script.byte();
    world_.send(envelope, size);
    if ((shape & 0x08) != 0) world_.run(100us);
  }

  void take(Script& script) {
    engine::Arrival* arrival = active().next();
    if (arrival == nullptr) return;
    ENSURE(arrival->head <= engine::kActiveHeadMax && arrival->head % 8 == 0, "a head of {}", arrival->head);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < arrival->head; ++i) sum += static_cast<std::size_t>(arrival->head_bytes[i]);
    if (arrival->status == Status::ok && arrival->is_placed) {
      const std::byte* begin = memory_.data() + kSegmentBytes;
      ENSURE(arrival->data_length == 0 ||
                 (arrival->data >= begin && arrival->data + arrival->data_length <= begin + kSegmentBytes),
             "placed beside the segment");
    }
    for (std::size_t i = 0; i < arrival->data_length; ++i) arrival->data[i] = static_cast<std::byte>(sum + i);
    if (arrival->kind == engine::ActiveKind::request && (script.byte() & 1) != 0) {
      const iovec piece{memory_.data(), script.byte()};
      world_.engine->send_active(port_,
                                 {.to = arrival->source,
                                  .kind = engine::ActiveKind::reply,
                                  .name = arrival->name,
                                  .reply_access = arrival->reply_access,
                                  .memory = {&piece, 1},
                                  .length = piece.iov_len},
                                 world_.now);
    }
    active().release(*arrival);
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * kSegmentBytes);
  Stranger world_;
  engine::PortHandle port_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return play<Target>(data, size, 64);
}
