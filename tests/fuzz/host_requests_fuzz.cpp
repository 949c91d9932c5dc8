// An application of the host engine makes any requests, also for active messages, and writes anything into its shared
// memory. The host engine stays within its bounds. After the application has left, nothing of it is pending.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/ensure.hpp"
#include "embedded/attach.hpp"
#include "host/application.hpp"
#include "host/one_segment.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "shm/arena.hpp"
#include "tests/fuzz/script.hpp"

namespace {

using namespace fairlead;
using host::Application;
using host::Layout;
using host::Request;

constexpr std::uint64_t kActive = Layout::head_bytes() + (64 << 10);  // the memory for active messages
static_assert(kActive % 4096 == 0);
constexpr std::uint64_t kBytes = kActive + host::ActiveLayout::bytes();
constexpr std::uint32_t kPorts = 3, kEvents = 16;
constexpr host::Quota kQuota{.ports = kPorts, .operations = 32};
constexpr int kTurnsMost = 100000;

/// Objects that all inputs share.
struct Place {
  shm::Users users;
  shm::Arena arena = shm::Arena::create(Layout::head_bytes(), kBytes).value();
  std::shared_ptr<host::ServedEngine> engine = std::make_shared<host::ServedEngine>(host::ServedEngine{
      .core = embedded::attach_embedded(base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value(),
      .shares = host::Shares(64, 2)});
};

Place& place() {
  static Place made;
  return made;
}

class World {
 public:
  World() {
    place().arena.empty(0, kBytes);
    application_ =
        Application::make(
            connect(application_end_),
            {.memory = shm::Arena::view(place().arena.descriptor(), kBytes).value(), .file = {}, .bytes = kBytes},
            place().engine, 1, kQuota)
            .value();
    requests_.emplace(queue::Producer::attach(memory_).value());
    open_port({.index = 0, .number = 1});
  }

  void act(fuzz::Script& script) {
    switch (script.byte() % 12) {
      case 0:
      case 1:
      case 2:
        return ask(script);
      case 3:
      case 4:
        application_->take_requests(now_ += std::chrono::microseconds(script.byte()), script.byte() % 2 == 0);
        break;
      case 5:
        place().engine->core->progress();
        application_->give_events();
        break;
      case 6:
        return write(script);
      case 7:
        if (!application_->is_leaving() && application_->park()) application_->unpark();
        break;
      case 8:
        return open_port(
            {.index = script.byte() % (kPorts + 1U), .number = script.byte() % 4U, .count = script.byte() % 3U});
      case 9:
        application_->close_port(script.byte() % (kPorts + 1U), script.byte() % 2 == 0);
        break;
      case 10:
        return take_arrival();
      case 11:
        return set_up_active(script);
    }
    check();
  }

  void finish() {
    application_->leave();
    for (int i = 0; i < kTurnsMost && !application_->is_gone(); ++i) {
      place().engine->core->progress();
      application_->give_events();
    }
    ENSURE(application_->is_gone(), "an application that has left has {} operations pending",
           application_->fact().operations);
    ENSURE(application_->fact().operations == 0, "{} operations of nobody", application_->fact().operations);
    // All shares are back, so the next input starts from the same state.
    host::Shares& shares = place().engine->shares;
    std::uint64_t own = 0;
    while (shares.take(own)) ++own;
    ENSURE(own == 16 + 16, "{} operations can be had of the engine", own);
    for (; own > 0; --own) shares.give_back(own);
  }

 private:
  shm::Socket connect(base::FileDescriptor& other) {
    int both[2];
    ENSURE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0, "socketpair failed");
    other = base::FileDescriptor(both[0]);
    return {base::FileDescriptor(both[1]), place().users};
  }

  void open_port(const host::Call& call) {
    if (call.index < kPorts && application_->port(call.index) == nullptr) {
      const std::span events(place().arena.head() + Layout::events(call.index), Layout::events_bytes());
      (void)queue::Consumer::create(events, {.element_bytes = sizeof(host::Event), .elements = kEvents});
    }
    if (application_->open_port(call)) application_->connect_port(call.index, connect(port_ends_[call.index % kPorts]));
  }

