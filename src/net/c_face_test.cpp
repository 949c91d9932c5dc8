// <fairlead/net.h> as a C program sees it, over an engine of this process.

#include <fairlead/net.h>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string explained() {
  std::array<char, 512> text{};
  EXPECT_LT(fairlead_net_explain_last(text.data(), text.size()), text.size());
  return text.data();
}

fairlead_net_operation operation(fairlead_net_queue queue) {
  fairlead_net_operation made{};
  made.struct_size = sizeof(made);
  made.queue = queue;
  return made;
}

struct Told {
  fairlead_net_queue queue;
  fairlead_status status;
  bool is_final;
  std::uint64_t length, offset;
  std::string sender;
};

class CFaceTest : public ::testing::Test {
 protected:
  CFaceTest() {
    EXPECT_EQ(fairlead_net_domain_open(nullptr, &domain_), FAIRLEAD_OK);
    machine_ = machine("0@lo:20480:34:1");
    peer_ = machine("0@lo:20480:34:2");
    buffer_ = buffer(256);
    other_ = buffer(256);
  }
  ~CFaceTest() override {
    for (fairlead_net_buffer* const each : {buffer_, other_}) fairlead_net_buffer_free(each);
    for (fairlead_net_machine* const each : {machine_, peer_}) fairlead_net_machine_free(each);
    fairlead_net_domain_free(domain_);
  }
  fairlead_net_machine* machine(const char* address) {
    fairlead_net_machine* made = nullptr;
    EXPECT_EQ(fairlead_net_machine_create(domain_, note_state, this, &made), FAIRLEAD_OK);
    EXPECT_EQ(fairlead_net_machine_deliver_synchronously(made), FAIRLEAD_OK);
    EXPECT_EQ(fairlead_net_machine_start_and_wait(made, address), FAIRLEAD_OK) << explained();
    return made;
  }
  fairlead_net_buffer* buffer(std::uint64_t size) {
    fairlead_net_buffer* made = nullptr;
    EXPECT_EQ(fairlead_net_buffer_allocate(domain_, size, &made), FAIRLEAD_OK);
    EXPECT_EQ(fairlead_net_buffer_set_callbacks(made, note, this), FAIRLEAD_OK);
    return made;
  }
  fairlead_net_end_point* to(const char* address) {
    fairlead_net_end_point* made = nullptr;
    EXPECT_EQ(fairlead_net_machine_create_end_point(peer_, address, &made), FAIRLEAD_OK) << explained();
    return made;
  }
  void deliver() {
    for (fairlead_net_machine* const each : {machine_, peer_})
      EXPECT_EQ(fairlead_net_machine_deliver_all(each, 64, nullptr), FAIRLEAD_OK);
  }
  /// Passes a number that the enum does not name, as C permits.
  __attribute__((no_sanitize("enum"))) fairlead_status stop_as(decltype(fairlead_net_machine_stop)* stop, int number) {
    fairlead_net_stop_mode mode;
    std::memcpy(&mode, &number, sizeof(mode));
    return stop(machine_, mode);
  }
  static void note(const fairlead_net_buffer_event* event, void* user) {
    std::array<char, 128> sender{};
    fairlead_net_end_point_address(event->sender, sender.data(), sender.size());
    static_cast<CFaceTest*>(user)->told_.push_back(
        {event->queue, event->status, event->is_final, event->length, event->offset, sender.data()});
  }
  static void note_state(const fairlead_net_machine_event* event, void* user) {
    if (event->kind == FAIRLEAD_NET_EVENT_STATE_CHANGE)
      static_cast<CFaceTest*>(user)->states_.push_back(event->next_state);
  }

  fairlead_net_domain* domain_ = nullptr;
  fairlead_net_machine *machine_ = nullptr, *peer_ = nullptr;
  fairlead_net_buffer *buffer_ = nullptr, *other_ = nullptr;
  std::vector<Told> told_;
  std::vector<fairlead_net_machine_state> states_;
};

