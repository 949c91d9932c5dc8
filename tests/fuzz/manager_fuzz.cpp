// Connection managers' input from the wire (doors/rdma_cm). Any bytes give a message that encodes to the same bytes, or
// a reason. Messages arrive in any order, mixed with calls of the program and with time. A connection never goes back
// to an earlier state, reports each event once and none after its end, sends only what can be sent, and ends.

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <vector>

#include "base/ensure.hpp"
#include "doors/rdma_cm/connection.hpp"
#include "tests/fuzz/script.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::fuzz;
using namespace fairlead::rdma_cm;
using namespace std::chrono_literals;

constexpr std::uint64_t kName = 0x0123'4567'89AB'CDEF, kNameOfPeer = 0xFEDC'BA98'7654'3210;

std::vector<std::byte> encoded(const Message& message) {
  std::array<std::byte, kMessageSizeMax> out;
  const std::size_t length = encode(message, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(length)};
}

class Target {
 public:
  explicit Target(bool is_datagram) : connection_(kName, 7, is_datagram) {}

  void act(Script& script) {
    switch (script.byte() % 17) {
      case 0:
        return check(connection_.bind());
      case 1:
        return check(connection_.resolve_address(script.byte() % 4 == 0 ? 113 : 0));
      case 2:
        return check(connection_.resolve_route(script.byte() % 4 == 0 ? 113 : 0));
      case 3:
        return check(connection_.listen());
      case 4:
        return check(connection_.connect({.target = {.family = Family::v4, .ip = ip_of("10.0.0.7").value()}},
                                         terms(script), data(script), now_));
      case 5: {
        const Terms ours = terms(script);
        return check(connection_.accept(script.byte() % 4 == 0 ? nullptr : &ours, data(script), now_));
      }
      case 6:
        return check(connection_.reject(Reason::consumer_defined, data(script)));
      case 7:
        return check(connection_.disconnect(now_));
      case 8:
        return check(connection_.establish());
      case 9:
        now_ += std::chrono::milliseconds(script.take<std::uint16_t>());
        return check(connection_.expire(now_));
      case 10:
        return check(connection_.fail(static_cast<Kind>(script.byte() % kKinds), status(script), now_));
      case 11:
        return check(connection_.lose(status(script), now_));
      case 12:
        return take_bytes(script);
      case 16:
        return check(connection_.lose_device(now_));
      default:
        return take_message(script);
    }
  }

  void finish() {
    // Each ends a state or repeats a request.
    constexpr auto kTimersMost = 8 + Connection::kAnswerAtMost / Connection::kUnansweredLeast;
    for (auto i = kTimersMost; i > 0 && connection_.due() != kNever; ++i) {
      now_ = std::max(now_, connection_.due());
      check(connection_.expire(now_));
    }
    ENSURE(connection_.due() == kNever, "in state {} it never comes to its end", int(connection_.state()));
    if (const auto last = connection_.destroy()) check_sent(*last);
    ENSURE(connection_.state() == State::over && connection_.due() == kNever, "destroyed, and not over");
  }

 private:
  static Terms terms(Script& script) {
    return {.qp_num = script.take<std::uint32_t>() & 0xFF'FFFF,
            .responder_resources = script.byte(),
            .initiator_depth = script.byte(),
            .retry_count = static_cast<std::uint8_t>(script.byte() & 7)};
  }
  static PrivateData data(Script& script) { return {.length = script.byte(), .bytes = {}}; }
  static Status status(Script& script) {
    constexpr std::array kWhys{Status::refused, Status::restarted, Status::silent, Status::unreachable};
    return kWhys[script.byte() % kWhys.size()];
  }

  void take_bytes(Script& script) {
    std::vector<std::byte> bytes(script.byte());
    for (std::byte& each : bytes) each = static_cast<std::byte>(script.byte());
    take(bytes);
  }
  /// Mostly a message that fits the state.
  void take_message(Script& script) {
    Message message{.kind = static_cast<Kind>(script.byte() % kKinds),
                    .reason = script.byte(),
                    .from = script.near(kNameOfPeer),
                    .to = script.near(kName),
                    .psn = script.take<std::uint32_t>() & 0xFF'FFFF};
    message.terms = terms(script);
    message.data = data(script);
    take(encoded(message));
  }
  void take(const std::vector<std::byte>& bytes) {
    const auto message = decode(bytes);
    if (!message) {
      ENSURE(!message.error().empty(), "refused without a reason");
      return;
    }
    ENSURE(encoded(*message) == bytes, "a message of {} bytes is another when it is written back", bytes.size());
    const bool is_request = message->kind == Kind::req || message->kind == Kind::sidr_req;
    if (is_request && connection_.state() == State::idle) {
      const Told told = Connection::request_told(*message);
      ENSURE(told.data.length <= private_data_max(message->kind), "more private data than there can be");
      connection_ = Connection::answering(*message, kName, 7);
      before_ = connection_.state();
      told_.clear();
      return;
    }
    check(connection_.take(*message, now_));
  }

  void check(const Step& step) {
    const State state = connection_.state();
    ENSURE(state >= before_, "back from {} to {}", int(before_), int(state));
    ENSURE(step.error == 0 || (!step.send && !step.tell && state == before_), "refused with {}, and done", step.error);
    if (step.send) check_sent(*step.send);
    if (step.tell) check_told(*step.tell);
    before_ = state;
  }
  static void check_sent(const Message& message) {
    ENSURE(message.from == kName, "said under another name");
    const auto arrived = decode(encoded(message));
    ENSURE(arrived.has_value(), "a message of kind {} would be refused there", int(message.kind));
    ENSURE(*arrived == message, "a message of kind {} arrives as another", int(message.kind));
  }
  void check_told(const Told& told) {
    ENSURE(before_ != State::over, "told of event {} when it was over", int(told.event));
    const bool may_repeat = told.event == Event::addr_error || told.event == Event::route_error;
    ENSURE(may_repeat || ++told_[told.event] == 1, "told twice of event {}", int(told.event));
  }

  Connection connection_;
  Instant now_{1h};
  State before_ = State::idle;
  std::map<Event, int> told_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return play<Target>(data, size, 64);
}
