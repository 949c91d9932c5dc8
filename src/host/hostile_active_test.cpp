// The host engine with a malicious application that has active messages: it names any memory, answers what it did not
// get, writes anything into the memory of its arrivals, or takes nothing.

#include <functional>
#include <random>

#include "host/active_layout.hpp"
#include "host/active_request.hpp"
#include "host/host_active.hpp"
#include "host/hostile_application_for_tests.hpp"

namespace fairlead::host {
namespace {

using engine::ActiveKind;
using engine::Arrival;

constexpr std::uint64_t kShared = Hostile::kBytes + ActiveLayout::bytes();  // of a hostile application
constexpr std::uint64_t kArea = Hostile::kBytes;                            // the memory of its active port
constexpr std::uint32_t kHostilePort = 666, kGoodPort = 2;

std::uint8_t number_of_kind(Request::Kind kind) {
  return static_cast<std::uint8_t>(kind);
}

class HostileActive : public HostileApplication {
 protected:
  void SetUp() override {
    HostileApplication::SetUp();
    active_port_ = good_->open_port(kGoodPort).value();
    ASSERT_EQ(good_->reserve_events(active_port_, 64), Status::ok);
    ASSERT_EQ(active().activate(active_port_), Status::ok);
    ASSERT_EQ(active().set_access(active_port_, {engine::AccessRule::Kind::all, 0}), Status::ok);
  }
  engine::ActivePorts& active() { return *good_->active_ports(); }

  /// Attaches and activates its port as a well-behaved application does.
  std::unique_ptr<Hostile> settled() {
    auto hostile = std::make_unique<Hostile>(host_.file(), kShared);
    hostile->settle();
    arrivals_.emplace(queue::Consumer::create(memory_of(*hostile).arrivals(),
                                              {.element_bytes = kArrivalBytes, .elements = kArrivalsMax + 1})
                          .value());
    hostile->ask({.offset = kArea, .kind = number_of_kind(Request::Kind::activate)});
    hostile->ask({.kind = number_of_kind(Request::Kind::set_access), .flags = 2});
    return hostile;
  }
  static ActiveMemory memory_of(Hostile& hostile) { return ActiveMemory(hostile.all().data() + kArea); }
  /// A message from the hostile application to the good one.
  Request message(ActiveKind kind, std::uint64_t name, std::uint64_t reply_access = 0) const {
    Request request = to_request(engine::ActiveMessage{
        .to = {good_->address(), kGoodPort}, .kind = kind, .name = name, .reply_access = reply_access});
    request.operation = name;
    return request;
  }
  /// The good application sends a request to the hostile one.
  void send(std::uint64_t name, std::span<std::byte> bytes = {}) {
    const iovec piece{bytes.data(), bytes.size()};
    engine::Conversation conversation;
    const engine::ActiveMessage request{.to = {good_->address(), kHostilePort},
                                        .name = name,
                                        .memory = {&piece, 1},
                                        .length = bytes.size(),
                                        .cookie = name};
    while (active().send_active(active_port_, request, conversation) == Status::again) std::this_thread::yield();
    engine::Completion completion;
    while (!good_->next_event(active_port_, completion)) std::this_thread::yield();
    ASSERT_EQ(completion.status, Status::ok);
  }
  /// Returns the next arrival at the good application, which is released.
  struct Got {
    ActiveKind kind;
    Status status;
    std::uint64_t name;
  };
  std::optional<Got> next_arrival() {
    for (const auto end = base::MonotonicClock::now() + Hostile::kPatience; base::MonotonicClock::now() < end;) {
      if (Arrival* const arrival = active().next_arrival(active_port_)) {
        const Got got{arrival->kind, arrival->status, arrival->name};
        active().release_arrival(active_port_, *arrival);
        return got;
      }
      active().wait_any({&active_port_, 1}, base::MonotonicClock::now() + std::chrono::milliseconds(100));
    }
    return std::nullopt;
  }
  /// Returns the next arrival at the hostile application.
  ArrivalHead next_of_hostile() {
    const std::byte* element = arrivals_->get();
    while (element == nullptr) {
      std::this_thread::yield();
      element = arrivals_->get();
    }
    ArrivalHead head;
    std::memcpy(&head, element, sizeof head);
    return head;
  }