TEST_F(CFaceTest, MessagesAreDeliveredWithTheirSender) {
  fairlead_net_operation receive = operation(FAIRLEAD_NET_MESSAGE_RECEIVE);
  receive.messages_max = 2;
  receive.size_min = 16;
  ASSERT_EQ(fairlead_net_machine_add(machine_, buffer_, &receive), FAIRLEAD_OK);
  fairlead_net_end_point* const there = to("0@lo:20480:34:1");
  fairlead_net_operation send = operation(FAIRLEAD_NET_MESSAGE_SEND);
  send.to = there;
  send.length = 5;
  for (const char* const text : {"first", "other"}) {
    EXPECT_EQ(fairlead_net_buffer_write(other_, 0, text, 5), 5u);
    ASSERT_EQ(fairlead_net_machine_add(peer_, other_, &send), FAIRLEAD_OK) << explained();
    deliver();
  }
  ASSERT_EQ(told_.size(), 4u);
  EXPECT_EQ(told_[0].sender, "0@lo:20480:34:2");
  EXPECT_FALSE(told_[0].is_final);
  EXPECT_EQ(told_[2].offset, 5u);
  EXPECT_TRUE(told_[2].is_final);
  EXPECT_EQ(told_[3].queue, FAIRLEAD_NET_MESSAGE_SEND);
  std::array<char, 10> bytes{};
  EXPECT_EQ(fairlead_net_buffer_read(buffer_, 0, bytes.data(), 10), 10u);
  EXPECT_EQ(std::string_view(bytes.data(), 10), "firstother");
  fairlead_net_statistics figures{};
  figures.struct_size = sizeof(figures);
  ASSERT_EQ(fairlead_net_machine_statistics(machine_, true, &figures), FAIRLEAD_OK);
  EXPECT_EQ(figures.queues[FAIRLEAD_NET_MESSAGE_RECEIVE].successes, 2u);
  EXPECT_EQ(figures.queues[FAIRLEAD_NET_MESSAGE_RECEIVE].bytes_total, 10u);
  fairlead_net_end_point_free(there);
}

TEST_F(CFaceTest, ABulkTransferGoesByItsDescriptor) {
  const fairlead_net_operation expose = operation(FAIRLEAD_NET_PASSIVE_RECEIVE);
  ASSERT_EQ(fairlead_net_machine_add(machine_, buffer_, &expose), FAIRLEAD_OK);
  std::array<std::uint8_t, FAIRLEAD_NET_DESCRIPTOR_SIZE> descriptor{};
  fairlead_net_buffer_descriptor(buffer_, descriptor.data());
  fairlead_net_descriptor_facts facts{};
  facts.struct_size = sizeof(facts);
  ASSERT_EQ(fairlead_net_descriptor_inspect(descriptor.data(), descriptor.size(), &facts), FAIRLEAD_OK);
  EXPECT_EQ(facts.queue, FAIRLEAD_NET_PASSIVE_RECEIVE);
  EXPECT_EQ(facts.size, 256u);
  EXPECT_STREQ(facts.address, "0@lo:20480:34:1");
  fairlead_net_operation fetch = operation(FAIRLEAD_NET_ACTIVE_RECEIVE), fill = operation(FAIRLEAD_NET_ACTIVE_SEND);
  fill.descriptor = fetch.descriptor = descriptor.data();
  fill.descriptor_size = fetch.descriptor_size = descriptor.size();
  EXPECT_EQ(fairlead_net_machine_add(peer_, other_, &fetch), FAIRLEAD_NOT_PERMITTED);
  EXPECT_NE(explained().find("wrong kind of queue"), std::string::npos) << explained();
  fairlead_net_buffer_write(other_, 0, "filled", 6);
  ASSERT_EQ(fairlead_net_machine_add(peer_, other_, &fill), FAIRLEAD_OK) << explained();
  deliver();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].length, 256u);
  std::array<char, 6> bytes{};
  fairlead_net_buffer_read(buffer_, 0, bytes.data(), 6);
  EXPECT_EQ(std::string_view(bytes.data(), 6), "filled");
}

