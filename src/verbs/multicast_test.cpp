// UD to multicast groups: delivery, counted drops, and operations that are refused (docs/queue-pairs.md).

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/owned_file.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

/// A group that only this process uses.
Gid group_of_test(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 82, static_cast<std::uint8_t>(::getpid()), last};
}
/// The same group in the notation of RoCE v1.
Gid older_form(Gid group) {
  group[0] = 0xFF;
  group[1] = 0x0E;
  return group;
}

PairOptions datagrams() {
  PairOptions options;
  options.type = QpType::ud;
  return options;
}

class Multicast : public ::testing::Test {
 protected:
  Multicast() : c_(Road::udp, datagrams()), third_(*make_pair_at(c_.b, QpType::ud, datagrams().capacity)) {
    move_up(third_, c_.attributes_of_b(), QpState::rtr);
  }
  ~Multicast() override {
    for (QueuePair* pair : {&c_.pa, &c_.pb, &third_})
      for (const Gid& group : attached_) (void)pair->detach_multicast(group);
  }

  void attach(QueuePair& pair, const Gid& group) {
    const auto attached = pair.attach_multicast(group);
    ASSERT_TRUE(attached) << attached.error().message;
    attached_.push_back(group);
  }
  void receive(Side& side, QueuePair& pair, std::uint64_t id, std::size_t offset) {
    const Sge to = side.sge(offset, 5000);
    ASSERT_EQ(pair.post_receive({.id = id, .sges = {&to, 1}}), 0);
  }
  /// Sends from a's queue pair; the completion succeeds, whatever happens to the message.
  void send(const Gid& group, std::uint32_t size = 100, std::uint32_t key = kQueueKey) {
    auto handle =
        AddressHandle::create(c_.a.domain, {.dgid = group, .hop_limit = 1, .traffic_class = 0x20, .is_global = true});
    ASSERT_TRUE(handle);
    const Sge from = c_.a.sge(1'000'000, size);
    ASSERT_EQ(c_.pa.post_send({.id = 7,
                               .sges = {&from, 1},
                               .opcode = SendOpcode::send_imm,
                               .flags = send_flags::signaled,
                               .imm = 55,
                               .to = &handle->vector(),
                               .remote_qpn = kMulticastQpn,
                               .remote_qkey = key}),
              0);
    EXPECT_EQ(c_.one_at_a().status, WcStatus::success);
  }
  void expect_counted_at_b(const char* counter, std::uint64_t times) {
    EXPECT_TRUE(times == 0 || c_.wait_until_counted_at_b(counter, times - 1)) << counter;
    EXPECT_EQ(c_.counted_at_b(counter), times) << counter;
  }

  Connected c_;
  QueuePair third_;
  std::vector<Gid> attached_;
};

