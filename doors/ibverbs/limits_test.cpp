// The limits that ibv_query_device() advertises can be reached, and not exceeded.

#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

class Limits : public testing::Test {
 protected:
  Limits() : context_(open_for_test(0)) {
    EXPECT_EQ(ibv_query_device(context_, &limits_), 0);
    domain_ = ibv_alloc_pd(context_);
    queue_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  }
  ~Limits() override { EXPECT_EQ(ibv_close_device(context_), 0); }

  ibv_qp* pair_with(const ibv_qp_cap& cap) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = cap;
    return ibv_create_qp(domain_, &attributes);
  }
  ibv_srq* shared_with(std::uint32_t requests, std::uint32_t pieces) {
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = requests, .max_sge = pieces, .srq_limit = 0};
    return ibv_create_srq(domain_, &attributes);
  }

  ibv_context* context_;
  ibv_device_attr limits_{};
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
};

/// Creates objects up to the limit, `there` of which exist already. One more fails with ENOMEM, and destroying one
/// permits another.
template <typename Object>
void expect_count(const char* name, int most, int there, const std::function<Object*()>& create,
                  const std::function<int(Object*)>& destroy) {
  SCOPED_TRACE(name);
  std::vector<Object*> all;
  for (int i = there; i < most; ++i) {
    Object* object = create();
    ASSERT_NE(object, nullptr) << i << " of " << most << ": errno " << errno;
    all.push_back(object);
  }
  EXPECT_EQ(create(), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(destroy(all.back()), 0);
  all.back() = create();
  EXPECT_NE(all.back(), nullptr);
  for (; !all.empty(); all.pop_back()) ASSERT_EQ(destroy(all.back()), 0);
}

TEST_F(Limits, OfObjectsAreTheirCount) {
  expect_count<ibv_qp>("max_qp", limits_.max_qp, 0, [&] { return pair_with({1, 1, 1, 1, 0}); }, ibv_destroy_qp);
  expect_count<ibv_pd>("max_pd", limits_.max_pd, 1, [&] { return ibv_alloc_pd(context_); }, ibv_dealloc_pd);
  expect_count<ibv_cq>(
      "max_cq", limits_.max_cq, 1, [&] { return ibv_create_cq(context_, 1, nullptr, nullptr, 0); }, ibv_destroy_cq);
  char byte = 0;
  expect_count<ibv_mw>(
      "max_mw", limits_.max_mw, 0, [&] { return ibv_alloc_mw(domain_, IBV_MW_TYPE_2); }, ibv_dealloc_mw);
  expect_count<ibv_mr>("max_mr", limits_.max_mr, 0, [&] { return ibv_reg_mr(domain_, &byte, 1, 0); }, ibv_dereg_mr);
  expect_count<ibv_srq>("max_srq", limits_.max_srq, 0, [&] { return shared_with(1, 1); }, ibv_destroy_srq);
  ibv_ah_attr vector{};
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &vector.grh.dgid), 0);
  vector.is_global = vector.port_num = 1;
  expect_count<ibv_ah>("max_ah", limits_.max_ah, 0, [&] { return ibv_create_ah(domain_, &vector); }, ibv_destroy_ah);
}

