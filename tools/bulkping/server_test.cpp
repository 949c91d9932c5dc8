#include "tools/bulkping/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tools/base/event_waiter.hpp"

namespace fairlead::tools {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSize = 5000;

/// A server on a thread, and a client that sends arbitrary requests.
class BulkpingServerOf : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.start("127.0.0.1@udp:*:39:*"));
    serving_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) server_.serve(20ms);
    });
    ASSERT_TRUE(client_.start("127.0.0.1@udp:*:39:*"));
    to_ = client_.machine().create_end_point(server_.address()).value();
    message_->set_callback([](const net::BufferEvent&) {});
    bulk_->set_callback(
        [this](const net::BufferEvent& event) { waiter_.update([&] { bulk_status_ = event.status; }); });
  }

  void TearDown() override {
    to_ = {};
    client_.stop();
    serving_ = {};
  }

  /// Sends a request and waits for the verdict.
  std::optional<Request> ask(const Request& request) {
    waiter_.update([&] { verdict_.reset(); });
    while (message_->is_queued()) std::this_thread::sleep_for(1ms);
    const std::size_t length = encode(request, message_->segment(0));
    EXPECT_EQ(client_.machine().add(*message_, net::MessageSend{.to = to_, .length = length}), Status::ok);
    waiter_.wait([&] { return verdict_.has_value(); }, Instant::clock::now() + 20s, [] { return false; });
    return waiter_.look([&] { return verdict_; });
  }

  /// Exposes a filled buffer to be fetched.
  Request expose(std::uint32_t loop) {
    Request request;
    request.kind = RequestKind::fetch;
    request.client = 99;
    request.loop = loop;
    request.size = kSize;
    fill_pattern(bulk_->segment(0), request.payload(Direction::to_server));
    EXPECT_EQ(client_.machine().add(*bulk_, net::PassiveSend{}), Status::ok);
    request.rest.assign(bulk_->descriptor().begin(), bulk_->descriptor().end());
    return request;
  }

  static BulkpingClientOptions client_options() {
    BulkpingClientOptions options;
    options.is_async = true;
    return options;
  }

  net::Domain domain_ = net::Domain::open().value();
  BulkpingServer server_{domain_, BulkpingServerOptions{}};
  BulkpingMachine client_{domain_, client_options(), [this](Request verdict, const net::EndPoint&) {
                            waiter_.update([&] { verdict_ = std::move(verdict); });
                          }};
  EventWaiter waiter_{client_.machine(), false};
  std::optional<Request> verdict_;
  std::optional<Status> bulk_status_;
  std::unique_ptr<net::Buffer> message_ = net::Buffer::allocate(domain_, 4096).value();
  std::unique_ptr<net::Buffer> bulk_ = net::Buffer::allocate(domain_, kSize).value();
  net::EndPoint to_;
  std::jthread serving_;
};

TEST_F(BulkpingServerOf, RefusesADescriptorWithAnyByteChangedAndTakesTheRightOne) {
  const Request right = expose(1);
  for (std::size_t i = 0; i < right.rest.size(); ++i) {
    Request wrong = right;
    wrong.rest[i] ^= std::byte{0x01};
    const auto verdict = ask(wrong);
    ASSERT_TRUE(verdict) << "byte " << i;
    EXPECT_NE(verdict->status, Status::ok) << "byte " << i;
    EXPECT_TRUE(bulk_->is_queued()) << "byte " << i;
  }
  Request shorter = right;
  shorter.rest.pop_back();
  EXPECT_EQ(ask(shorter).value().status, Status::invalid);
  EXPECT_EQ(ask(right).value().status, Status::ok);
  EXPECT_EQ(waiter_.look([&] { return bulk_status_; }), Status::ok);
  EXPECT_EQ(server_.figures().fetches, 1u);
  EXPECT_EQ(server_.figures().refusals, net::kDescriptorSize + 1);
}

TEST_F(BulkpingServerOf, TellsWhoSentWhatItShouldNotHave) {
  Request request = expose(1);
  bulk_->segment(0)[4321] ^= std::byte{0x80};
  const Request verdict = ask(request).value();
  EXPECT_EQ(verdict.status, Status::invalid);
  EXPECT_EQ(verdict.text(), "corrupt data at byte 4321 of 5000");
  EXPECT_EQ(server_.figures().corrupt, 1u);
}

TEST_F(BulkpingServerOf, RefusesSizesThatItCannotServe) {
  for (const std::uint64_t size : {std::uint64_t{0}, kBulkSizeMax + 1, ~std::uint64_t{0}}) {
    Request request;
    request.kind = RequestKind::deliver;
    request.size = size;
    request.rest.resize(net::kDescriptorSize);
    EXPECT_EQ(ask(request).value().status, Status::too_big) << size;
  }
}

}  // namespace
}  // namespace fairlead::tools