  /// Does what the library does before a port takes active messages.
  void set_up_active(fuzz::Script& script) {
    const host::ActiveMemory memory(place().arena.head() + kActive);
    if (script.byte() % 4 != 0) {
      auto arrivals = queue::Consumer::create(memory.arrivals(), {.element_bytes = host::kArrivalBytes, .elements = 4});
      if (arrivals) arrivals_ = std::move(*arrivals);
    }
    const auto port = static_cast<std::uint16_t>(script.byte() % (kPorts + 1));
    put({.offset = kActive, .port = port, .kind = number_of(Request::Kind::activate)});
    put({.port = port, .kind = number_of(Request::Kind::set_access), .flags = 2});  // from all
    put({.offset = Layout::head_bytes(), .length = 4096, .port = port, .kind = number_of(Request::Kind::set_segment)});
  }

  /// Keeps the name of the request that came last, for answers.
  void take_arrival() {
    if (!arrivals_) return;
    const std::byte* const element = arrivals_->get();
    if (element == nullptr) return;
    host::ArrivalHead head;
    std::memcpy(&head, element, sizeof head);
    answer_ = head.answer;
  }

  static std::uint8_t number_of(Request::Kind kind) { return static_cast<std::uint8_t>(kind); }

  /// Mostly a request that the library would make.
  void ask(fuzz::Script& script) {
    Request request{.operation = script.near(script.byte() % 8),
                    .offset = script.near(Layout::head_bytes() + 8),
                    .length = script.near(8),
                    .epoch = place().engine->core->epoch(),
                    .key = script.near(1),
                    .size_min = script.near(4),
                    .to = host::to_plain(place().engine->core->address()),
                    .to_port = script.byte() % 4U,
                    .messages_max = static_cast<std::uint32_t>(script.near(4)),
                    .port = static_cast<std::uint16_t>(script.byte() % (kPorts + 1)),
                    .kind = static_cast<std::uint8_t>(script.byte() % 14),
                    .flags = script.byte()};
    if (request.kind == number_of(Request::Kind::active)) {
      request.epoch = script.near(script.byte() % 4);
      if (request.flags % 4 != 0) request.key = script.near(answer_);
      request.messages_max = static_cast<std::uint32_t>(script.byte() % 4) << 19 | script.byte();  // head, word
    }
    put(request);
  }

  void put(const Request& request) {
    std::byte* const element = requests_->pnext();
    if (element == nullptr) return;
    std::memcpy(element, &request, sizeof request);
    requests_->put();
  }

  void write(fuzz::Script& script) {
    constexpr std::uint64_t kNear = 512;  // to the start of each part
    const std::uint64_t parts[] = {
        0, Layout::requests(), Layout::events(0), Layout::events(1), kActive, kActive + host::ActiveLayout::arrivals()};
    const std::uint64_t at = parts[script.byte() % 6] + script.take<std::uint16_t>() % kNear;
    const auto value = script.near(script.byte());
    std::memcpy(place().arena.head() + at, &value, sizeof value);
  }

  void check() {
    if (!application_->fault().empty()) application_->leave();
    const host::AttachedFact fact = application_->fact();
    ENSURE(fact.operations <= kQuota.operations && fact.ports <= kQuota.ports, "{} operations, {} ports",
           fact.operations, fact.ports);
  }

  base::Instant now_{};
  base::FileDescriptor application_end_;
  std::array<base::FileDescriptor, kPorts> port_ends_;
  std::unique_ptr<Application> application_;
  host::OneSegment memory_{std::span(place().arena.head() + Layout::requests(), Layout::requests_bytes())};
  std::optional<queue::Producer> requests_;
  std::optional<queue::Consumer> arrivals_;
  std::uint64_t answer_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::play<World>(data, size, 200);
}