TEST_F(CFaceTest, ManyTransfersAreAddedAtOnce) {
  constexpr std::size_t kCount = 2;
  for (const bool is_get : {false, true}) {
    SCOPED_TRACE(is_get);
    told_.clear();
    const fairlead_net_operation expose = operation(is_get ? FAIRLEAD_NET_PASSIVE_SEND : FAIRLEAD_NET_PASSIVE_RECEIVE);
    std::array<fairlead_net_buffer*, kCount> exposed{}, own{};
    std::array<std::array<std::uint8_t, FAIRLEAD_NET_DESCRIPTOR_SIZE>, kCount> descriptors{};
    std::array<fairlead_net_operation, kCount> operations{};
    std::array<const fairlead_net_operation*, kCount> all{};
    for (std::size_t i = 0; i < kCount; ++i) {
      exposed[i] = buffer(256);
      own[i] = buffer(256);
      const std::uint8_t value = static_cast<std::uint8_t>('a' + i);
      fairlead_net_buffer_write(is_get ? exposed[i] : own[i], 0, &value, 1);
      ASSERT_EQ(fairlead_net_machine_add(machine_, exposed[i], &expose), FAIRLEAD_OK);
      fairlead_net_buffer_descriptor(exposed[i], descriptors[i].data());
      operations[i] = operation(is_get ? FAIRLEAD_NET_ACTIVE_RECEIVE : FAIRLEAD_NET_ACTIVE_SEND);
      operations[i].descriptor = descriptors[i].data();
      operations[i].descriptor_size = descriptors[i].size();
      all[i] = &operations[i];
    }
    std::size_t added = 7;
    const fairlead_net_queue queue = operations[1].queue;
    for (const fairlead_net_queue wrong :
         {FAIRLEAD_NET_MESSAGE_RECEIVE, is_get ? FAIRLEAD_NET_ACTIVE_SEND : FAIRLEAD_NET_ACTIVE_RECEIVE}) {
      operations[1].queue = wrong;
      EXPECT_EQ(fairlead_net_machine_add_transfers(peer_, own.data(), kCount, all.data(), &added), FAIRLEAD_INVALID);
      EXPECT_EQ(added, 0u);
    }
    operations[1].queue = queue;
    EXPECT_EQ(fairlead_net_machine_add_transfers(peer_, own.data(), kCount, nullptr, &added), FAIRLEAD_INVALID);
    EXPECT_EQ(fairlead_net_machine_add_transfers(peer_, nullptr, 0, nullptr, &added), FAIRLEAD_OK);
    ASSERT_EQ(fairlead_net_machine_add_transfers(peer_, own.data(), kCount, all.data(), &added), FAIRLEAD_OK)
        << explained();
    EXPECT_EQ(added, kCount);
    deliver();
    EXPECT_EQ(told_.size(), 2 * kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::uint8_t value = 0;
      fairlead_net_buffer_read(is_get ? own[i] : exposed[i], 0, &value, 1);
      EXPECT_EQ(value, 'a' + i);
      fairlead_net_buffer_free(own[i]);
      fairlead_net_buffer_free(exposed[i]);
    }
  }
}

TEST_F(CFaceTest, ManyTransfersAreAddedUpToTheFirstThatIsRefused) {
  const fairlead_net_operation expose = operation(FAIRLEAD_NET_PASSIVE_RECEIVE);
  ASSERT_EQ(fairlead_net_machine_add(machine_, buffer_, &expose), FAIRLEAD_OK);
  std::array<std::uint8_t, FAIRLEAD_NET_DESCRIPTOR_SIZE> descriptor{};
  fairlead_net_buffer_descriptor(buffer_, descriptor.data());
  std::array<fairlead_net_operation, 2> operations{operation(FAIRLEAD_NET_ACTIVE_SEND),
                                                   operation(FAIRLEAD_NET_ACTIVE_SEND)};
  for (fairlead_net_operation& each : operations) {
    each.descriptor = descriptor.data();
    each.descriptor_size = descriptor.size();
  }
  operations[0].length = 5;
  fairlead_net_buffer* const larger = buffer(257);  // than the buffer that it names
  const std::array own{other_, larger};
  std::array<const fairlead_net_operation*, 2> all{operations.data(), nullptr};
  std::size_t added = 7;
  const auto add_all = [&] { return fairlead_net_machine_add_transfers(peer_, own.data(), 2, all.data(), &added); };
  EXPECT_EQ(add_all(), FAIRLEAD_INVALID) << "an operation is null";
  EXPECT_EQ(added, 0u);
  all[1] = &operations[1];
  operations[1].struct_size = 0;
  EXPECT_EQ(add_all(), FAIRLEAD_INVALID);
  EXPECT_EQ(added, 0u);
  EXPECT_FALSE(fairlead_net_buffer_is_queued(other_)) << "nothing is added before all operations are understood";
  operations[1].struct_size = sizeof(operations[1]);
  EXPECT_EQ(add_all(), FAIRLEAD_TOO_BIG);
  EXPECT_EQ(added, 1u);
  EXPECT_FALSE(fairlead_net_buffer_is_queued(larger));
  deliver();
  ASSERT_EQ(told_.size(), 2u);
  for (const Told& each : told_) EXPECT_EQ(each.length, each.queue == FAIRLEAD_NET_PASSIVE_RECEIVE ? 5u : 0u);
  fairlead_net_buffer_free(larger);
}

