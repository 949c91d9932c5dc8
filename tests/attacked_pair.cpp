#include "tests/attacked_pair.hpp"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "embedded/attach.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::tests {

Node::Node(const std::string& ip, const Settings& settings) {
  engine::EngineOptions options;
  EXPECT_TRUE(options.set("path", "udp"));
  for (const auto& [name, value] : settings) EXPECT_TRUE(options.set(name, value)) << name;
  auto attached = embedded::attach_embedded(*base::SocketAddress::from_ip(ip, 0), options);
  EXPECT_TRUE(attached) << attached.error().message;
  core = std::move(*attached);
  const auto opened = core->open_port(kPort);
  EXPECT_TRUE(opened) << ip << " has an engine already";
  port = *opened;
  EXPECT_EQ(core->reserve_events(port, 10'000), Status::ok);
}

std::uint64_t Node::counter(const std::string& name) const {
  for (const observe::CounterFact& fact : core->facts().counters)
    if (fact.name == name) return fact.value;
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

std::optional<engine::Completion> Node::next() const {
  engine::Completion completion;
  core->wait(port, base::MonotonicClock::now() + kPatience);
  return core->next_event(port, completion) ? std::optional(completion) : std::nullopt;
}

void AttackedPair::expect_a_transfer_ends_well(const Node& initiator, bool is_put) {
  std::vector<std::byte> here(1000, std::byte{1}), there(1000, std::byte{2});
  const iovec from{here.data(), here.size()}, to{there.data(), there.size()};
  engine::OperationHandle name;
  std::uint64_t key = 0;
  ASSERT_EQ(victim_.core->expose(victim_.port, {.memory = {&to, 1}, .length = 1000, .is_writable = is_put}, name, key),
            Status::ok);
  const engine::Transfer transfer{.target = victim_.name(),
                                  .target_epoch = victim_.core->epoch(),
                                  .key = key,
                                  .memory = {&from, 1},
                                  .length = 1000};
  ASSERT_EQ(is_put ? initiator.core->put(initiator.port, transfer, name)
                   : initiator.core->get(initiator.port, transfer, name),
            Status::ok);
  for (const Node* node : {&initiator, static_cast<const Node*>(&victim_)}) {
    const auto end = node->next();
    ASSERT_TRUE(end.has_value()) << (node == &initiator ? "the initiator" : "the owner") << " hears nothing";
    EXPECT_EQ(end->status, Status::ok) << initiator.core->describe_peer(victim_.core->address());
  }
  EXPECT_EQ(here, there);
}

AttackedPair::Held AttackedPair::held() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return {static_cast<std::size_t>(std::distance(begin(files), end(files))), ::mallinfo2().uordblks};
}

void AttackedPair::expect_held(const Held& before, std::size_t bytes) {
  const Held now = held();
  constexpr std::size_t kConnectedMost = 2;  // a hot peer of each engine
  EXPECT_LE(now.descriptors, before.descriptors + kConnectedMost);
  EXPECT_LE(now.bytes, before.bytes + bytes);
}

}  // namespace fairlead::tests
