// Invitations: how two programs connect.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include <fairlead/net.h>
#include <fairlead/net.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::net {
namespace {

using namespace std::chrono_literals;

Instant soon() {
  return Instant::clock::now() + 20s;
}

class InvitationTest : public ::testing::Test {
 protected:
  InvitationTest() {
    for (TransferMachine* const machine : {&near_, &far_}) EXPECT_TRUE(machine->deliver_synchronously());
    EXPECT_TRUE(near_.start_and_wait("0@lo:20480:34:1"));
    EXPECT_TRUE(far_.start_and_wait("0@lo:20480:34:2"));
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_socket_ = base::FileDescriptor(ends[0]);
    far_socket_ = base::FileDescriptor(ends[1]);
    EXPECT_EQ(buffer_->set_callback([](const BufferEvent&) {}), Status::ok);
  }
  Domain domain_ = Domain::open().value();
  TransferMachine near_{domain_}, far_{domain_};
  base::FileDescriptor near_socket_, far_socket_;
  std::unique_ptr<Buffer> buffer_ = Buffer::allocate(domain_, 100).value();
};

TEST_F(InvitationTest, TwoProgramsMeetAndTransfer) {
  ASSERT_EQ(near_.add(*buffer_, PassiveReceive{}), Status::ok);
  const Buffer* const exposed = buffer_.get();
  std::thread other([&] { EXPECT_TRUE(meet(near_, near_socket_.get(), {&exposed, 1}, soon())); });
  const auto met = meet(far_, far_socket_.get(), {}, soon());
  other.join();
  ASSERT_TRUE(met) << met.error().message;
  EXPECT_EQ(met->peer.address(), "0@lo:20480:34:1");
  ASSERT_EQ(met->exposed.size(), 1u);
  const auto data = Buffer::allocate(domain_, 100).value();
  Status how = Status::again;
  ASSERT_EQ(data->set_callback([&](const BufferEvent& event) { how = event.status; }), Status::ok);
  data->write(0, std::as_bytes(std::span("met", 3)));
  ASSERT_EQ(far_.add(*data, ActiveSend{.descriptor = met->exposed[0]}), Status::ok);
  ASSERT_TRUE(far_.deliver_all());
  EXPECT_EQ(how, Status::ok);
  ASSERT_TRUE(near_.deliver_all());
  EXPECT_EQ(buffer_->bytes(0, 3)[2], std::byte{'t'});
}

TEST_F(InvitationTest, IsTheSameAfterItsWayAsText) {
  ASSERT_EQ(near_.add(*buffer_, PassiveSend{.length = 7}), Status::ok);
  const Buffer* const exposed[] = {buffer_.get(), buffer_.get()};
  const auto own = Invitation::of(near_, exposed);
  ASSERT_TRUE(own);
  const std::string text = own->to_text();
  EXPECT_TRUE(text.starts_with("fairlead-net-1 0@lo:20480:34:1 ")) << text;
  const auto back = Invitation::from_text("  " + text + "\n");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, *own);
  EXPECT_EQ(inspect(back->exposed[1])->size, 7u);
}

TEST_F(InvitationTest, NamesNoBufferThatIsElsewhere) {
  const Buffer* const exposed = buffer_.get();
  const auto invite = [&] { return Invitation::of(near_, {&exposed, 1}); };
  ASSERT_EQ(near_.add(*buffer_, PassiveSend{}), Status::ok);
  EXPECT_TRUE(invite());
  ASSERT_TRUE(near_.cancel(*buffer_));
  ASSERT_EQ(near_.deliver_all().value(), 1u);
  ASSERT_EQ(near_.add(*buffer_, MessageReceive{}), Status::ok);  // its descriptor stems from an earlier operation
  EXPECT_EQ(invite().error().status, Status::bad_state);
  ASSERT_TRUE(near_.cancel(*buffer_));
  ASSERT_EQ(near_.deliver_all().value(), 1u);
  ASSERT_EQ(far_.add(*buffer_, PassiveSend{}), Status::ok);
  EXPECT_EQ(invite().error().status, Status::bad_state);
}

