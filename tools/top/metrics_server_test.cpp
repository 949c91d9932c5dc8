#include "tools/top/metrics_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kPatienceOfTest = 60s;  // only ends a failing test

base::FileDescriptor connect_to(std::uint16_t port) {
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  return socket;
}

/// Reads until the server closes the connection.
std::string rest_of(const base::FileDescriptor& socket) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

class ServedMetrics : public testing::Test {
 protected:
  ServedMetrics() : server_(MetricsServer::listen(0, [this] { return look(); }, kPatienceOfTest).value()) {}
  ~ServedMetrics() override {
    is_over_ = true;
    thread_.join();
  }

  Result<std::string> look() {
    ++looks_;
    if (is_nobody_there_) return std::unexpected(Error{Status::not_available, 0, "nobody is there"});
    return "fairlead_peers 1\n# EOF\n";
  }
  base::FileDescriptor connect() const { return connect_to(server_.port()); }
  std::string ask(const std::string& request) const {
    const base::FileDescriptor socket = connect();
    (void)::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    return rest_of(socket);
  }

  std::atomic<bool> is_over_ = false, is_nobody_there_ = false;
  std::atomic<int> looks_ = 0;
  MetricsServer server_;
  std::thread thread_{[this] {
    while (!is_over_) server_.serve(5ms);
  }};
};

TEST_F(ServedMetrics, AreToldOverHttp) {
  const std::string answer = ask("GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\nAccept: */*\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("application/openmetrics-text; version=1.0.0"),
                            HasSubstr("\r\n\r\nfairlead_peers 1\n# EOF\n")));
  for (const char* host : {"127.0.0.1", "[::1]:9464", "[::1]"})
    EXPECT_THAT(ask(std::string("GET /metrics HTTP/1.0\r\nHost: ") + host + "\r\n\r\n"), HasSubstr(" 200 ")) << host;
  EXPECT_THAT(ask("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), testing::EndsWith("\r\n\r\n"));
}

TEST_F(ServedMetrics, AreForThisHostAlone) {
  for (const char* host : {"evil.example", "localhost.evil.example:80", "", "127.0.0.1.evil.example", "localhost:80]"})
    EXPECT_THAT(ask(std::string("GET /metrics HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), HasSubstr(" 403 ")) << host;
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr(" 403 "));
  EXPECT_EQ(looks_, 0);
}

TEST_F(ServedMetrics, AnythingElseIsRefused) {
  EXPECT_THAT(ask("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr(" 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr(" 405 "));
  EXPECT_EQ(ask("\r\r\r garbage \x01\xff\r\n\r\n"), "");
  EXPECT_EQ(looks_, 0);
  is_nobody_there_ = true;
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(HasSubstr(" 503 "), HasSubstr("nobody is there")));
}

// For the second one, the kernel may report only the end of the connection, because some bytes are never read.
TEST_F(ServedMetrics, ALongRequestIsHungUpOn) {
  const base::FileDescriptor socket = connect();
  const std::string part = "GET /" + std::string(20'000, 'x');
  (void)::send(socket.get(), part.data(), part.size(), MSG_NOSIGNAL);
  EXPECT_EQ(rest_of(socket), "");
  EXPECT_EQ(looks_, 0);
}

TEST_F(ServedMetrics, ManyAtATimeAreHungUpOn) {
  std::vector<base::FileDescriptor> dawdlers;
  for (std::size_t i = 0; i < MetricsServer::kClientsMax; ++i) dawdlers.push_back(connect());
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(ask(request), "");
  dawdlers.pop_back();
  std::string answer;
  while (answer.empty()) answer = ask(request);  // until the server has noticed that the slot is free
  EXPECT_THAT(answer, HasSubstr(" 200 "));
}

// A slow client is disconnected.
TEST(Metrics, AreNotWaitedFor) {
  auto server = MetricsServer::listen(0, [] { return Result<std::string>("# EOF\n"); }, 10ms).value();
  EXPECT_TRUE(MetricsServer::listen(server.port(), [] { return Result<std::string>(""); })
                  .error()
                  .message.contains("cannot listen"));
  const base::FileDescriptor socket = connect_to(server.port());
  std::atomic<bool> is_over = false;
  std::thread thread([&] {
    while (!is_over) server.serve(5ms);
  });
  EXPECT_EQ(rest_of(socket), "");
  is_over = true;
  thread.join();
}

TEST_F(ServedMetrics, EnginesAreLookedAtSoOftenAtMost) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) (void)ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_LE(looks_, (std::chrono::steady_clock::now() - begin) / MetricsServer::kFreshFor + 1);
}

}  // namespace
}  // namespace fairlead::tools
