// Each allocation of a call fails in turn: the call reports it, and no exception reaches C.

#include <cstdint>
#include <functional>
#include <string>

#include "doors/motr_net/machine_for_tests.hpp"
#include "tests/failing_memory.hpp"

namespace fairlead::motr {
namespace {

thread_local bool is_in_call = false;

class WithoutMemory : public ::testing::Test {
 protected:
  WithoutMemory() { EXPECT_EQ(m0_net_domain_init(&dom_, &m0_net_lnet_xprt), 0); }
  ~WithoutMemory() override {
    tests::failing_memory = {};
    m0_net_domain_fini(&dom_);
  }

  static void call(const std::function<void()>& one, std::uint64_t first) {
    tests::failing_memory = {.is_watched = [] { return is_in_call; }, .first = first, .last = first};
    is_in_call = true;
    one();
    is_in_call = false;
  }
  /// Returns how many allocations were made to fail.
  static std::uint64_t each_fails(const std::function<void()>& one) {
    call(one, 0);
    const std::uint64_t all = tests::failing_memory.asked;
    for (std::uint64_t first = 1; first <= all; ++first) call(one, first);
    tests::failing_memory = {};
    return all;
  }
  static bool has_failed() { return tests::failing_memory.failed != 0; }

  m0_net_domain dom_{};
  Told told_;
};

TEST_F(WithoutMemory, AddressesAndProcessorsAreRefused) {
  EXPECT_GT(each_fails([&] {
              char* const* nids = nullptr;
              const int error = m0_net_lnet_ifaces_get(&dom_, &nids);
              EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
              if (error == 0) m0_net_lnet_ifaces_put(&dom_, &nids);
            }),
            0U);
  EXPECT_GT(each_fails([&] {
              const int order = m0_net_lnet_ep_addr_net_cmp("127.0.0.1@tcp:12345:31:1", "127.0.0.1@tcp:12345:32:*");
              EXPECT_EQ(order, has_failed() ? -1 : 0);
            }),
            0U);
  TestMachine machine(dom_);
  m0_bitmap processors{};
  ASSERT_EQ(m0_bitmap_init(&processors, 64), 0);
  m0_bitmap_set(&processors, 0, true);
  EXPECT_GT(each_fails([&] {
              const int error = m0_net_tm_confine(&machine, &processors);
              EXPECT_EQ(error, has_failed() ? -ENOMEM : 0);
            }),
            0U);
  m0_bitmap_fini(&processors);
}

TEST_F(WithoutMemory, EndPointsAreThereOrNot) {
  TestMachine machine(dom_);
  ASSERT_EQ(machine.start("0@lo:12345:34:1"), 0);
  EXPECT_GT(each_fails([&] {
              m0_net_end_point* made = nullptr;
              const int error = m0_net_end_point_create(&made, &machine, "0@lo:12345:34:222");
              EXPECT_EQ(error, has_failed() ? -ENOMEM : 0);
              if (error == 0) m0_net_end_point_put(made);
            }),
            2U);
  EXPECT_EQ(machine.ntm_end_points.tl_length, 1U) << "its own";
}

TEST_F(WithoutMemory, PoolsTakeTheirBuffersBack) {
  m0_net_buffer_pool pool{};
  ASSERT_EQ(m0_net_buffer_pool_init(&pool, &dom_, 0, 1, 4096, 2, 12, false), 0);
  m0_net_buffer_pool_lock(&pool);
  std::uint32_t made = 0;
  EXPECT_GT(each_fails([&] { made += static_cast<std::uint32_t>(m0_net_buffer_pool_provision(&pool, 1)); }), 2U);
  EXPECT_EQ(pool.nbp_buf_nr, made);
  EXPECT_EQ(pool.nbp_free, made);
  EXPECT_EQ(each_fails([&] {
              m0_net_buffer* const buf = m0_net_buffer_pool_get(&pool, 1);
              ASSERT_NE(buf, nullptr);
              m0_net_buffer_pool_put(&pool, buf, 1);
            }),
            0U);
  EXPECT_EQ(pool.nbp_free, made);
  m0_net_buffer_pool_unlock(&pool);
  m0_net_buffer_pool_fini(&pool);
}

}  // namespace
}  // namespace fairlead::motr
