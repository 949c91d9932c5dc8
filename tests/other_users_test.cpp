// Engines of different users of one host that admit each other. They connect through shared memory only after both have
// proven their addresses. A process that has merely bound an address's name reads no messages for that address.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/place_for_tests.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "engine/engine_options.hpp"
#include "shm/listener.hpp"
#include "tests/other_user.hpp"

namespace fairlead::tests {
namespace {

constexpr std::uint32_t kOwnPort = 1;
constexpr auto kHearsWithin = std::chrono::seconds(30);
constexpr std::string_view kSecret = "the password is swordfish";

/// An engine, and a port of it.
class UserNode {
 public:
  UserNode(const base::SocketAddress& own, const std::string& path, const std::string& users = "all") {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", path) && options.set("shm_users", users));
    core_ = *embedded::attach_embedded(own, options);
    port_ = *core_->open_port(kOwnPort);
    EXPECT_EQ(core_->reserve_events(port_, 100), Status::ok);
  }
  ~UserNode() { core_->close_port(port_); }

  std::uint64_t counter(std::string_view name) const {
    for (const observe::CounterFact& fact : core_->facts().counters)
      if (fact.name == name) return fact.value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  /// Returns the status of the next event, or timed_out if none comes.
  Status end() const {
    engine::Completion completion;
    core_->wait(port_, base::MonotonicClock::now() + kHearsWithin);
    return core_->next_event(port_, completion) ? completion.status : Status::timed_out;
  }
  Status send(const base::SocketAddress& to) const {
    const iovec piece{const_cast<char*>(kSecret.data()), kSecret.size()};
    engine::OperationHandle name;
    const engine::SendPart part{.memory = {&piece, 1}, .length = kSecret.size()};
    const Status begun = core_->send(port_, {.to = {to, kOwnPort}, .part = part}, name);
    return begun == Status::ok ? end() : begun;
  }
  std::string describe(const base::SocketAddress& peer) const { return core_->describe_peer(peer); }
  void post() {
    engine::OperationHandle name;
    EXPECT_EQ(core_->post_receive(port_, {.memory = {&piece_, 1}, .size_min = 1}, name), Status::ok);
  }
  bool receives() const {
    return end() == Status::ok && std::memcmp(memory_.data(), kSecret.data(), kSecret.size()) == 0;
  }

 private:
  std::array<std::byte, 64> memory_{};
  iovec piece_{memory_.data(), memory_.size()};
  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
};

class UsersOfOneHost : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const auto hindrance = OtherUser::become_able();
    ASSERT_FALSE(hindrance) << *hindrance;
  }
  const base::SocketAddress here_ = base::place_for_tests(1), there_ = base::place_for_tests(2);
};

class OtherUsers : public UsersOfOneHost, public testing::WithParamInterface<std::string> {};

TEST_P(OtherUsers, MeetInSharedMemoryWhenTheyKnowEachOther) {
  OtherUser other(OtherUser::kNobody, [&](OtherUser& line) {
    UserNode node(there_, GetParam());
    do {
      node.post();
      line.say('p');
    } while (node.receives() && line.hear('m'));
  });
  const UserNode node(here_, GetParam());
  // The first messages may go over UDP while the engines connect.
  for (int i = 0; i < 10'000 && node.counter("shm.messages_sent") == 0; ++i) {
    ASSERT_TRUE(other.hear('p')) << "it got something else";
    ASSERT_EQ(node.send(there_), Status::ok);
    other.say('m');
  }
  EXPECT_GT(node.counter("shm.messages_sent"), 0u);
  EXPECT_EQ(node.counter("shm.peers_opened"), 1u);
  EXPECT_TRUE(other.hear('p'));
}

TEST_P(OtherUsers, TellNobodyWhatIsForAnAddressThatHeHasOnlyBoundTheNameOf) {
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    shm::Users users;
    const auto listener = shm::Listener::open(there_, {}, users).value();
    line.say('o');
    line.hear('g');
    char byte = 0;
    bool has_learnt = false;
    while (const auto caught = listener.accept())
      has_learnt |= ::recv(caught->descriptor(), &byte, 1, MSG_DONTWAIT) > 0;
    line.say(has_learnt ? 'y' : 'n');
  });
  ASSERT_TRUE(liar.hear('o'));
  {
    const UserNode node(here_, GetParam());
    EXPECT_EQ(node.send(there_), GetParam() == "auto" ? Status::refused : Status::unreachable);
    EXPECT_EQ(node.counter("shm.peers_opened"), 0u);
  }
  liar.say('g');
  EXPECT_TRUE(liar.hear('n')) << "it was greeted";
}

// With path=shm there is no other way to the peer, so the reason is the cause of the failure.
TEST_F(UsersOfOneHost, ThatAreNotAdmittedAreTheCauseIfThereIsNoOtherPath) {
  OtherUser other(OtherUser::kNobody, [&](OtherUser& line) {
    const UserNode node(there_, "shm");
    line.say('o');
    line.hear('g');
  });
  ASSERT_TRUE(other.hear('o'));
  {
    const UserNode node(here_, "shm", "own");
    EXPECT_EQ(node.send(there_), Status::unreachable);
    EXPECT_THAT(node.describe(there_), testing::AllOf(testing::HasSubstr("path=shm permits no other path: "),
                                                      testing::HasSubstr("belongs to user 65534"),
                                                      testing::HasSubstr("FAIRLEAD_SHM_USERS=all")));
  }
  other.say('g');
}

INSTANTIATE_TEST_SUITE_P(By, OtherUsers, testing::Values("auto", "shm"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace fairlead::tests