  engine::PortHandle active_port_;
  std::optional<queue::Consumer> arrivals_;
};

TEST_F(HostileActive, IsDetachedForARequestThatNoLibraryWrites) {
  using Change = std::function<void(Request&)>;
  const Change changes[] = {
      [](Request& request) { request.offset = 0, request.length = 8; },
      [](Request& request) { request.offset = kShared - 7, request.length = 8; },
      [](Request& request) { request.offset = Hostile::kBytes, request.length = ~0ULL; },
      [&](Request& request) { request = message(ActiveKind::reply, 1, 0); },
      [&](Request& request) { request = message(ActiveKind::reply, 1, 1ULL << 32); },
      [&](Request& request) { request = message(ActiveKind::returned, 1, ~0ULL); },
      [](Request& request) {
        request = {.offset = kShared - 8, .length = 9, .kind = number_of_kind(Request::Kind::set_segment)};
      },
      [](Request& request) {
        request = {.offset = 0, .length = 4096, .kind = number_of_kind(Request::Kind::set_segment)};
      },
      [](Request& request) { request.operation = kOperationsMax; },
  };
  for (const Change& change : changes) {
    const auto hostile = settled();
    Request request = message(ActiveKind::request, 1);
    change(request);
    hostile->ask(request);
    hostile->wait_until_detached();
  }
  expect_service();
}

TEST_F(HostileActive, IsDetachedIfThePortHasNoMemoryForArrivals) {
  for (const std::uint64_t offset :
       {std::uint64_t{0}, Layout::head_bytes() - 4096, kArea + 1, kArea + 4096, ~std::uint64_t{0xfff}}) {
    Hostile hostile(host_.file(), kShared);
    hostile.settle();
    hostile.ask({.offset = offset, .kind = number_of_kind(Request::Kind::activate)});
    hostile.wait_until_detached();
  }
  // Without a queue in it, the port is not activated.
  Hostile hostile(host_.file(), kShared);
  hostile.settle();
  hostile.ask({.offset = kArea, .kind = number_of_kind(Request::Kind::activate)});
  hostile.ask({.kind = number_of_kind(Request::Kind::set_access)});
  hostile.wait_until_detached();
  expect_service();
}

// An answer goes to who has asked, once, whatever the application says of the target.
TEST_F(HostileActive, AnswersOnlyWhatItWasAskedAndOnce) {
  const auto hostile = settled();
  send(1);
  const ArrivalHead head = next_of_hostile();
  EXPECT_EQ(head.name, 1U);
  Request answer = message(ActiveKind::reply, 77, head.answer);  // 77 is no request
  answer.operation = 1;
  answer.to_port = 12345;
  hostile->ask(answer);
  const auto got = next_arrival();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->kind, ActiveKind::reply);
  EXPECT_EQ(got->name, 1U);
  answer.operation = 2;
  hostile->ask(answer);
  hostile->wait_until_detached();
  expect_service();
}

// Each request comes back: those that it was given, those that wait for room, and those at the engine.
TEST_F(HostileActive, TakesNothingAndEachRequestComesBackWhenItEnds) {
  auto hostile = settled();
  std::vector<std::byte> bytes(3000);
  constexpr std::uint64_t kRequests = 3 * ActivePage::kSlots;  // more than there are slots
  for (std::uint64_t name = 1; name <= kRequests; ++name) send(name, bytes);
  expect_service();
  hostile.reset();
  std::vector<bool> is_back(kRequests + 1);
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    const auto got = next_arrival();
    ASSERT_TRUE(got.has_value()) << i << " came back";
    EXPECT_EQ(got->kind, ActiveKind::returned);
    EXPECT_EQ(got->status, Status::unreachable);
    ASSERT_TRUE(got->name <= kRequests && !is_back[got->name]);
    is_back[got->name] = true;
  }
}

// The host engine neither spins nor grows for an application that takes nothing. It goes on when there is room.
TEST_F(HostileActive, IsServedAgainWhenItGivesSlotsBack) {
  const auto hostile = settled();
  std::vector<std::byte> bytes(3000);
  constexpr std::uint64_t kRequests = ActivePage::kSlots + 2;
  for (std::uint64_t name = 1; name <= kRequests; ++name) send(name, bytes);
  for (std::uint64_t i = 0; i < ActivePage::kSlots; ++i) EXPECT_LT(next_of_hostile().slot, ActivePage::kSlots);
  const ActivePage& page = memory_of(*hostile).page();
  while (page.stalled.sleeping.load() == 0) std::this_thread::yield();  // it sleeps though an arrival waits
  EXPECT_EQ(arrivals_->get(), nullptr);
  memory_of(*hostile).page().given_back[1].fetch_or(0b11);
  memory_of(*hostile).page().stalled.sleeping.exchange(0);
  hostile->socket().nudge();
  const std::uint8_t first = next_of_hostile().slot, second = next_of_hostile().slot;
  EXPECT_EQ(first, 64U);
  EXPECT_EQ(second, 65U);
}

TEST_F(HostileActive, NamesOnlySoManyPlacesForItsRequests) {
  const auto hostile = settled();
  Request request = message(ActiveKind::request, kRequestPlacesMax - 1);
  request.operation = 1;
  hostile->ask(request);
  const auto got = next_arrival();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->kind, ActiveKind::request);
  request = message(ActiveKind::request, kRequestPlacesMax);
  request.operation = 2;
  hostile->ask(request);
  request = message(ActiveKind::request, 0);
  request.operation = 3;
  hostile->ask(request);
  const auto next = next_arrival();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->name, 0U) << "the one before it has no place";
}

TEST_F(HostileActive, WritesAnythingIntoTheMemoryOfArrivalsAndHarmsNobody) {
  std::mt19937_64 random(20261125);
  for (int round = 0; round < 6; ++round) {
    const auto hostile = settled();
    std::uint64_t name = 1;
    std::vector<std::byte> bytes(3000);
    const std::uint64_t parts[] = {0, ActiveLayout::conversations(), ActiveLayout::arrivals(), ActiveLayout::slots()};
    for (int i = 0; i < 20000 && !hostile->is_detached(); ++i) {
      const std::size_t at = kArea + parts[random() % 4] + random() % 4096;
      std::atomic_ref(reinterpret_cast<std::uint8_t&>(hostile->all()[at]))
          .store(static_cast<std::uint8_t>(random()), std::memory_order_relaxed);
      if (i % 1000 != 0) continue;
      engine::Conversation conversation;
      const iovec piece{bytes.data(), bytes.size()};
      active().send_active(active_port_,
                           {.to = {good_->address(), kHostilePort},
                            .name = name++,
                            .memory = {&piece, 1},
                            .length = i % 2000 == 0 ? 8U : bytes.size()},
                           conversation);
      engine::Completion completion;
      while (!good_->next_event(active_port_, completion)) std::this_thread::yield();
    }
    expect_service();
  }
  expect_service();
}

}  // namespace
}  // namespace fairlead::host