TEST_F(CFaceTest, EachQueueOfABufferMayHaveACallbackOfItsOwn) {
  const auto count = [](const fairlead_net_buffer_event*, void* user) { ++*static_cast<int*>(user); };
  int receives = 0;
  ASSERT_EQ(fairlead_net_buffer_set_callbacks(buffer_, nullptr, nullptr), FAIRLEAD_OK);
  const fairlead_net_operation receive = operation(FAIRLEAD_NET_MESSAGE_RECEIVE);
  EXPECT_EQ(fairlead_net_machine_add(machine_, buffer_, &receive), FAIRLEAD_INVALID);
  ASSERT_EQ(fairlead_net_buffer_set_callback(buffer_, FAIRLEAD_NET_MESSAGE_RECEIVE, count, &receives), FAIRLEAD_OK);
  ASSERT_EQ(fairlead_net_machine_add(machine_, buffer_, &receive), FAIRLEAD_OK);
  EXPECT_TRUE(fairlead_net_buffer_is_queued(buffer_));
  EXPECT_TRUE(fairlead_net_machine_cancel(machine_, buffer_));
  deliver();
  EXPECT_EQ(receives, 1);
  EXPECT_FALSE(fairlead_net_machine_cancel(machine_, buffer_));
}

// Structures of later releases: unknown wishes are refused, not ignored. Structures of earlier releases are accepted.
TEST_F(CFaceTest, StructuresOfOtherReleasesAreToldApart) {
  struct Longer {
    fairlead_net_operation known;
    std::uint64_t unknown;
  } later{operation(FAIRLEAD_NET_PASSIVE_RECEIVE), 0};
  later.known.struct_size = sizeof(later);
  EXPECT_EQ(fairlead_net_machine_add(machine_, buffer_, &later.known), FAIRLEAD_OK);
  later.unknown = 1;
  EXPECT_EQ(fairlead_net_machine_add(machine_, other_, &later.known), FAIRLEAD_NOT_SUPPORTED);
  fairlead_net_operation earlier = operation(FAIRLEAD_NET_PASSIVE_RECEIVE);
  earlier.struct_size = offsetof(fairlead_net_operation, length);
  earlier.deadline_ns = 1;  // lies beyond the structure's end, so it is ignored; otherwise it would be too late
  EXPECT_EQ(fairlead_net_machine_add(machine_, other_, &earlier), FAIRLEAD_OK) << explained();
  earlier.struct_size = 0;
  EXPECT_EQ(fairlead_net_machine_add(machine_, other_, &earlier), FAIRLEAD_INVALID);
  EXPECT_NE(explained().find("struct_size"), std::string::npos);
  // The library fills a structure only up to the program's struct_size.
  std::array<fairlead_net_statistics, 2> figures;
  std::memset(static_cast<void*>(figures.data()), 0x55, sizeof(figures));
  figures[0].struct_size = offsetof(fairlead_net_statistics, queues) + sizeof(fairlead_net_queue_statistics);
  ASSERT_EQ(fairlead_net_machine_statistics(machine_, false, figures.data()), FAIRLEAD_OK);
  EXPECT_EQ(figures[0].queues[0].adds, 0u);
  EXPECT_EQ(figures[0].queues[1].adds, 0x5555555555555555u);
}

