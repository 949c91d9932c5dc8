// A peer sends any active message to a port: requests, replies, returned and rejected ones, packed, long and placed.
// Delivered messages can be read to their end, and all bounds hold. Only permitted messages write to the segment:
// requests with the tag, and one answer to each request made.

#include <set>

#include "base/ensure.hpp"
#include "engine/active_port.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/stranger.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::fuzz;

constexpr std::uint32_t kPort = 0x410000, kPortOfStranger = 5;
constexpr std::uint64_t kTag = 42;
constexpr std::size_t kSegmentBytes = 4096, kArrivalsMax = 16;

class Target {
 public:
  explicit Target(bool is_sealed) : world_(options(), is_sealed) {
    port_ = *world_.engine->ports().open(kPort);
    ENSURE(world_.engine->ports().find(port_)->events->reserve(64) == Status::ok, "no events");
    ENSURE(world_.engine->activate(port_) == Status::ok, "not active");
    active().rule = {engine::AccessRule::Kind::equal, kTag};
    active().segment = {memory_.data() + kSegmentBytes, kSegmentBytes};
  }

  void act(Script& script) {
    switch (const std::uint8_t action = script.byte(); action % 9) {
      case 4:
        if (action >= 0xE0) return world_.meddle(script);
        return send(script);
      case 0:
        return take(script);
      case 1:
        return world_.run(std::chrono::microseconds(script.byte()));
      case 2:
        settle();
        active().rule.kind = static_cast<engine::AccessRule::Kind>(script.byte() % 3);
        return;
      case 3:
        return ask(script);
      default:
        return send(script);
    }
  }

  void finish() {
    world_.run(5ms);
    while (engine::Arrival* arrival = active().next()) active().release(*arrival);
    world_.run(20s);  // the port gives up incomplete messages
    world_.expect_genuine();
    ENSURE(world_.engine->use().placements == 0, "{} placements are left", world_.engine->use().placements);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const bool is_segment = i >= kSegmentBytes && i < 2 * kSegmentBytes;
      ENSURE(is_segment || memory_[i] == std::byte{0}, "a byte beside the segment was written, at {}", i);
      ENSURE(!is_segment || is_granted_[i - kSegmentBytes] || memory_[i] == std::byte{0},
             "byte {} of the segment was written by somebody who was not let in", i - kSegmentBytes);
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

  engine::ActivePort& active() { return *world_.engine->ports().find(port_)->active; }

  /// Waits until all messages in flight have arrived and been released.
  void settle() {
    world_.run(5ms);
    while (engine::Arrival* arrival = active().next()) active().release(*arrival);
  }

  /// Sends a request that the peer can answer.
  void ask(Script& script) {
    const std::uint64_t name = script.byte() % 4;
    settle();
    const iovec piece{memory_.data(), 8};
    if (world_.engine->send_active(port_,
                                   {.to = {Stranger::own(), kPortOfStranger},
                                    .kind = engine::ActiveKind::request,
                                    .name = name,
                                    .memory = {&piece, 1},
                                    .length = 8},
                                   world_.now) == Status::ok)
      asked_.insert(name);
  }

  void send(Script& script) {
    const std::uint8_t shape = script.byte();
    const auto kind = static_cast<engine::ActiveKind>(shape % 4);
    const wire::Envelope envelope{
        .operation = static_cast<wire::Operation>(13 + shape % 4),
        .status = static_cast<std::uint8_t>((shape & 0x20) << 2 | script.near(0) % 32),
        .flags = script.take<std::uint16_t>(),
        .source_port = static_cast<std::uint32_t>(script.near(kPortOfStranger)),
        .target_port = (shape & 0x80) != 0 ? static_cast<std::uint32_t>(script.near(kPort)) : kPort,
        .key = kind == engine::ActiveKind::request ? script.near(kTag) : script.near(active().secret()),
        .cookie = script.near(0),
        .offset = (shape & 0x10) != 0 ? script.near(0) : script.take<std::uint16_t>() % (2 * kSegmentBytes),
        .a = script.byte(),
    };
    const std::size_t size =
        (shape & 0x40) != 0 ? script.take<std::uint16_t>() % Stranger::kPayloadMost : script.byte();
    const bool is_answer = kind == engine::ActiveKind::reply || kind == engine::ActiveKind::returned;
    const bool is_awaited = is_answer && envelope.target_port == kPort && envelope.key == active().secret() &&
                            envelope.source_port == kPortOfStranger && asked_.contains(envelope.cookie);
    if (is_awaited) settle();
    grant(envelope, kind, is_awaited, size);
    world_.send(envelope, size);
    if (is_awaited) {
      settle();
      if (kind == engine::ActiveKind::reply || size == 0) asked_.erase(envelope.cookie);
    }
    if ((shape & 0x08) != 0) world_.run(100us);
  }

  /// Records what a message may write to the segment, by the documented rules and not by the engine's own checks.
  void grant(const wire::Envelope& envelope, engine::ActiveKind kind, bool is_awaited, std::size_t size) {
    const engine::AccessRule& rule = active().rule;
    const bool is_admitted = rule.kind == engine::AccessRule::Kind::all ||
                             (rule.kind == engine::AccessRule::Kind::equal && envelope.key == kTag);
    const std::size_t head = std::size_t{8} * (envelope.status & 0x7f);
    const bool is_let_in = kind == engine::ActiveKind::request ? is_admitted && envelope.target_port == kPort
                                                               : kind == engine::ActiveKind::reply && is_awaited;
    if (!is_let_in || (envelope.status & 0x80) == 0 || head > size || head > engine::kActiveHeadMax) return;
    if (envelope.offset > kSegmentBytes || size - head > kSegmentBytes - envelope.offset) return;
    std::fill_n(is_granted_.begin() + static_cast<std::ptrdiff_t>(envelope.offset), size - head, true);
  }

  void take(Script& script) {
    engine::Arrival* arrival = active().next();
    if (arrival == nullptr) return;
    world_.expect_said(arrival->name, arrival->word);
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
  std::vector<bool> is_granted_ = std::vector<bool>(kSegmentBytes);  // by byte of the segment
  std::set<std::uint64_t> asked_;                                    // names of unanswered requests
  Stranger world_;
  engine::PortHandle port_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return play<Target>(data, size, 64);
}