TEST_F(InvitationTest, IsRefusedIfItIsNone) {
  ASSERT_EQ(near_.add(*buffer_, PassiveSend{}), Status::ok);
  const Buffer* const exposed = buffer_.get();
  const std::string good = Invitation::of(near_, {&exposed, 1})->to_text();
  std::string damaged = good;
  damaged.back() = damaged.back() == '0' ? '1' : '0';
  for (const std::string& bad :
       {std::string(), std::string("fairlead-net-2 0@lo:20480:34:1"), std::string("fairlead-net-1"),
        std::string("fairlead-net-1 0@lo:20480:34:*"), std::string("fairlead-net-1 0@lo:20480:64:1"),
        std::string("fairlead-net-1 nowhere"), good + "0", damaged, std::string("fairlead-net-1 0@lo:20480:34:1 zz")}) {
    const auto refused = Invitation::from_text(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().status, Status::invalid);
  }
  std::string many = "fairlead-net-1 0@lo:20480:34:1";
  for (std::size_t i = 0; i <= Invitation::kExposedMost; ++i) many += good.substr(good.rfind(' '));
  EXPECT_FALSE(Invitation::from_text(many));
}

TEST_F(InvitationTest, NeedsAMachineAndBuffersThatArePassive) {
  const TransferMachine idle(domain_);
  EXPECT_EQ(Invitation::of(idle).error().status, Status::bad_state);
  const Buffer* const exposed = buffer_.get();
  EXPECT_EQ(Invitation::of(near_, {&exposed, 1}).error().status, Status::bad_state);
}

TEST_F(InvitationTest, TheOtherEndMayBeLateGoneOrAStranger) {
  EXPECT_EQ(meet(near_, near_socket_.get(), {}, Instant::clock::now()).error().status, Status::timed_out);
  std::array<char, 512> said{};
  ASSERT_GT(::read(far_socket_.get(), said.data(), said.size()), 0);  // the invitation was sent nevertheless
  ASSERT_EQ(::write(far_socket_.get(), "HTTP/1.1", 8), 8);
  EXPECT_EQ(meet(near_, near_socket_.get(), {}, soon()).error().system_errno, EPROTO);
  far_socket_ = base::FileDescriptor();
  EXPECT_EQ(meet(near_, near_socket_.get(), {}, soon()).error().system_errno, ECONNRESET);
}

// Both C functions, on one machine: this program holds the other end of the socket.
TEST_F(InvitationTest, ProgramsInCMeetToo) {
  fairlead_net_domain* domain = nullptr;
  fairlead_net_machine* machine = nullptr;
  ASSERT_EQ(fairlead_net_domain_open(nullptr, &domain), FAIRLEAD_OK);
  ASSERT_EQ(fairlead_net_machine_create(domain, nullptr, nullptr, &machine), FAIRLEAD_OK);
  ASSERT_EQ(fairlead_net_machine_start_and_wait(machine, "0@lo:20480:34:3"), FAIRLEAD_OK);
  ASSERT_EQ(near_.add(*buffer_, PassiveReceive{}), Status::ok);
  const Buffer* const exposed[] = {buffer_.get(), buffer_.get()};
  std::thread other([&] { EXPECT_TRUE(meet(near_, near_socket_.get(), exposed, soon())); });
  fairlead_net_end_point* peer = nullptr;
  std::array<std::uint8_t, FAIRLEAD_NET_DESCRIPTOR_SIZE> descriptor{};
  std::size_t count = 1;
  ASSERT_EQ(fairlead_net_machine_meet(machine, far_socket_.get(), nullptr, 0, fairlead_net_now() + 20'000'000'000,
                                      &peer, descriptor.data(), &count),
            FAIRLEAD_OK);
  other.join();
  EXPECT_EQ(count, 2u);  // there was room for only one
  EXPECT_TRUE(std::equal(descriptor.begin(), descriptor.end(), buffer_->descriptor().begin(),
                         [](std::uint8_t a, std::byte b) { return a == std::to_integer<std::uint8_t>(b); }));
  std::array<char, 4096> text{};
  EXPECT_LT(fairlead_net_machine_invite(machine, nullptr, 0, text.data(), text.size()), text.size());
  EXPECT_STREQ(text.data(), "fairlead-net-1 0@lo:20480:34:3");
  fairlead_net_end_point_free(peer);
  count = 0;
  ASSERT_EQ(fairlead_net_machine_accept(machine, text.data(), &peer, nullptr, &count), FAIRLEAD_OK);
  fairlead_net_end_point_address(peer, text.data(), text.size());
  EXPECT_STREQ(text.data(), "0@lo:20480:34:3");
  fairlead_net_end_point_free(peer);
  fairlead_net_machine_free(machine);
  fairlead_net_domain_free(domain);
}

}  // namespace
}  // namespace fairlead::net
