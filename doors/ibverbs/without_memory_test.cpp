// Each allocation of the calls that create, modify and destroy objects fails in turn. The call reports it, no exception
// reaches C, and later calls succeed.

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "doors/ibverbs/abi.hpp"
#include "tests/failing_memory.hpp"

namespace {

using fairlead::tests::failing_memory;

thread_local bool is_in_door = false;

class DoorWithoutMemory : public testing::Test {
 protected:
  DoorWithoutMemory() {
    ibv_device** list = ibv_get_device_list(nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
  }
  ~DoorWithoutMemory() override {
    failing_memory = {};
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  /// Retries a destruction that failed for lack of memory.
  template <typename Object>
  static void end(int (*destroy)(Object*), Object* object) {
    if (object == nullptr || destroy(object) == 0) return;
    EXPECT_NE(failing_memory.failed, 0U) << errno;
    is_in_door = false;
    (void)destroy(object);
    is_in_door = true;
  }

  void use() {
    ibv_pd* const domain = ibv_alloc_pd(context_);
    ibv_comp_channel* const channel = ibv_create_comp_channel(context_);
    ibv_cq* const queue = ibv_create_cq(context_, 16, this, nullptr, 0);
    if (queue != nullptr) ibv_resize_cq(queue, 200);
    if (domain != nullptr && queue != nullptr) use_domain(domain, queue);
    end(ibv_destroy_cq, queue);
    end(ibv_destroy_comp_channel, channel);
    end(ibv_dealloc_pd, domain);
    ibv_gid gid{};
    ibv_query_gid(context_, 1, 0, &gid);
  }
  void use_domain(ibv_pd* domain, ibv_cq* queue) {
    ibv_mr* const region = ibv_reg_mr(domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
    if (region != nullptr)
      ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_srq_init_attr shared_attributes{};
    shared_attributes.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    ibv_srq* const shared = ibv_create_srq(domain, &shared_attributes);
    shared_attributes.attr.max_wr = 100;
    if (shared != nullptr) ibv_modify_srq(shared, &shared_attributes.attr, IBV_SRQ_MAX_WR);
    ibv_mw* const window = ibv_alloc_mw(domain, IBV_MW_TYPE_2);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {4, 4, 1, 1, 0};
    ibv_qp* const pair = ibv_create_qp(domain, &attributes);
    ibv_qp_attr change{};
    change.qp_state = IBV_QPS_INIT;
    change.port_num = 1;
    if (pair != nullptr)
      ibv_modify_qp(pair, &change, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    end(ibv_destroy_qp, pair);
    end(ibv_dealloc_mw, window);
    end(ibv_destroy_srq, shared);
    end(ibv_dereg_mr, region);
  }
  std::uint64_t with(std::uint64_t first) {
    failing_memory = {.is_watched = [] { return is_in_door; }, .first = first, .last = first};
    is_in_door = true;
    use();
    is_in_door = false;
    return failing_memory.asked;
  }

  ibv_context* context_ = nullptr;
  std::array<char, 4096> memory_{};
};

TEST_F(DoorWithoutMemory, NothingIsThrown) {
  with(0);  // creates what only the first call needs
  const std::uint64_t all = with(0);
  ASSERT_GT(all, 20U);
  for (std::uint64_t first = 1; first <= all; ++first) {
    SCOPED_TRACE(first);
    with(first);
    if (HasFailure()) return;
  }
  failing_memory = {};
  ibv_pd* const domain = ibv_alloc_pd(context_);
  EXPECT_NE(domain, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

}  // namespace
