#include "tests/net_pair.hpp"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <sys/socket.h>

#include "base/file_descriptor.hpp"
#include "net/net_address.hpp"

namespace fairlead::tests {
namespace {

std::byte byte_at(std::uint64_t place, std::uint64_t seed) {
  return static_cast<std::byte>((place * 0x9e37'79b9'7f4a'7c15 + seed * 0xd1b5'4a32'd192'ed03) >> 56);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const NetPath& path) {
  return out << path.name;
}

std::vector<NetPath> net_paths() {
  std::vector<NetPath> paths{{"lo", "0@lo", true, ""}};
  const auto nids = net::local_nids().value();
  const auto is_here = [&](std::string_view nid) { return std::ranges::find(nids, nid) != nids.end(); };
  if (is_here("127.0.0.1@udp")) {
    paths.push_back({"one_engine", "127.0.0.1@udp", true, ""});
    paths.push_back({"ipv4", "127.0.0.1@udp", false, ""});
    paths.push_back({"ipv4_lossy", "127.0.0.1@udp", false, "drop=2%,duplicate=1%,reorder=2%:1:8,corrupt=0.5%"});
    paths.push_back({"shm", "127.0.0.1@udp", false, "", "shm"});
    paths.push_back({"auto", "127.0.0.1@udp", false, "", "auto"});
    paths.push_back({"host", "127.0.0.1@udp", true, "", "udp", true});
    paths.push_back({"hosts", "127.0.0.1@udp", false, "", "shm", true});
    paths.push_back({"host_threads", "127.0.0.1@udp", false, "", "udp", true, 2});
  }
  if (is_here("[::1]@udp")) paths.push_back({"ipv6", "[::1]@udp", false, ""});
  return paths;
}

std::vector<NetPath> net_paths_where(bool (*can_use)(const NetPath& path)) {
  auto paths = net_paths();
  std::erase_if(paths, [&](const NetPath& path) { return !can_use(path); });
  return paths;
}

std::uint16_t free_pid(std::string_view nid) {
  const auto local = net::parse_address(fmt::format("{}:*:34:*", nid)).value().engine;
  if (net::is_lo(local)) return 20480;
  const int family = local.is_v4() ? AF_INET : AF_INET6;
  const base::FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage kernel{};
  auto* address = reinterpret_cast<sockaddr*>(&kernel);
  socklen_t length = local.to_kernel(address, family);
  EXPECT_EQ(::bind(socket.get(), address, length), 0);
  EXPECT_EQ(::getsockname(socket.get(), address, &length), 0);
  return base::SocketAddress::from_kernel(address, length).value().port;
}

void fill(net::Buffer& buffer, std::uint64_t length, std::uint64_t seed) {
  std::vector<std::byte> bytes(length);
  for (std::uint64_t i = 0; i < length; ++i) bytes[i] = byte_at(i, seed);
  EXPECT_EQ(buffer.write(0, bytes), length);
}

::testing::AssertionResult holds(const net::Buffer& buffer, std::uint64_t offset, std::uint64_t length,
                                 std::uint64_t seed) {
  std::vector<std::byte> bytes(length);
  if (buffer.read(offset, bytes) != length) return ::testing::AssertionFailure() << "the buffer is shorter";
  for (std::uint64_t i = 0; i < length; ++i) {
    if (bytes[i] != byte_at(i, seed)) {
      return ::testing::AssertionFailure() << "byte " << i << " of " << length << " is wrong";
    }
  }
  return ::testing::AssertionSuccess();
}

void NetPair::SetUp() {
  if (GetParam().is_hosted) {
    host::ServiceOptions options;
    options.threads = GetParam().threads;
    EXPECT_TRUE(options.engine.set("path", GetParam().path));
    host_ = std::make_unique<host::HostForTests>(std::move(options));
  }
  domain_ = net::Domain::open(settings()).value();
  near_pid_ = free_pid(GetParam().nid);
  far_pid_ = GetParam().is_one_engine ? near_pid_ : free_pid(GetParam().nid);
  // The thread follows from the port (host::Routes).
  while (GetParam().threads > 1 && (near_pid_ + far_pid_) % 2 == 0) far_pid_ = free_pid(GetParam().nid);
  near_ = std::make_unique<net::TransferMachine>(*domain_);
  far_ = std::make_unique<net::TransferMachine>(*domain_);
  near_address_ = near_->start_and_wait(near_at("34:1")).value().address();
  far_address_ = far_->start_and_wait(far_at("34:2")).value().address();
}

net::DomainSettings NetPair::settings() const {
  net::DomainSettings settings{.engine = {{"path", GetParam().path}}};
  if (!GetParam().fault.empty()) settings.engine.emplace_back("fault", GetParam().fault);
  if (host_ != nullptr) {
    settings.engine.emplace_back("core", "host");
    settings.engine.emplace_back("host", host_->file());
  }
  return settings;
}

std::string NetPair::near_at(std::string_view rest) const {
  return fmt::format("{}:{}:{}", GetParam().nid, near_pid_, rest);
}

std::string NetPair::far_at(std::string_view rest) const {
  return fmt::format("{}:{}:{}", GetParam().nid, far_pid_, rest);
}

std::unique_ptr<net::Buffer> NetPair::buffer(std::uint64_t size, net::Record& record) {
  auto made = net::Buffer::allocate(*domain_, size).value();
  EXPECT_EQ(made->set_callback(record.callback()), Status::ok);
  return made;
}

void NetPair::expect_settled(net::TransferMachine& machine) {
  for (const net::QueueStatistics& queue : machine.statistics().queues) {
    EXPECT_GE(queue.successes + queue.failures, queue.adds);
    EXPECT_LE(queue.deletes, queue.adds);
    EXPECT_LE(queue.bytes_max, queue.bytes_total);
  }
}

}  // namespace fairlead::tests
