#pragma once
// A test fixture: a transfer machine on a FakeCore, with a record of its callbacks.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "net/fake_core_for_tests.hpp"
#include "net/record_for_tests.hpp"

namespace fairlead::net {

class MachineTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kAddress = "127.0.0.1@udp:20480:34:1";

  std::unique_ptr<Buffer> buffer(std::uint64_t size = 4096) {
    auto made = Buffer::allocate(fake_.domain, size).value();
    EXPECT_EQ(made->set_callback(record_.callback()), Status::ok);
    return made;
  }
  EndPoint start_synchronous() {
    EXPECT_TRUE(machine_.deliver_synchronously());
    return machine_.start_and_wait(kAddress).value();
  }
  EndPoint start() { return machine_.start_and_wait(kAddress).value(); }
  EndPoint peer() { return machine_.create_end_point("10.0.0.9@udp:1:34:5").value(); }
  const QueueStatistics of(QueueKind kind) { return machine_.statistics().of(kind); }
  std::size_t deliver() { return machine_.deliver_all().value(); }

  FakeDomain fake_;
  Record record_;
  std::vector<std::pair<MachineEvent::Kind, MachineState>> machine_events_;  // written by one thread at a time
  std::atomic<std::size_t> machine_events_told_ = 0;
  TransferMachine machine_{fake_.domain, [this](const MachineEvent& event) {
                             machine_events_.emplace_back(event.kind, event.next_state);
                             ++machine_events_told_;
                           }};
};

}  // namespace fairlead::net