TEST_F(Limits, OfOneObjectAreItsSize) {
  const auto requests = static_cast<std::uint32_t>(limits_.max_qp_wr);
  const auto pieces = static_cast<std::uint32_t>(limits_.max_sge);
  ibv_qp* longest = pair_with({requests, requests, 1, 1, 0});
  ASSERT_NE(longest, nullptr);
  EXPECT_EQ(ibv_destroy_qp(longest), 0);
  ibv_qp* widest = pair_with({1, 1, pieces, pieces, 1024});
  ASSERT_NE(widest, nullptr);
  EXPECT_EQ(ibv_destroy_qp(widest), 0);
  for (const ibv_qp_cap& beyond :
       {ibv_qp_cap{requests + 1, 1, 1, 1, 0}, ibv_qp_cap{1, requests + 1, 1, 1, 0}, ibv_qp_cap{1, 1, pieces + 1, 1, 0},
        ibv_qp_cap{1, 1, 1, pieces + 1, 0}, ibv_qp_cap{1, 1, 1, 1, 1025}}) {
    EXPECT_EQ(pair_with(beyond), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_GE(limits_.max_cqe, 2 * 256 * 384) << "libfabric's ofi_rxm: for 256 peers, sends and receives";
  ibv_cq* long_queue = ibv_create_cq(context_, limits_.max_cqe, nullptr, nullptr, 0);
  ASSERT_NE(long_queue, nullptr);
  EXPECT_EQ(ibv_resize_cq(long_queue, limits_.max_cqe + 1), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(long_queue), 0);
  EXPECT_EQ(ibv_create_cq(context_, limits_.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_srq* longest_shared = shared_with(static_cast<std::uint32_t>(limits_.max_srq_wr), 1);
  ASSERT_NE(longest_shared, nullptr);
  EXPECT_EQ(ibv_destroy_srq(longest_shared), 0);
  EXPECT_EQ(shared_with(static_cast<std::uint32_t>(limits_.max_srq_wr) + 1, 1), nullptr);
  EXPECT_EQ(shared_with(1, static_cast<std::uint32_t>(limits_.max_srq_sge) + 1), nullptr);
  char byte = 0;
  EXPECT_EQ(ibv_reg_mr(domain_, &byte, limits_.max_mr_size + 1, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(&port)), 0);
  ibv_gid gid{};
  __be16 key = 0;
  EXPECT_EQ(ibv_query_gid(context_, 1, port.gid_tbl_len - 1, &gid), 0);
  EXPECT_NE(ibv_query_gid(context_, 1, port.gid_tbl_len, &gid), 0);
  EXPECT_EQ(ibv_query_pkey(context_, 1, port.pkey_tbl_len - 1, &key), 0);
  EXPECT_NE(ibv_query_pkey(context_, 1, port.pkey_tbl_len, &key), 0);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// The time for each region must not grow with their number: a registration that reads all mappings would need hours
// here. Regions beyond the bound of moved ranges stay in place, so the program keeps its own mappings.
TEST_F(Limits, OfRegionsLeaveTheProgramItsMappings) {
  constexpr std::size_t kLength = 1UL << 20, kPage = 4096;
  void* const whole = ::mmap(nullptr, kLength + kPage * static_cast<std::size_t>(limits_.max_mr),
                             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(whole, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(whole);
  const std::size_t before = mappings();
  constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  std::vector<ibv_mr*> regions;
  for (int i = 0; i < limits_.max_mr; ++i) {
    // Half of them have the same memory, and half have their own page.
    std::byte* const at = memory + (i % 2 == 0 ? 0 : kLength + static_cast<std::size_t>(i) * kPage);
    regions.push_back(ibv_reg_mr(domain_, at, i % 2 == 0 ? kLength : kPage, kRights));
    ASSERT_NE(regions.back(), nullptr) << "after " << i << ": " << std::strerror(errno);
  }
  EXPECT_LT(mappings() - before, 4096U) << "the kernel permits 65530 in all";
  for (ibv_mr* each : regions) ASSERT_EQ(ibv_dereg_mr(each), 0);
  ::munmap(whole, kLength + kPage * static_cast<std::size_t>(limits_.max_mr));
}

// If ibv_wr_complete() refuses a batch, nothing of it is posted.
TEST(ExtendedPosts, AreTakenWholeOrNotAtAll) {
  TwoEnds ends(Apart::same_device);
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = ends.a.queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {4, 4, 1, 1, 16};
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = ends.a.domain;
  attributes.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  ASSERT_EQ(ibv_destroy_qp(ends.a.pair), 0);
  ends.a.pair = ibv_create_qp_ex(ends.a.context, &attributes);
  ASSERT_NE(ends.a.pair, nullptr);
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(ends.a.pair);
  const auto post = [&](int count, std::size_t inline_length, int pieces) {
    std::array<ibv_sge, 4> list{};
    std::array<char, 64> data{};
    ibv_wr_start(extended);
    for (int i = 0; i < count; ++i) {
      extended->wr_id = static_cast<std::uint64_t>(i);
      extended->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_rdma_write(extended, ends.b.region->rkey, ends.b.at(0));
      if (i + 1 < count) continue;  // only the last one has the wanted size
      if (inline_length != 0) ibv_wr_set_inline_data(extended, data.data(), inline_length);
      if (pieces != 0) ibv_wr_set_sge_list(extended, static_cast<std::size_t>(pieces), list.data());
    }
    return ibv_wr_complete(extended);
  };
  EXPECT_EQ(post(5, 0, 0), ENOMEM);
  EXPECT_EQ(post(3, 17, 0), EINVAL);
  EXPECT_EQ(post(3, 0, 2), EINVAL);
  ibv_wc none;
  EXPECT_EQ(ibv_poll_cq(ends.a.queue, 1, &none), 0);
  EXPECT_EQ(post(4, 16, 0), 0);
  EXPECT_EQ(ends.at_a(4).size(), 4u);
}

}  // namespace
}  // namespace fairlead::ibverbs