TEST_F(Multicast, ReachesEveryQueuePairThatIsAttachedOnce) {
  const Gid group = group_of_test(1);
  for (QueuePair* pair : {&c_.pa, &c_.pb, &third_}) attach(*pair, group);
  attach(third_, older_form(group));
  c_.a.fill(1'000'000, 4096, 3);
  for (const std::uint32_t size : {0U, 100U, 4096U}) {
    receive(c_.a, c_.pa, 1, 0);
    receive(c_.b, c_.pb, 2, 0);
    receive(c_.b, third_, 3, 10'000);
    send(group, size);
    const WorkCompletion own = c_.one_at_a();
    EXPECT_EQ(own.wr_id, 1U) << "a device tells its own queue pairs, too";
    auto at_b = c_.at_b(2);
    ASSERT_EQ(at_b.size(), 2U);
    std::ranges::sort(at_b, {}, &WorkCompletion::wr_id);
    for (const WorkCompletion& each : at_b) {
      EXPECT_EQ(each.status, WcStatus::success);
      EXPECT_EQ(each.byte_len, 40 + size);
      EXPECT_EQ(each.src_qp, c_.pa.number());
      EXPECT_EQ(each.imm, 55U);
      EXPECT_EQ(each.wc_flags, wc_flags::grh | wc_flags::with_imm);
      const std::byte* place = c_.b.memory.data() + (each.wr_id == 2 ? 0 : 10'000);
      EXPECT_EQ(std::memcmp(place + 40, c_.a.memory.data() + 1'000'000, size), 0);
      EXPECT_EQ(std::memcmp(place + 36, group.data() + 12, 4), 0) << "the header names the group";
      const auto sender = address_of_sender(each, std::span<const std::byte, 40>(place, 40));
      ASSERT_TRUE(sender);
      EXPECT_EQ(sender->dgid, c_.a.device.gid);
      EXPECT_EQ(sender->traffic_class, 0x20);
    }
  }
  expect_counted_at_b("qp.requests_executed", 6);
}

TEST_F(Multicast, ReachesAnyGidThatNamesAGroup) {
  const Gid group{0xFF, 0x12, 0xA0, 0x1B, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(::getpid()), 2, 9};
  Gid at_the_same_address = group;
  at_the_same_address[2] = 0xA1;
  attach(c_.pb, group);
  receive(c_.b, c_.pb, 2, 0);
  send(at_the_same_address);
  expect_counted_at_b("qp.dropped_group_foreign", 1);
  send(group);
  EXPECT_EQ(c_.one_at_b().wr_id, 2U);
  EXPECT_EQ(std::memcmp(c_.b.memory.data() + 24, group.data(), 16), 0);
}

TEST_F(Multicast, DropsWhatNobodyTakes) {
  const Gid group = group_of_test(3);
  attach(c_.pb, group);
  send(group);
  expect_counted_at_b("qp.dropped_no_receive", 1);
  receive(c_.b, c_.pb, 2, 0);
  send(group, 100, 1);
  expect_counted_at_b("qp.dropped_queue_key", 1);
  send(group);
  EXPECT_EQ(c_.one_at_b().wr_id, 2U);
}

TEST_F(Multicast, EndsWithTheAttachment) {
  const Gid group = group_of_test(4), other = group_of_test(5);
  attach(c_.pb, group);
  attach(c_.pb, other);
  EXPECT_EQ(c_.pb.destroy().error().system_errno, EBUSY);
  EXPECT_TRUE(c_.pb.detach_multicast(older_form(group)));
  EXPECT_EQ(c_.pb.detach_multicast(group).error().system_errno, EINVAL);
  receive(c_.b, c_.pb, 2, 0);
  send(group);
  send(other, 60);
  EXPECT_EQ(c_.one_at_b().byte_len, 100U) << "of the other group";
}

TEST_F(Multicast, IsOfDatagramsAndGroupsAlone) {
  Gid none = group_of_test(1);
  none[12] = 10;
  EXPECT_EQ(c_.pb.attach_multicast(none).error().system_errno, EINVAL);
  EXPECT_EQ(c_.pb.attach_multicast({}).error().system_errno, EINVAL);
  auto reliable = *make_pair_at(c_.b);
  EXPECT_EQ(reliable.attach_multicast(group_of_test(1)).error().system_errno, EINVAL);
  for (std::uint8_t i = 0; i < c_.b.context.limits().max_groups; ++i) attach(c_.pb, group_of_test(i));
  const auto beyond = third_.attach_multicast(group_of_test(200));
  EXPECT_EQ(beyond.error().system_errno, ENOMEM);
  EXPECT_NE(beyond.error().message.find("leave one"), std::string::npos) << beyond.error().message;
}

TEST_F(Multicast, AGidThatNamesNoGroupReachesNobody) {
  const Gid group = group_of_test(7), none{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 0};
  attach(c_.pa, group);
  attach(c_.pb, group);
  send(none);
  EXPECT_EQ(c_.a.counted("qp.dropped_unreachable"), 1U) << "LID 0 is not that of a group without one";
  EXPECT_EQ(c_.a.counted("qp.group_sent"), 0U);
}

/// Any process that can send to groups, at 127.0.0.9.
class Stranger {
 public:
  Stranger() {
    sockaddr_in from{.sin_family = AF_INET, .sin_port = 0, .sin_addr = own_, .sin_zero = {}};
    EXPECT_EQ(::bind(sender_.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    const ip_mreqn interface{{}, own_, 0};
    EXPECT_EQ(::setsockopt(sender_.get(), IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface), 0);
  }
  void send(const Gid& group, std::string_view bytes) const {
    const sockaddr_in to = address_of(group);
    ASSERT_EQ(::sendto(sender_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }
  void listen(const Gid& group) const {
    const sockaddr_in at = address_of(group);
    const ip_mreqn member{at.sin_addr, own_, 0};
    constexpr int kYes = 1;
    const timeval most{.tv_sec = 30, .tv_usec = 0};
    ASSERT_EQ(::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes), 0);
    ASSERT_EQ(::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    ASSERT_EQ(::setsockopt(listener_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member), 0);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  /// Returns the next datagram that arrives where it listens.
  std::string overhear() const {
    std::string bytes(5000, ' ');
    const ssize_t size = ::recv(listener_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return bytes;
  }

 private:
  static sockaddr_in address_of(const Gid& group) {
    sockaddr_in to{.sin_family = AF_INET, .sin_port = ::htons(20480 + 1024), .sin_addr = {}, .sin_zero = {}};
    std::memcpy(&to.sin_addr, group.data() + 12, 4);
    return to;
  }

  const in_addr own_{::inet_addr("127.0.0.9")};
  const base::FileDescriptor sender_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const base::FileDescriptor listener_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST_F(Multicast, TakesNothingOfOneGroupThroughAnother) {
  const Gid group = group_of_test(9), other = group_of_test(10);
  const Stranger stranger;
  stranger.listen(group);
  attach(c_.pb, group);
  attach(c_.pb, other);
  receive(c_.b, c_.pb, 1, 0);
  receive(c_.b, c_.pb, 2, 0);
  send(group);
  EXPECT_EQ(c_.one_at_b().byte_len, 140U);
  const std::string heard = stranger.overhear();
  ASSERT_GT(heard.size(), 100U);
  stranger.send(other, heard);
  expect_counted_at_b("qp.dropped_group_malformed", 1);
  send(group, 60);
  EXPECT_EQ(c_.one_at_b().byte_len, 100U);
}

// Two programs of a host may send to one group with different keys.
TEST_F(Multicast, AWrongQueueKeySilencesNobody) {
  const Gid group = group_of_test(9);
  attach(c_.pb, group);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    send(group, 100, kQueueKey + 1);
    expect_counted_at_b("qp.dropped_queue_key", i);
  }
  receive(c_.b, c_.pb, 2, 0);
  send(group);
  EXPECT_EQ(c_.one_at_b().wr_id, 2U);
  EXPECT_EQ(c_.counted_at_b("qp.dropped_group_source"), 0U);
}

TEST_F(Multicast, LooksAtSoMuchNonsenseOfASourceAndNoMore) {
  const Gid group = group_of_test(6);
  attach(c_.pb, group);
  const Stranger stranger;
  // A slow machine may need a second or third second.
  constexpr std::uint64_t kWrongMost = 64;
  constexpr std::uint64_t kMany = kWrongMost * 20;
  for (std::uint64_t i = 0; i < kMany && c_.counted_at_b("qp.dropped_group_source") == 0; ++i) {
    stranger.send(group, "nonsense");
    ASSERT_TRUE(c_.wait_until_counted_at_b("qp.group_received", i));
  }
  EXPECT_GE(c_.counted_at_b("qp.dropped_group_malformed"), kWrongMost);
  EXPECT_EQ(c_.counted_at_b("qp.dropped_group_source"), 1U);
  receive(c_.b, c_.pb, 2, 0);
  send(group);
  EXPECT_EQ(c_.one_at_b().wr_id, 2U) << "another source";
}

TEST(SealedMulticast, IsRefusedWhereNothingUnsealedIsExchanged) {
  std::string folder = std::filesystem::temp_directory_path() / "fairlead_groups_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/psk";
  ASSERT_TRUE(base::create_secret_file(path, "psk " + std::string(64, 'a') + "\n"));
  // A group need not be in the range, even if our own address is.
  for (const char* required : {"0.0.0.0/0", "127.0.0.0/8"}) {
    Side side(7, Road::udp);
    auto context = *Context::open({.name = "sealed",
                                   .address = "127.0.0.8",
                                   .interface_name = {},
                                   .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 8}},
                                  {.engine = {{"path", "udp"}, {"seal", "psk:" + path}, {"seal_require", required}}});
    auto domain = *ProtectionDomain::allocate(context);
    auto queue = *CompletionQueue::create(context, {.capacity = 16});
    auto pair = *QueuePair::create(domain, {.type = QpType::ud, .send_queue = &queue, .receive_queue = &queue});
    const auto attached = pair.attach_multicast(group_of_test(8));
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().system_errno, EPERM);
    EXPECT_NE(attached.error().message.find("FAIRLEAD_SEAL_REQUIRE"), std::string::npos) << attached.error().message;
    move_up(pair, attributes_for(datagrams(), side.device, 1, 0, 0), QpState::rts);
    const AddressVector to{.dgid = group_of_test(8), .is_global = true};
    ASSERT_EQ(pair.post_send({.id = 1, .sges = {}, .to = &to, .remote_qpn = kMulticastQpn}), 0);
    EXPECT_NE(context.describe().find("qp.dropped_group_sealed 1"), std::string::npos) << context.describe();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fairlead::verbs