TEST_F(CFaceTest, WhatIsWrongIsAStatusWithALine) {
  fairlead_net_machine* made = nullptr;
  EXPECT_EQ(fairlead_net_machine_create(domain_, nullptr, nullptr, nullptr), FAIRLEAD_INVALID);
  ASSERT_EQ(fairlead_net_machine_create(domain_, nullptr, nullptr, &made), FAIRLEAD_OK);
  EXPECT_EQ(fairlead_net_machine_start_and_wait(made, "nonsense"), FAIRLEAD_INVALID);
  EXPECT_NE(explained().find("nonsense"), std::string::npos) << explained();
  EXPECT_EQ(fairlead_net_machine_get_state(made), FAIRLEAD_NET_FAILED);
  std::array<char, 8> little{};
  EXPECT_EQ(fairlead_net_machine_failure(made, little.data(), little.size()), FAIRLEAD_INVALID);
  EXPECT_EQ(std::string_view(little.data()).size(), 7u);  // as much as fits
  EXPECT_EQ(fairlead_net_machine_wait(made, 0, nullptr), FAIRLEAD_BAD_STATE);
  fairlead_net_machine_free(made);
  EXPECT_EQ(fairlead_net_domain_close(domain_), FAIRLEAD_BAD_STATE);
  EXPECT_EQ(fairlead_net_machine_add(machine_, nullptr, nullptr), FAIRLEAD_INVALID);
  char told[] = "junk", failure[] = "junk";
  fairlead_net_end_point* const own = fairlead_net_machine_end_point(machine_);
  EXPECT_EQ(fairlead_net_machine_describe(nullptr, own, told, sizeof(told)), 0u);
  EXPECT_EQ(fairlead_net_machine_describe_failure(machine_, nullptr, FAIRLEAD_REFUSED, told, sizeof(told)), 0u);
  EXPECT_EQ(fairlead_net_machine_describe_failure(nullptr, own, FAIRLEAD_REFUSED, told, sizeof(told)), 0u);
  fairlead_net_end_point_free(own);
  EXPECT_EQ(fairlead_net_machine_failure(nullptr, failure, sizeof(failure)), FAIRLEAD_INVALID);
  EXPECT_EQ(std::string(told) + failure, "") << "whoever prints it prints nothing";
  fairlead_net_operation none = operation(static_cast<fairlead_net_queue>(6));
  EXPECT_EQ(fairlead_net_machine_add(machine_, buffer_, &none), FAIRLEAD_INVALID);
  fairlead_net_domain_options options{};
  options.struct_size = sizeof(options);
  const fairlead_net_setting unknown{"no_such_setting", "1"};
  options.settings = &unknown;
  options.settings_count = 1;
  fairlead_net_domain* refused = nullptr;
  EXPECT_EQ(fairlead_net_domain_open(&options, &refused), FAIRLEAD_INVALID);
  EXPECT_NE(explained().find("no_such_setting"), std::string::npos);
  EXPECT_EQ(fairlead_status_errno(FAIRLEAD_TIMED_OUT), ETIMEDOUT);
  EXPECT_STREQ(fairlead_status_name(FAIRLEAD_NO_BUFFER), "no receive buffer");
}

TEST_F(CFaceTest, DeadlinesStopsAndStatesAreTold) {
  fairlead_net_operation receive = operation(FAIRLEAD_NET_MESSAGE_RECEIVE);
  receive.deadline_ns = fairlead_net_now() - 1;
  EXPECT_EQ(fairlead_net_machine_add(machine_, buffer_, &receive), FAIRLEAD_TOO_LATE);
  fairlead_status status = FAIRLEAD_TOO_LATE;
  while (status == FAIRLEAD_TOO_LATE) {  // if this thread was delayed for so long
    receive.deadline_ns = fairlead_net_now() + 1'000'000;
    status = fairlead_net_machine_add(machine_, buffer_, &receive);
  }
  ASSERT_EQ(status, FAIRLEAD_OK);
  bool is_pending = false;
  while (!is_pending) ASSERT_EQ(fairlead_net_machine_wait(machine_, FAIRLEAD_NET_NEVER, &is_pending), FAIRLEAD_OK);
  deliver();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].status, FAIRLEAD_TIMED_OUT);
  receive.deadline_ns = 0;
  ASSERT_EQ(fairlead_net_machine_add(machine_, buffer_, &receive), FAIRLEAD_OK);
  for (const int none : {-1, 2, 1 << 30}) {
    EXPECT_EQ(stop_as(fairlead_net_machine_stop, none), FAIRLEAD_INVALID) << none;
    EXPECT_NE(explained().find("fairlead_net_stop_mode"), std::string::npos) << explained();
    EXPECT_EQ(stop_as(fairlead_net_machine_stop_and_wait, none), FAIRLEAD_INVALID) << none;
  }
  EXPECT_EQ(fairlead_net_machine_get_state(machine_), FAIRLEAD_NET_STARTED);
  EXPECT_TRUE(fairlead_net_buffer_is_queued(buffer_));
  EXPECT_EQ(fairlead_net_machine_stop_and_wait(machine_, FAIRLEAD_NET_ABORT), FAIRLEAD_OK);
  EXPECT_EQ(told_.back().status, FAIRLEAD_CANCELED);
  EXPECT_EQ(states_.back(), FAIRLEAD_NET_STOPPED);
  EXPECT_EQ(fairlead_net_machine_close(machine_), FAIRLEAD_OK);
}

