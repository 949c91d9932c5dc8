#include "base/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace fairlead::base {
namespace {

constexpr unsigned kNodesMost = 1024, kWordBits = 64;  // the kernel has at most so many nodes
constexpr std::uint64_t kPage = 4096;

using NodeMask = std::array<unsigned long, kNodesMost / kWordBits>;
static_assert(sizeof(unsigned long) * 8 == kWordBits);

NodeMask node_mask(unsigned node) noexcept {
  NodeMask mask{};
  mask[node / kWordBits] = 1UL << (node % kWordBits);
  return mask;
}

// Calls visit(number) for each number of a list as "0-3,8". Ends at the first thing that is none.
template <typename Visit>
void read_list(std::string_view text, unsigned most, Visit&& visit) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    unsigned first = 0;
    const auto start = std::from_chars(at, end, first);
    if (start.ec != std::errc()) return;
    unsigned last = first;
    at = start.ptr;
    if (at != end && *at == '-') {
      const auto stop = std::from_chars(at + 1, end, last);
      if (stop.ec != std::errc()) return;
      at = stop.ptr;
    }
    for (unsigned number = first; number <= std::min(last, most - 1); ++number) visit(number);
    if (at == end || *at != ',') return;
    ++at;
  }
}

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// System calls directly: libnuma would be one more library that every program needs, for three calls.
long get_policy(int& mode, NodeMask& mask, const void* address, unsigned flags) noexcept {
  return ::syscall(SYS_get_mempolicy, &mode, mask.data(), kNodesMost, address, flags);
}

long set_policy(int mode, const NodeMask* mask) noexcept {
  return ::syscall(SYS_set_mempolicy, mode, mask == nullptr ? nullptr : mask->data(), mask == nullptr ? 0 : kNodesMost);
}

std::optional<unsigned> preferred(const void* address, unsigned flags) noexcept {
  int mode = 0;
  NodeMask mask{};
  if (get_policy(mode, mask, address, flags) != 0 || mode != MPOL_PREFERRED) return std::nullopt;
  for (unsigned word = 0; word < mask.size(); ++word)
    if (mask[word] != 0) return word * kWordBits + static_cast<unsigned>(std::countr_zero(mask[word]));
  return std::nullopt;
}

bool has_own_policy() noexcept {
  int mode = 0;
  NodeMask mask{};
  return get_policy(mode, mask, nullptr, 0) != 0 || mode != MPOL_DEFAULT;
}

}  // namespace

NumaTopology::NumaTopology(const std::string& folder) {
  read_list(first_line(folder + "/has_memory"), kNodesMost, [&](unsigned number) {
    Node node{.number = number, .cpus = {}};
    CPU_ZERO(&node.cpus);
    read_list(first_line(fmt::format("{}/node{}/cpulist", folder, number)), CPU_SETSIZE,
              [&](unsigned cpu) { CPU_SET(cpu, &node.cpus); });
    nodes_.push_back(node);
  });
}

std::optional<unsigned> NumaTopology::node_of(const cpu_set_t& cpus) const {
  if (nodes_.size() < 2 || CPU_COUNT(&cpus) == 0) return std::nullopt;
  for (const Node& node : nodes_) {
    cpu_set_t common;
    CPU_AND(&common, &node.cpus, &cpus);
    if (CPU_EQUAL(&common, &cpus)) return node.number;
  }
  return std::nullopt;
}

NumaTopology& host_numa() {
  static NumaTopology topology("/sys/devices/system/node");
  return topology;
}

std::optional<unsigned> near_node() {
  const NumaTopology& topology = host_numa();
  cpu_set_t cpus;
  if (topology.node_count() < 2 || ::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return std::nullopt;
  return has_own_policy() ? std::nullopt : topology.node_of(cpus);
}

NearNode::NearNode(std::optional<unsigned> node) noexcept {
  if (!node || has_own_policy()) return;
  const NodeMask mask = node_mask(*node);
  is_set_ = set_policy(MPOL_PREFERRED, &mask) == 0;
}

NearNode::~NearNode() {
  if (is_set_) set_policy(MPOL_DEFAULT, nullptr);
}

std::optional<unsigned> preferred_node() {
  return host_numa().node_count() < 2 ? std::nullopt : preferred(nullptr, 0);
}

void place_near(std::span<const std::byte> range, std::optional<unsigned> node) noexcept {
  if (!node) return;
  const auto start = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t first = (start + kPage - 1) / kPage * kPage, end = (start + range.size()) / kPage * kPage;
  if (first >= end) return;
  const NodeMask mask = node_mask(*node);
  ::syscall(SYS_mbind, first, end - first, MPOL_PREFERRED, mask.data(), kNodesMost, MPOL_MF_MOVE);
}

std::optional<unsigned> placed_near(const std::byte* address) noexcept {
  return preferred(address, MPOL_F_ADDR);
}

}  // namespace fairlead::base
