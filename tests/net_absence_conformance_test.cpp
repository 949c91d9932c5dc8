// Messages to a machine or an engine that is absent, over each path.

#include <fmt/format.h>

#include "tests/net_message.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::MessageReceive;
using net::MessageSend;

/// Whether a refusal always reaches a sender that did not ask for confirmation. Over the network the acknowledgement
/// may arrive before the refusal.
bool tells_of_all(const NetPath& path) {
  return path.nid == "0@lo" || path.is_one_engine || path.path == "shm";
}

TEST_P(NetMessage, SendsToAnAbsentMachineAreRefused) {
  const auto nobody = near().create_end_point(far_at("35:77")).value();
  net::Record refused;
  std::size_t seen = 0;
  for (const std::uint64_t size : {1UL, 100UL, 5000UL, 200'000UL}) {
    for (const bool is_confirmed : {true, false}) {
      if (!is_confirmed && !tells_of_all(GetParam())) continue;
      const auto one = buffer(size, refused);
      ASSERT_EQ(near().add(*one, MessageSend{.to = nobody, .is_confirmed = is_confirmed}), Status::ok);
      EXPECT_EQ(refused.wait_for(++seen).back().status, Status::refused) << size;
    }
  }
  const auto inbox = buffer(100, far_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
  send(100, 1);  // a message sent after the refused ones arrives
  EXPECT_EQ(far_record_.wait_for(1).at(0).status, Status::ok);
}

class NetBurst : public NetMessage {};
INSTANTIATE_TEST_SUITE_P(Paths, NetBurst, testing::ValuesIn(net_paths_where(tells_of_all)),
                         [](const auto& test) { return test.param.name; });

TEST_P(NetBurst, ManyAtOnceToAnAbsentMachineAreAllRefused) {
  const auto nobody = near().create_end_point(far_at("35:77")).value();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> all;
  for (int i = 0; i < 50; ++i) {
    buffers.push_back(buffer(20, near_record_));
    all.push_back(buffers.back().get());
  }
  ASSERT_EQ(near().add(all, MessageSend{.to = nobody}).count, all.size());
  for (const auto& entry : near_record_.wait_for(all.size())) EXPECT_EQ(entry.status, Status::refused);
}

// Only paths without faults: with losses the test would take as long as the retransmissions, and show nothing more.
class NetAbsence : public NetMessage {};

TEST_P(NetAbsence, SendsToAnAbsentEngineSayWhy) {
  const std::uint16_t absent = GetParam().nid == "0@lo" ? 7 : free_pid(GetParam().nid);
  const auto nobody = near().create_end_point(fmt::format("{}:{}:34:1", GetParam().nid, absent)).value();
  const auto one = buffer(100, near_record_);
  const Status status = near().add(*one, MessageSend{.to = nobody});
  const Status ended = status == Status::ok ? near_record_.wait_for(1).at(0).status : status;
  // The kernel reports an absent port, but not an absent name of a socket. Inside an engine nobody answers.
  const bool is_untold = GetParam().nid == "0@lo" || GetParam().path == "shm";
  EXPECT_EQ(ended, is_untold ? Status::unreachable : Status::refused);
}

INSTANTIATE_TEST_SUITE_P(Paths, NetAbsence,
                         ::testing::ValuesIn(net_paths_where([](const NetPath& path) { return path.fault.empty(); })),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
