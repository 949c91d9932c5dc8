// The host engine with a malicious application, which writes anything into its shared memory and sends any call.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "base/child_for_tests.hpp"
#include "base/lingering_socket_for_tests.hpp"
#include "host/hostile_application_for_tests.hpp"
#include "host/listing.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

TEST_F(HostileApplication, MayNotAttachWithMemoryThatItCanTakeAway) {
  Hostile hostile(host_.file());
  const auto refused = [&](const Call& call, int memory, Status status) {
    const auto answered = hostile.attach(call, memory);
    ASSERT_FALSE(answered.has_value());
    EXPECT_EQ(answered.error().status, status) << answered.error().message;
    EXPECT_FALSE(answered.error().message.empty());
  };
  const base::FileDescriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), Hostile::kBytes), 0);
  const auto arena = shm::Arena::create(4096, Hostile::kBytes).value();
  refused(Hostile::attach_call(Hostile::kBytes), unsealed.get(), Status::invalid);
  // Without F_SEAL_SEAL the application could add F_SEAL_FUTURE_WRITE. After a replacement, the next program could then
  // not map the memory.
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  refused(Hostile::attach_call(Hostile::kBytes), unsealed.get(), Status::invalid);
  // Without F_SEAL_GROW it could grow, and the next program would not accept a file of another size.
  const base::FileDescriptor growing(::memfd_create("growing", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(growing.get(), Hostile::kBytes), 0);
  ASSERT_EQ(::fcntl(growing.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
  refused(Hostile::attach_call(Hostile::kBytes), growing.get(), Status::invalid);
  refused(Hostile::attach_call(Hostile::kBytes), -1, Status::invalid);
  refused(Hostile::attach_call(Hostile::kBytes + 4096), arena.descriptor(), Status::invalid);
  refused(Hostile::attach_call(Hostile::kBytes - 4096), arena.descriptor(), Status::invalid);
  refused(Hostile::attach_call(Layout::head_bytes()), arena.descriptor(), Status::invalid);
  refused(Hostile::attach_call(~0ULL), arena.descriptor(), Status::invalid);
  Call call = Hostile::attach_call(Hostile::kBytes);
  call.version = kVersion + 1;
  refused(call, arena.descriptor(), Status::not_supported);
  call.kind = static_cast<std::uint32_t>(Call::Kind::list);  // whose rows differ between releases
  refused(call, -1, Status::not_supported);
  call = Hostile::attach_call(Hostile::kBytes);
  call.address = to_plain(base::SocketAddress{});
  refused(call, arena.descriptor(), Status::not_available);
  call.address = to_plain(base::SocketAddress::from_ip("192.0.2.1", 20480).value());
  refused(call, arena.descriptor(), Status::not_available);
  expect_service();
}

TEST_F(HostileApplication, OpensNoPortInAnothersName) {
  Hostile hostile(host_.file());
  hostile.settle();
  const auto guess = make_call(hostile.connect(), Hostile::open_call(hostile.secret() + 1, 1));
  ASSERT_FALSE(guess.has_value());
  EXPECT_EQ(guess.error().status, Status::restarted);
  // Another process knows the secret.
  EXPECT_EQ(base::exit_of_child([&] {
              const auto stolen = make_call(hostile.connect(), Hostile::open_call(hostile.secret(), 1));
              return stolen || stolen.error().status != Status::restarted ? 1 : 0;
            }),
            0);
  for (const std::uint32_t index : {0U, kPortsMax, ~0U}) {
    const auto refused = make_call(hostile.connect(), Hostile::open_call(hostile.secret(), index));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().status, Status::in_use);
  }
  // The memory of this port's events contains no queue.
  const auto refused = make_call(hostile.connect(), Hostile::open_call(hostile.secret(), 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().status, Status::invalid);
  expect_service();
}

TEST_F(HostileApplication, IsDetachedForARequestThatNoLibraryWrites) {
  using Change = std::function<void(Request&)>;
  const auto kind_of = [](Request::Kind kind) { return static_cast<std::uint8_t>(kind); };
  const Change changes[] = {
      [&](Request& request) { request.kind = kind_of(Request::Kind::active); },  // from a port that takes none
      [&](Request& request) { request.kind = kind_of(Request::Kind::set_segment); },
      [&](Request& request) { request.kind = kind_of(Request::Kind::expose); },  // without a key
      [&](Request& request) { request.kind = kind_of(Request::Kind::leave) + 1; },
      [](Request& request) { request.kind = 255; },
      [](Request& request) { request.operation = kOperationsMax; },
      [](Request& request) { request.operation = ~0ULL; },
      [](Request& request) { request.offset = Layout::head_bytes() - 1; },
      [](Request& request) { request.offset = 0; },
      [](Request& request) { request.offset = Hostile::kBytes; },
      [](Request& request) { request.offset = ~0ULL; },
      [](Request& request) { request.length = Hostile::kBytes; },
      [](Request& request) { request.length = ~0ULL; },
      [](Request& request) { request.length = 0; },
      [](Request& request) { request.offset = Hostile::kBytes - 63; },
      [](Request& request) { request.messages_max = 0; },
      [](Request& request) { request.messages_max = kMessagesInReceiveMax + 1; },
  };
  for (const Change& change : changes) {
    Hostile hostile(host_.file());
    hostile.settle();
    Request request = hostile.good();
    change(request);
    hostile.ask(request);
    hostile.wait_until_detached();
  }
  Hostile twice(host_.file());
  twice.settle();
  twice.ask(twice.good());
  twice.ask(twice.good());
  twice.wait_until_detached();
  expect_service();
}

TEST_F(HostileApplication, IsDetachedIfItHasMoreOperationsThanItsQuota) {
  HostForTests narrow(ServiceOptions{.rules = {{.quota = {.operations = 2}}}});
  Hostile hostile(narrow.file());
  hostile.settle();
  Request request = hostile.good();
  for (request.operation = 0; request.operation < 2; ++request.operation) hostile.ask(request);
  EXPECT_FALSE(hostile.is_detached());
  hostile.ask(request);
  hostile.wait_until_detached();
}

// The engine has memory for each event that a receive may have. The library keeps these limits by itself.
TEST_F(HostileApplication, HasNoMoreEventsThanAPortMayHaveAndItsQuota) {
  HostForTests narrow(ServiceOptions{.rules = {{.quota = {.events = 100'000}}}});
  Hostile hostile(narrow.file());
  hostile.settle();
  Request request = hostile.good();
  const auto receive = [&](std::uint16_t port, std::uint32_t messages) {
    ++request.operation;
    request.port = port;
    request.messages_max = messages;
    hostile.ask(request);
  };
  const auto expect_refusal = [&](queue::Consumer& events) {
    const Event event = Hostile::next_event(events);
    EXPECT_EQ(event.operation, request.operation);
    EXPECT_EQ(static_cast<Status>(event.status), Status::no_memory);
  };
  const auto events_of_ports = [&] {
    const auto listed = list_attached(narrow.file()).value();
    EXPECT_EQ(listed[0].events_max, 100'000u);
    return listed[0].events;
  };
  receive(0, kEventsMax);
  receive(0, 1);
  expect_refusal(hostile.events());
  queue::Consumer others = hostile.make_events(1);
  shm::Socket second = hostile.connect();
  ASSERT_TRUE(make_call(second, Hostile::open_call(hostile.secret(), 1)).has_value());
  receive(1, 40'000);
  expect_refusal(others);
  receive(1, 30'000);
  receive(1, 10'000);
  expect_refusal(others);
  EXPECT_EQ(events_of_ports(), kEventsMax + 30'000);
  second = {};
  for (const auto end = base::MonotonicClock::now() + Hostile::kPatience;
       events_of_ports() > kEventsMax && base::MonotonicClock::now() < end;)
    std::this_thread::yield();
  EXPECT_EQ(events_of_ports(), kEventsMax) << "a closed port has none";
  expect_service();
}

// A receive for many messages yields one event for each. The queue has room for 64 events.
TEST_F(HostileApplication, IsDetachedIfItHasNoRoomForItsEvents) {
  Hostile hostile(host_.file());
  hostile.settle();
  Request request = hostile.good();
  request.length = 4096;
  request.messages_max = 100;
  hostile.ask(request);
  request.operation = 4;
  request.kind = static_cast<std::uint8_t>(Request::Kind::send);
  request.length = 1;
  request.to = to_plain(good_->address());
  request.to_port = 666;
  for (; !hostile.is_detached(); ++request.operation) {
    if (request.operation >= kOperationsMax) break;
    hostile.ask(request);
  }
  hostile.wait_until_detached();
  expect_service();
}

TEST_F(HostileApplication, IsDetachedForACallThatNoLibraryMakes) {
  const auto say = [&](std::span<const std::byte> bytes, bool at_port) {
    Hostile hostile(host_.file());
    hostile.settle();
    ASSERT_TRUE((at_port ? hostile.port() : hostile.socket()).send(bytes, {}));
    if (!at_port) hostile.wait_until_detached();
  };
  Call call{.kind = 99};
  say(std::as_bytes(std::span(&call, 1)), false);
  const std::byte some[17]{};
  say(some, false);
  say(some, true);  // closes the port, as a call does
  std::vector<std::byte> many(4096);
  say(many, false);
  Hostile stranger(host_.file());
  ASSERT_TRUE(stranger.connect().send(many, {}));
  expect_service();
}

// Sends valid calls with a few bytes changed: on new connections, on the attachment's and on the port's. Some carry an
// unexpected descriptor.
TEST_F(HostileApplication, SaysAnythingAndHarmsNobody) {
  const int calls = tests::is_full_run() ? 1'000'000 : 3000;
  std::mt19937_64 random(20261124);
  const base::FileDescriptor anything(::memfd_create("anything", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(anything.get(), 4096), 0);
  std::optional<Hostile> hostile;
  for (int i = 0; i < calls; ++i) {
    if (!hostile || hostile->is_detached()) hostile.emplace(host_.file()).settle();
    Call call = random() % 2 == 0 ? Hostile::attach_call(Hostile::kBytes)
                                  : Hostile::open_call(hostile->secret(), static_cast<std::uint32_t>(random() % 3));
    if (random() % 4 != 0) call.kind = static_cast<std::uint32_t>(random() % 11);
    std::array<std::byte, sizeof call + 8> bytes{};
    std::memcpy(bytes.data(), &call, sizeof call);
    for (std::uint64_t changes = random() % 3; changes > 0; --changes)
      bytes.at(random() % sizeof call) = static_cast<std::byte>(random());
    const std::size_t length = random() % 8 == 0 ? random() % bytes.size() : sizeof call;
    const int descriptor = anything.get();
    const std::span<const int> along(&descriptor, random() % 4 == 0 ? 1 : 0);
    const std::uint64_t where = random() % 3;
    if (where == 0) {
      hostile->connect().send(std::span(bytes).first(length), along);
    } else {
      (where == 1 ? hostile->socket() : hostile->port()).send(std::span(bytes).first(length), along);
    }
    if (i % 1000 == 0) expect_service();
  }
  hostile.reset();
  expect_service();
  while (host_.service().applications() > 1) std::this_thread::yield();
}

// Changes all shared memory at any time, even while the host engine serves valid requests.
TEST_F(HostileApplication, WritesAnythingAnywhereAndHarmsNobody) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 12; ++round) {
    Hostile hostile(host_.file());
    hostile.settle();
    Request request = hostile.good();
    for (std::uint64_t i = 0; i < 64; ++i) {
      request.operation = i;
      hostile.ask(request);
    }
    const std::size_t shared = round % 3 == 0   ? Layout::requests() + Layout::requests_bytes()
                               : round % 3 == 1 ? Layout::requests()
                                                : Layout::events(1);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t word = random();
      std::size_t at = random() % shared;
      if (round % 2 == 0) at = i % 4 == 0 ? Layout::events(0) + random() % 4096 : at;
      const auto* small = reinterpret_cast<const std::byte*>(&word);
      std::atomic_ref(reinterpret_cast<std::uint8_t&>(hostile.all()[at]))
          .store(static_cast<std::uint8_t>(small[0]), std::memory_order_relaxed);
      if (i % 1000 == 0) {
        hostile.socket().nudge();
        hostile.port().nudge();
      }
    }
    expect_service();
  }
  expect_service();
}

// The daemon binds the port, with its own rights.
TEST(HostileVisitor, GetsNoPrivilegedPortFromADaemonOfRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
  const auto at = [](std::uint16_t port) { return base::SocketAddress::from_ip("127.0.0.1", port).value(); };
  constexpr std::uint16_t kPort = 613, kNamed = 614;
  const HostForTests host(ServiceOptions{.rules = {Rule{}}, .engines = {at(0), at(kNamed)}});
  ASSERT_EQ(::chmod(std::filesystem::path(host.file()).parent_path().c_str(), 0755), 0);
  const auto attach = [&](std::uint16_t port) { return HostCore::attach(host.file(), at(port), {}); };
  EXPECT_EQ(base::exit_of_child([&] {
              if (::setresuid(65534, 65534, 65534) != 0) return 1;
              const auto refused = attach(kPort);
              if (refused || refused.error().status != Status::not_permitted) return 2;
              if (refused.error().message.find("--engine 127.0.0.1:613") == std::string::npos) return 3;
              if (refused.error().message.find("ip_unprivileged_port_start") == std::string::npos) return 4;
              return attach(kNamed) && attach(0) ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(attach(kPort).has_value()) << "root itself may";
  EXPECT_EQ(base::exit_of_child([&] {
              if (::setresuid(65534, 65534, 65534) != 0) return 1;
              const auto refused = attach(kPort);
              return !refused && refused.error().status == Status::not_permitted ? 0 : 2;
            }),
            0)
      << "nor one that serves root";
}

TEST(HostileVisitor, SeesOnlyApplicationsOfItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
  constexpr std::uint32_t kUser = 65534;
  const HostForTests host(ServiceOptions{.rules = {Rule{}}, .threads = 2});
  ASSERT_EQ(::chmod(std::filesystem::path(host.file()).parent_path().c_str(), 0755), 0);
  const auto attach = [&] {
    return HostCore::attach(host.file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), {});
  };
  const auto one = attach(), other = attach();
  ASSERT_TRUE(one && other);
  EXPECT_EQ(base::exit_of_child([&] {
              if (::setresuid(kUser, kUser, kUser) != 0) return 1;
              const auto own = attach();
              const auto seen = list_attached(host.file(), 1);
              if (!own || !seen) return 2;
              return seen->size() == 1 && seen->front().user == kUser && seen->front().process == ::getpid() ? 0 : 3;
            }),
            0);
  EXPECT_GE(list_attached(host.file(), 1).value().size(), 2u) << "root sees all";
}

// During exec() the kernel closes descriptors, and a close that another user has prepared can take long.
TEST(HostileVisitor, WhoGivesWhatTakesLongToCloseHoldsUpNoReplacement) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
  char folder[] = "/tmp/fairlead-host-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  ASSERT_EQ(::chmod(folder, 0755), 0);
  const std::string file = std::string(folder) + "/host";
  auto service = Service::open({.file = file, .rules = {Rule{}}}).value();
  base::LingeringSocket lingering;
  EXPECT_EQ(base::exit_of_child([&] {
              if (::setresuid(65534, 65534, 65534) != 0) return 1;
              const std::array descriptors{lingering.get()};
              return Hostile(file).connect().send(std::as_bytes(std::span("rubbish")), descriptors) ? 0 : 2;
            }),
            0);
  lingering.take().reset();
  Result<Handover> handover = std::unexpected(Error{});
  const auto try_again = [&] {
    EXPECT_FALSE(service->run(base::MonotonicClock::now() + std::chrono::milliseconds(10)));
    handover = service->hand_over();
  };
  try_again();
  ASSERT_FALSE(handover.has_value());
  EXPECT_NE(handover.error().message.find("takes long to close"), std::string::npos) << handover.error().message;
  lingering.abort();
  for (const auto end = base::MonotonicClock::now() + Hostile::kPatience;
       !handover && base::MonotonicClock::now() < end;)
    try_again();
  ASSERT_TRUE(handover.has_value());
  service->go_on(std::move(*handover));
  service.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fairlead::host
