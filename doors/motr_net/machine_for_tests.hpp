#pragma once
// A transfer machine and buffers for tests of Motr's interface, with a record of their callbacks.

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "doors/motr_net/include/motr_net.h"

namespace fairlead::motr {

struct TestBuffer;

/// The callbacks of all machines and buffers of a test.
class Told {
 public:
  struct Completion {
    TestBuffer* buffer;
    m0_net_queue_type queue;
    std::int32_t status;
    m0_bcount_t length;
    m0_bindex_t offset;
    std::string sender;
    bool is_final;
    std::thread::id thread;
  };

  void add(Completion completion) {
    const std::scoped_lock lock(mutex_);
    completions_.push_back(std::move(completion));
    changed_.notify_all();
  }
  /// Blocks until so many completions have come.
  std::vector<Completion> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completions_.size() >= count; });
    return completions_;
  }
  std::vector<Completion> all() { return wait_for(0); }
  void clear() {
    const std::scoped_lock lock(mutex_);
    completions_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Completion> completions_;
};

struct TestBuffer : m0_net_buffer {
  explicit TestBuffer(Told& record, std::uint32_t segments = 1, m0_bcount_t segment_size = 4096)
      : m0_net_buffer{}, told(record) {
    EXPECT_EQ(m0_bufvec_alloc_aligned(&nb_buffer, segments, segment_size, 12), 0);
    static constexpr m0_net_buffer_callbacks kCallbacks{{note, note, note, note, note, note}};
    nb_callbacks = &kCallbacks;
  }
  ~TestBuffer() {
    if (nb_dom != nullptr) m0_net_buffer_deregister(this, nb_dom);
    m0_net_desc_free(&nb_desc);
    m0_bufvec_free(&nb_buffer);
  }
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;

  TestBuffer& registered(m0_net_domain& dom) {
    EXPECT_EQ(m0_net_buffer_register(this, &dom), 0) << m0_net_last_error();
    return *this;
  }
  int receive(m0_net_transfer_mc& tm, m0_bcount_t size_min, std::uint32_t messages) {
    nb_qtype = M0_NET_QT_MSG_RECV;
    nb_ep = nullptr;
    nb_min_receive_size = size_min;
    nb_max_receive_msgs = messages;
    return m0_net_buffer_add(this, &tm);
  }
  int send(m0_net_transfer_mc& tm, m0_net_end_point* to, m0_bcount_t length) {
    nb_qtype = M0_NET_QT_MSG_SEND;
    nb_ep = to;
    nb_length = length;
    return m0_net_buffer_add(this, &tm);
  }
  int bulk(m0_net_transfer_mc& tm, m0_net_queue_type queue, m0_bcount_t length) {
    nb_qtype = queue;
    nb_ep = nullptr;
    nb_length = length;
    return m0_net_buffer_add(this, &tm);
  }
  /// Does the same as bulk(), with the descriptor of another buffer.
  int use(m0_net_transfer_mc& tm, m0_net_queue_type queue, m0_bcount_t length, const m0_net_buffer& passive) {
    m0_net_desc_free(&nb_desc);
    EXPECT_EQ(m0_net_desc_copy(&passive.nb_desc, &nb_desc), 0);
    return bulk(tm, queue, length);
  }
  bool is_queued() const { return (nb_flags & M0_NET_BUF_QUEUED) != 0; }
  void write(std::string_view text) {
    m0_bufvec_cursor cursor;
    m0_bufvec_cursor_init(&cursor, &nb_buffer);
    m0_bufvec_cursor_copyto(&cursor, const_cast<char*>(text.data()), text.size());
  }
  std::string read(m0_bcount_t offset, m0_bcount_t length) const {
    std::string text(length, '\0');
    m0_bufvec_cursor cursor;
    m0_bufvec_cursor_init(&cursor, &nb_buffer);
    m0_bufvec_cursor_move(&cursor, offset);
    m0_bufvec_cursor_copyfrom(&cursor, text.data(), length);
    return text;
  }

  static void note(const m0_net_buffer_event* ev) {
    auto& own = static_cast<TestBuffer&>(*ev->nbe_buffer);
    own.told.add({&own, own.nb_qtype, ev->nbe_status, ev->nbe_length, ev->nbe_offset,
                  ev->nbe_ep != nullptr ? ev->nbe_ep->nep_addr : "", !own.is_queued(), std::this_thread::get_id()});
  }

  Told& told;
};

struct TestMachine : m0_net_transfer_mc {
  explicit TestMachine(m0_net_domain& dom) : m0_net_transfer_mc{} {
    static constexpr m0_net_tm_callbacks kCallbacks{note};
    ntm_callbacks = &kCallbacks;
    EXPECT_EQ(m0_net_tm_init(this, &dom), 0) << m0_net_last_error();
  }
  ~TestMachine() {
    if (ntm_state == M0_NET_TM_STARTED) stop(true);
    m0_net_tm_fini(this);
    EXPECT_EQ(ntm_state, M0_NET_TM_UNDEFINED) << m0_net_last_error();
  }
  TestMachine(const TestMachine&) = delete;
  TestMachine& operator=(const TestMachine&) = delete;

  int start(const std::string& address) {
    const int error = m0_net_tm_start(this, address.c_str());
    if (error == 0) wait_for({M0_NET_TM_STARTED, M0_NET_TM_FAILED});
    return error;
  }
  void stop(bool abort) {
    EXPECT_EQ(m0_net_tm_stop(this, abort), 0) << m0_net_last_error();
    wait_for({M0_NET_TM_STOPPED});
  }
  std::string address() const { return ntm_ep->nep_addr; }
  m0_net_end_point* end_point(const std::string& address) {
    m0_net_end_point* made = nullptr;
    EXPECT_EQ(m0_net_end_point_create(&made, this, address.c_str()), 0) << m0_net_last_error();
    return made;
  }
  m0_net_qstats figures(m0_net_queue_type queue, bool reset = false) {
    m0_net_qstats figures{};
    EXPECT_EQ(m0_net_tm_stats_get(this, queue, &figures, reset), 0);
    return figures;
  }
  /// Waits as programs do: with a link on the machine's channel.
  void wait_for(std::vector<m0_net_tm_state> states) {
    m0_clink link;
    m0_clink_init(&link, nullptr);
    m0_mutex_lock(&ntm_mutex);
    m0_clink_add(&ntm_chan, &link);
    while (std::ranges::find(states, ntm_state) == states.end() || ntm_callback_counter > 0) {
      m0_mutex_unlock(&ntm_mutex);
      m0_chan_wait(&link);
      m0_mutex_lock(&ntm_mutex);
    }
    m0_clink_del(&link);
    m0_mutex_unlock(&ntm_mutex);
    m0_clink_fini(&link);
  }

  static void note(const m0_net_tm_event* ev) {
    auto& own = static_cast<TestMachine&>(*ev->nte_tm);
    const std::scoped_lock lock(own.mutex);
    own.events.push_back({ev->nte_type, ev->nte_next_state, ev->nte_status});
  }
  struct Event {
    m0_net_tm_ev_type type;
    m0_net_tm_state next_state;
    std::int32_t status;
    bool operator==(const Event&) const = default;
  };
  std::mutex mutex;
  std::vector<Event> events;
};

}  // namespace fairlead::motr
