#pragma once
// Two started transfer machines, near and far, over each path that Net has.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/net.hpp>

#include "host/host_for_tests.hpp"
#include "net/record_for_tests.hpp"

namespace fairlead::tests {

/// A path from one machine to the other.
struct NetPath {
  std::string name;  // of the test case
  std::string nid;
  bool is_one_engine = true;  // both machines share one engine
  std::string fault;          // faults that the engines inject into their datagrams; empty: none
  std::string path = "udp";
  bool is_hosted = false;     // the engines are those of a host engine
  std::uint32_t threads = 1;  // of the host engine; 2: each machine has its engine in another thread
};

/// Printed by GoogleTest.
std::ostream& operator<<(std::ostream& out, const NetPath& path);

/// All paths. Those over an IP address are missing if the host lacks the address (NetPaths.AreAllHere then fails).
std::vector<NetPath> net_paths();
/// All paths for which `can_use` is true.
std::vector<NetPath> net_paths_where(bool (*can_use)(const NetPath& path));

/// A UDP port of `nid` that was free just now.
std::uint16_t free_pid(std::string_view nid);

/// Writes bytes that depend on their position and on `seed`.
void fill(net::Buffer& buffer, std::uint64_t length, std::uint64_t seed);
/// Whether [offset, offset + length) holds the bytes that fill() writes at the start of a buffer.
::testing::AssertionResult holds(const net::Buffer& buffer, std::uint64_t offset, std::uint64_t length,
                                 std::uint64_t seed);

class NetPair : public ::testing::TestWithParam<NetPath> {
 protected:
  void SetUp() override;

  net::TransferMachine& near() { return *near_; }
  net::TransferMachine& far() { return *far_; }
  net::EndPoint to_far() { return near().create_end_point(far_address_).value(); }
  net::EndPoint to_near() { return far().create_end_point(near_address_).value(); }

  /// "nid:pid:rest" with the pid of near's or far's engine.
  std::string near_at(std::string_view rest) const;
  std::string far_at(std::string_view rest) const;

  /// Of this path, for another domain.
  net::DomainSettings settings() const;
  std::unique_ptr<net::Buffer> buffer(std::uint64_t size, net::Record& record);
  /// Checks that each add has ended, unless one buffer got several messages, and that the statistics are consistent.
  static void expect_settled(net::TransferMachine& machine);

  std::unique_ptr<host::HostForTests> host_;
  std::optional<net::Domain> domain_;
  net::Record near_record_, far_record_;
  std::uint16_t near_pid_ = 0, far_pid_ = 0;
  std::string near_address_, far_address_;
  std::unique_ptr<net::TransferMachine> near_, far_;
};

}  // namespace fairlead::tests