TEST_F(CFaceTest, APoolProvidesReceiveBuffers) {
  fairlead_net_pool_options options{};
  options.struct_size = sizeof(options);
  options.buffer_size = 64;
  options.colours = 2;
  fairlead_net_pool* pool = nullptr;
  ASSERT_EQ(fairlead_net_pool_create(domain_, &options, &pool), FAIRLEAD_OK);
  std::size_t made = 0;
  ASSERT_EQ(fairlead_net_pool_provision(pool, 3, &made), FAIRLEAD_OK);
  EXPECT_EQ(made, 3u);
  EXPECT_EQ(fairlead_net_pool_get(pool, 2), nullptr);
  EXPECT_NE(explained().find("no such colour"), std::string::npos);
  fairlead_net_buffer* const got = fairlead_net_pool_get(pool, 1);
  EXPECT_EQ(fairlead_net_pool_put(pool, got, 1), FAIRLEAD_OK);
  fairlead_net_machine* taker = nullptr;
  ASSERT_EQ(fairlead_net_machine_create(domain_, nullptr, nullptr, &taker), FAIRLEAD_OK);
  ASSERT_EQ(fairlead_net_machine_deliver_synchronously(taker), FAIRLEAD_OK);
  fairlead_net_provision provision{};
  provision.struct_size = sizeof(provision);
  EXPECT_EQ(fairlead_net_machine_attach(taker, pool, &provision), FAIRLEAD_INVALID);
  provision.callback = [](const fairlead_net_buffer_event* event, void* user) {
    if (event->status != FAIRLEAD_OK) return;
    EXPECT_EQ(fairlead_net_pool_put(static_cast<fairlead_net_pool*>(user), event->buffer, FAIRLEAD_NET_ANY_COLOUR),
              FAIRLEAD_OK);
  };
  provision.user = pool;
  provision.reserved[1] = 1;
  EXPECT_EQ(fairlead_net_machine_attach(taker, pool, &provision), FAIRLEAD_INVALID);
  EXPECT_NE(explained().find("reserved"), std::string::npos);
  provision.reserved[1] = 0;
  ASSERT_EQ(fairlead_net_machine_attach(taker, pool, &provision), FAIRLEAD_OK) << explained();
  ASSERT_EQ(fairlead_net_machine_start_and_wait(taker, "0@lo:20480:34:3"), FAIRLEAD_OK);
  fairlead_net_end_point* const there = to("0@lo:20480:34:3");
  fairlead_net_operation send = operation(FAIRLEAD_NET_MESSAGE_SEND);
  send.to = there;
  send.length = 8;
  fairlead_net_buffer* const both[] = {buffer_, other_};
  std::size_t added = 0, delivered = 0;
  send.reserved = 1;
  EXPECT_EQ(fairlead_net_machine_add_all(peer_, both, 2, &send, &added), FAIRLEAD_INVALID);
  EXPECT_EQ(fairlead_net_machine_add(peer_, buffer_, &send), FAIRLEAD_INVALID);
  send.reserved = 0;
  ASSERT_EQ(fairlead_net_machine_add_all(peer_, both, 2, &send, &added), FAIRLEAD_OK);
  EXPECT_EQ(added, 2u);
  ASSERT_EQ(fairlead_net_machine_deliver_all(taker, 16, &delivered), FAIRLEAD_OK);
  EXPECT_EQ(delivered, 2u);
  deliver();
  EXPECT_EQ(fairlead_net_pool_size(pool), 3u);
  EXPECT_EQ(fairlead_net_machine_receive_deficit(taker), 0u);
  fairlead_net_end_point_free(there);
  fairlead_net_machine_free(taker);
  EXPECT_EQ(fairlead_net_pool_free_count(pool), 3u);
  fairlead_net_pool_free(pool);
}

}  // namespace
